"""Token ids of many texts in flat arrays, in files that are memory-mapped, or in memory.

`<cache>/tokens-<key>/` holds `ids.bin` (uint16 where every id of the vocabulary fits, else int32),
`offsets.npy` (int64, where each row begins), `type_ids.bin` (uint8; absent where all are zero),
`owner.npy` (int64, the text of a row; absent where each text is one row) and, last, `manifest.json`.

Promises: a text is cut to tokens once for each tokenizer and setting; opening takes the same time for any
number of rows; a batch is padded straight from the files; ids are those that `Tokenizer.cut` gives.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import tokenizers

from textmill import __version__
from textmill.core.progress import SILENT, Progress, Task
from textmill.core.types import Example
from textmill.data.build_once import build_once
from textmill.data.mapped import MappedExamples, text_blocks
from textmill.encode.padding import Encoded, pad_flat
from textmill.encode.tokenizer import FlatTokens, Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 1
_IDS, _TYPE_IDS, _OFFSETS, _OWNER = "ids.bin", "type_ids.bin", "offsets.npy", "owner.npy"
_KEY_CHARS = 16
_KEEP = 8  # training and validation rows of four pairs of data and tokenizer
_BLOCK_ROWS = 2048  # texts of one call: enough to keep all cores busy, few enough to stay in their caches


class TokenStore(Sequence[Encoded]):
    """R rows of token ids: one for each text, or with windows as many as a text needs."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        ids: NDArray[Any],
        offsets: NDArray[np.int64],
        type_ids: NDArray[np.uint8] | None = None,
        owner: NDArray[np.int64] | None = None,
    ) -> None:
        """Keep the arrays.

        Args:
            tokenizer: that cut the texts; says how to pad.
            ids: (sum of all lengths,) integers.
            offsets: (R + 1,) where each row begins.
            type_ids: like `ids`; None where all are zero.
            owner: (R,) index of the text of each row, ascending; None where each text is one row.
        """
        self.tokenizer = tokenizer
        self.ids = ids
        self.offsets = offsets
        self.type_ids = type_ids
        self.owner = np.arange(len(offsets) - 1, dtype=np.int64) if owner is None else owner
        self.lengths: NDArray[np.int64] = np.diff(offsets)
        """(R,) tokens of each row."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Encoded: ...
    @overload
    def __getitem__(self, index: slice) -> list[Encoded]: ...
    def __getitem__(self, index: int | slice) -> Encoded | list[Encoded]:
        """Return one row as arrays of its own, or several."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        part = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        ids = self.ids[part].astype(np.int32)
        if not self.tokenizer.has_type_ids:
            return Encoded(ids, None)
        type_ids = np.zeros_like(ids) if self.type_ids is None else self.type_ids[part].astype(np.int32)
        return Encoded(ids, type_ids)

    def padded(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return the (B, T) arrays of `padding.pad` for the rows (B,)."""
        lengths = self.lengths[rows]
        starts = np.cumsum(lengths) - lengths
        places = np.repeat(self.offsets[rows] - starts, lengths) + np.arange(int(lengths.sum()))
        door = self.tokenizer
        type_ids = None if self.type_ids is None else self.type_ids[places]
        return pad_flat(self.ids[places], type_ids, lengths, door.pad_id, door.pad_side, door.has_type_ids)


def store_tokens(
    examples: Sequence[Example], tokenizer: Tokenizer, progress: Progress = SILENT
) -> TokenStore:
    """Return the tokens of all examples, from the cache that the examples lie in or into it.

    Args:
        examples: N rows; those in memory get their tokens in memory.
        tokenizer: cuts the texts, by its rule for long ones.
        progress: is told how far it is, and what is used again.

    Raises:
        StoreError: the cache's disk is full or forbidden.
    """
    if not isinstance(examples, MappedExamples) or examples.cache is None:
        return _in_memory(tokenizer, list(_cut_blocks(examples, tokenizer, progress)))

    def build(folder: Path) -> dict[str, Any]:
        return _write(folder, tokenizer, _cut_blocks(examples, tokenizer, progress))

    key = _key(examples, tokenizer)
    folder, manifest = build_once(examples.cache, "tokens", key, build, keep=_KEEP, progress=progress)
    return _open(folder, manifest, tokenizer)


def _key(examples: MappedExamples, tokenizer: Tokenizer) -> str:
    facts = [
        [FORMAT, __version__],
        tokenizers.__version__,
        examples.print.order,
        hashlib.sha256(tokenizer.json_bytes).hexdigest(),
        tokenizer.special,
        tokenizer.settings.model_dump(mode="json"),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_KEY_CHARS]


def _cut_blocks(
    examples: Sequence[Example], tokenizer: Tokenizer, progress: Progress
) -> Iterator[FlatTokens]:
    """Cut blocks of texts, two at a time: while one is taken out of the library, the other keeps it busy."""
    with ThreadPoolExecutor(2) as pool, progress.task("tokenize", len(examples)) as task:
        ahead: deque[Future[FlatTokens]] = deque()
        for texts in text_blocks(examples, _BLOCK_ROWS):
            ahead.append(pool.submit(tokenizer.cut_flat, texts))
            if len(ahead) > 2:
                yield _done(ahead.popleft().result(), task)
        while ahead:
            yield _done(ahead.popleft().result(), task)


def _done(block: FlatTokens, task: Task) -> FlatTokens:
    task.advance(block.num_texts)
    return block


def _in_memory(tokenizer: Tokenizer, blocks: Sequence[FlatTokens]) -> TokenStore:
    ids = np.concatenate([np.zeros(0, np.int32), *(block.ids for block in blocks)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(block.lengths for block in blocks)])
    has_type_ids = any(block.type_ids is not None for block in blocks)
    type_ids = np.concatenate([_type_ids(block) for block in blocks]) if has_type_ids else None
    return TokenStore(tokenizer, ids, _offsets(lengths), type_ids, _owner(blocks))


def _write(folder: Path, tokenizer: Tokenizer, blocks: Iterator[FlatTokens]) -> dict[str, Any]:
    dtype = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<i4")
    lengths = [np.zeros(0, np.int64)]
    stripped: list[FlatTokens] = []
    with open(folder / _IDS, "wb") as ids, open(folder / _TYPE_IDS, "wb") as type_ids:
        has_type_ids = False
        for block in blocks:
            block.ids.astype(dtype).tofile(ids)
            _type_ids(block).tofile(type_ids)
            has_type_ids = has_type_ids or block.type_ids is not None
            lengths.append(block.lengths)
            # An array of its own: a slice, also an empty one, would keep the whole block in memory.
            stripped.append(block._replace(ids=np.zeros(0, np.int32), type_ids=None))
    if not has_type_ids:
        (folder / _TYPE_IDS).unlink()
    np.save(folder / _OFFSETS, _offsets(np.concatenate(lengths)))
    owner = _owner(stripped)
    if owner is not None:
        np.save(folder / _OWNER, owner)
    return {"format": FORMAT, "dtype": dtype.str}


def _open(folder: Path, manifest: dict[str, Any], tokenizer: Tokenizer) -> TokenStore:
    offsets = np.load(folder / _OFFSETS, mmap_mode="r").view(np.ndarray)
    has_type_ids, has_owner = (folder / _TYPE_IDS).exists(), (folder / _OWNER).exists()
    return TokenStore(
        tokenizer,
        _mapped(folder / _IDS, manifest["dtype"]),
        offsets,
        _mapped(folder / _TYPE_IDS, "u1") if has_type_ids else None,
        np.load(folder / _OWNER, mmap_mode="r").view(np.ndarray) if has_owner else None,
    )


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if not path.stat().st_size:
        return np.zeros(0, dtype)  # nothing can be mapped of an empty file
    return np.memmap(path, dtype, "r").view(np.ndarray)


def _type_ids(block: FlatTokens) -> NDArray[np.uint8]:
    return np.zeros(len(block.ids), np.uint8) if block.type_ids is None else block.type_ids


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _owner(blocks: Sequence[FlatTokens]) -> NDArray[np.int64] | None:
    """Return the text of each row over all blocks; None where each text is one row."""
    if all(block.owner is None for block in blocks):
        return None
    owners: list[NDArray[np.int64]] = []
    before = 0
    for block in blocks:
        own = np.arange(block.num_texts) if block.owner is None else block.owner
        owners.append(own + before)
        before += block.num_texts
    return np.concatenate(owners)
