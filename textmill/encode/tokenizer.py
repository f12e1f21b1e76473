"""The door to tokenizers: one object that cuts text into ids, the same in training and serving.

Promises:
- tokenizer.json is kept and saved byte for byte; no truncation or padding state of a call, and none
  of the file's own, has any effect or is ever written;
- special tokens in a user's text (`[SEP]`, `</s>`) are plain text;
- half a surrogate pair becomes U+FFFD, a whole pair becomes its character;
- a row never has more than `max_length` tokens and never has none; of a longer text is kept what the
  rule for long texts says (`long_text.py`), in training and serving alike.
`Tokenizer.from_file` loads neither torch nor transformers. Rows are encoded in parallel by the
tokenizers library itself; after a fork it falls back to one thread, which is safe.
What is not covered: slow tokenizers without a fast form (transformers then says so).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tokenizers

from textmill.core.config import parse_config
from textmill.core.errors import DataError, ModelError
from textmill.core.files import write_atomic, write_json
from textmill.core.types import Text
from textmill.encode.config import LongText, WindowPool
from textmill.encode.long_text import Cut, cut_long
from textmill.encode.padding import Encoded, PadSide, lengths_of
from textmill.encode.settings import (
    TokenizerSettings,
    decide_max_length,
    pad_side_of,
    pad_token_of,
    read_table,
    reads_type_ids,
    special_names,
)
from textmill.encode.source import find_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VOCABULARY = "tokenizer.json"
_SETTINGS = "tokenizer_settings.json"
_KEPT = (_VOCABULARY, "tokenizer_config.json", "special_tokens_map.json")
"""What transformers' AutoTokenizer needs; kept as bytes."""
_VOCABULARIES = (
    *("vocab.txt", "vocab.json", "spiece.model", "spm.model", "tokenizer.model"),
    *("sentencepiece.bpe.model", "bpe.codes", "vocab.bpe"),
)
"""Older forms from which transformers builds tokenizer.json."""
_CLS_TOKENS = ("<cls>", "[CLS]")
"""Names of the token for the whole text; RoBERTa types use <s>, which always comes first."""


class FlatTokens(NamedTuple):
    """Rows of token ids behind one another."""

    ids: NDArray[np.int32]  # (sum of the lengths,)
    type_ids: NDArray[np.uint8] | None  # like ids; None where all are zero
    lengths: NDArray[np.int64]  # (R,)
    owner: NDArray[np.int64] | None  # (R,) index of the text of each row; None where each text is one row
    num_texts: int


class Tokenizer:
    """Cuts texts to token ids."""

    def __init__(
        self, files: Mapping[str, bytes], settings: TokenizerSettings, notes: Sequence[str] = ()
    ) -> None:
        """Build from the bytes of a tokenizer's files; prefer `load_tokenizer` or `from_file`."""
        self._files = dict(files)
        self.settings = settings
        self.notes = tuple(notes)
        """Sentences that the user should read (a length limit that was lowered)."""
        self._cutting = self._working_copy()
        # Head and tail are cut by the library; head-tail and windows by `long_text.py`.
        side = "left" if settings.long_text == "tail" else "right"
        self._cutting.enable_truncation(self.max_length, direction=side)

    @classmethod
    def from_file(
        cls, folder: Path, max_length: int = 512, *, config: Mapping[str, Any] | None = None
    ) -> Tokenizer:
        """Load from a folder that has tokenizer.json, without transformers.

        Args:
            folder: a folder written by `save` (its settings then hold, and `max_length` can only
                lower them), or any folder with tokenizer.json.
            max_length: longest row wanted, in tokens.
            config: config.json of the model that will read the ids; None for the folder's own.

        Raises:
            ModelError: no tokenizer.json, or one that cannot be read.
        """
        if not (folder / _VOCABULARY).is_file():
            raise ModelError(
                "A tokenizer's folder must hold tokenizer.json",
                got=f"{folder} without it",
                fix="Load it once with load_tokenizer, which builds the file from other vocabularies.",
            )
        files = {name: (folder / name).read_bytes() for name in _KEPT if (folder / name).is_file()}
        table = read_table(folder / _SETTINGS)
        if table:
            settings = parse_config(TokenizerSettings, table, str(folder / _SETTINGS))
            limit = min(max_length, settings.max_length)
            return cls(files, settings.model_copy(update={"max_length": limit}))
        tokenizer_config = read_table(folder / "tokenizer_config.json")
        if config is not None:
            tokenizer_config.pop("model_max_length", None)
        model_config = read_table(folder / "config.json") if config is None else config
        length, note = decide_max_length(max_length, model_config, tokenizer_config)
        settings = TokenizerSettings(
            max_length=length,
            pad_id=_find_pad_id(
                _working_copy(files[_VOCABULARY], frozenset()), model_config, tokenizer_config
            ),
            pad_side=pad_side_of(model_config, tokenizer_config),
            has_type_ids=reads_type_ids(model_config, tokenizer_config),
        )
        return cls(files, settings, [note] if note else [])

    @property
    def max_length(self) -> int:
        """Longest row in tokens, special tokens included."""
        return self.settings.max_length

    def with_long_text(self, long_text: LongText, overlap: float, pool: WindowPool) -> Tokenizer:
        """Return the same tokenizer with another rule for long texts.

        Args:
            long_text: what is read of a text longer than `max_length`.
            overlap: with windows, the share of one that the next repeats.
            pool: with windows, how their scores become one.
        """
        rule = {"long_text": long_text, "window_overlap": overlap, "window_pool": pool}
        return Tokenizer(self._files, self.settings.model_copy(update=rule), self.notes)

    @property
    def pad_id(self) -> int:
        """The id that fills short rows."""
        return self.settings.pad_id

    @property
    def pad_side(self) -> PadSide:
        """Where the fill goes."""
        return self.settings.pad_side

    @property
    def has_type_ids(self) -> bool:
        """Whether the model reads token_type_ids."""
        return self.settings.has_type_ids

    @property
    def vocab_size(self) -> int:
        """One more than the highest id, added tokens included."""
        return max(self._cutting.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @property
    def cls_is_last(self) -> bool:
        """Whether the token that stands for the whole text comes last, as in XLNet."""
        special: list[int] = self._cutting.encode("").ids
        tokens = [self._cutting.id_to_token(index) for index in special]
        return len(tokens) > 1 and tokens[-1] in _CLS_TOKENS and tokens[0] not in _CLS_TOKENS

    @property
    def json_bytes(self) -> bytes:
        """tokenizer.json as it was loaded."""
        return self._files[_VOCABULARY]

    @cached_property
    def _whole(self) -> tokenizers.Tokenizer:
        # A second copy, made only where lengths are counted: switching one copy to and fro is not
        # thread-safe.
        return self._working_copy()

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """Return the ids of each text, cut to `max_length` by the rule for long texts.

        Raises:
            DataError: an item is neither one string nor a pair of strings, or texts are cut to windows.
        """
        if self.settings.long_text == "windows":
            raise DataError(
                "One row for each text needs encode.long_text = head, tail or head-tail",
                got="windows, which give several rows for a long text",
                fix="Ask a predictor, or use Tokenizer.cut, which says to which text each row belongs.",
            )
        return self.cut(texts).rows

    def cut(self, texts: Sequence[Text]) -> Cut:
        """Return the rows of all texts: one each, or with windows as many as a text needs.

        Raises:
            DataError: an item is neither one string nor a pair of strings.
        """
        checked = _checked(texts)
        if self.settings.long_text in ("head", "tail"):
            rows = [self._row(row) for row in self._cutting.encode_batch_fast(checked)]
            return Cut(rows, np.arange(len(rows), dtype=np.int64))
        rows, owner = [], []
        for index, encoding in enumerate(self._whole.encode_batch_fast(checked)):
            found = self._cut_long(encoding) if len(encoding) > self.max_length else [self._row(encoding)]
            rows += found
            owner += [index] * len(found)
        return Cut(rows, np.array(owner, dtype=np.int64))

    def cut_flat(self, texts: Sequence[Text]) -> FlatTokens:
        """Return the rows of `cut` behind one another, which takes less time than as arrays of their own.

        Raises:
            DataError: an item is neither one string nor a pair of strings.
        """
        if self.settings.long_text not in ("head", "tail"):
            return _flat_of(self.cut(texts), len(texts), self.has_type_ids)
        rows = self._cutting.encode_batch_fast(_checked(texts))
        flat: list[int] = []
        type_flat: list[int] = []
        for row in rows:
            flat += row.ids or [self.pad_id]
        if self.has_type_ids and (
            not self._is_type_zero_alone or any(not isinstance(text, str) for text in texts)
        ):
            for row in rows:
                type_flat += row.type_ids or [0]
        lengths = np.fromiter((max(1, len(row)) for row in rows), np.int64, len(rows))
        type_ids = np.array(type_flat, np.uint8) if type_flat else None
        return FlatTokens(np.array(flat, np.int32), type_ids, lengths, None, len(texts))

    @cached_property
    def _is_type_zero_alone(self) -> bool:
        """Whether a text without a second one has only zeros as type ids (not so in XLNet)."""
        return not any(self._cutting.encode("a").type_ids)

    @property
    def special(self) -> list[str]:
        """Names of tokens that a text can never contain, beside those that tokenizer.json itself names."""
        return sorted(special_names(json.loads(self._files.get("tokenizer_config.json", b"{}"))))

    def count_tokens(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Return the (N,) number of tokens of each text before cutting, special tokens included."""
        rows = self._whole.encode_batch_fast(_checked(texts))
        return np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))

    def truncated(self, texts: Sequence[Text]) -> NDArray[np.bool_]:
        """Return (N,), true where something of a text is not read; windows read all of it."""
        if self.settings.long_text == "windows":
            return np.zeros(len(texts), dtype=np.bool_)
        return self.count_tokens(texts) > self.max_length

    def tokens(self, text: Text) -> list[str]:
        """Return the pieces of one text as the tokenizer names them, cut like its (first) row."""
        if self.settings.long_text in ("head", "tail"):
            pieces: list[str] = self._cutting.encode_batch(_checked([text]))[0].tokens
            return pieces
        names = (self._cutting.id_to_token(index) for index in self.cut([text]).rows[0].ids.tolist())
        return [name for name in names if name is not None]

    def save(self, folder: Path) -> None:
        """Write tokenizer.json byte for byte, what AutoTokenizer needs, and the settings."""
        for name, content in self._files.items():
            write_atomic(folder / name, content)
        write_json(folder / _SETTINGS, self.settings.model_dump())

    def __reduce__(self) -> tuple[object, ...]:
        """Cross a process border as files: the library's own pickle forgets that special tokens are text."""
        return (Tokenizer, (self._files, self.settings, self.notes))

    def _working_copy(self) -> tokenizers.Tokenizer:
        names = special_names(json.loads(self._files.get("tokenizer_config.json", b"{}")))
        return _working_copy(self._files[_VOCABULARY], names)

    def _cut_long(self, whole: tokenizers.Encoding) -> list[Encoded]:
        part = np.array([-1 if index is None else index for index in whole.sequence_ids], dtype=np.int64)
        settings = self.settings
        return cut_long(self._row(whole), part, settings.long_text, self.max_length, settings.window_overlap)

    def _row(self, row: tokenizers.Encoding) -> Encoded:
        ids = np.array(row.ids or [self.pad_id], dtype=np.int32)
        if not self.has_type_ids:
            return Encoded(ids, None)
        return Encoded(ids, np.array(row.type_ids or [0], dtype=np.int32))


def load_tokenizer(
    source: str | Path, max_length: int = 512, *, config: Mapping[str, Any] | None = None
) -> Tokenizer:
    """Load the tokenizer of a folder, `package:` path or hub name.

    Args:
        source: where it lies; a folder without tokenizer.json goes through transformers once.
        max_length: longest row wanted; cut to the model's limit, which is then said in `notes`.
        config: config.json of the model that will read the ids; None for the one beside the tokenizer.

    Raises:
        ModelError: nothing is there, or it cannot be read as a tokenizer.
    """
    folder = source if isinstance(source, Path) else find_source(source, with_weights=False)
    if (folder / _VOCABULARY).is_file():
        return Tokenizer.from_file(folder, max_length, config=config)
    model_config = read_table(folder / "config.json") if config is None else config
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        # transformers would make an empty tokenizer here, without a word.
        raise _no_tokenizer(folder, "none of " + ", ".join((_VOCABULARY, *_VOCABULARIES)))
    with tempfile.TemporaryDirectory(prefix="textmill-tokenizer-") as temporary:
        _convert(folder, Path(temporary))
        return Tokenizer.from_file(Path(temporary), max_length, config=model_config)


def _convert(folder: Path, target: Path) -> None:
    """Write the fast form of a tokenizer that has only a vocabulary file."""
    from transformers import AutoTokenizer

    try:
        AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False).save_pretrained(str(target))
    except Exception as err:
        # transformers has no error of its own here: OSError, ValueError, KeyError, ImportError were seen.
        reason = (str(err).strip().splitlines() or [type(err).__name__])[0][:200]
        raise _no_tokenizer(folder, reason) from err


def _no_tokenizer(folder: Path, reason: str) -> ModelError:
    return ModelError(
        "A backbone's folder must hold a tokenizer",
        got=f"{folder} ({reason})",
        fix="Put tokenizer.json (or vocab.txt and tokenizer_config.json) into the folder.",
    )


def _working_copy(content: bytes, special: frozenset[str]) -> tokenizers.Tokenizer:
    try:
        working = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as err:
        # The Rust side raises plain Exception.
        raise ModelError(
            "tokenizer.json must be readable by the tokenizers library",
            got=str(err)[:200],
            fix="Copy it again.",
        ) from err
    # The file's own truncation and padding must not work; the limit is textmill's.
    working.no_truncation()
    working.no_padding()
    # A user's "[SEP]" is text. This flag is not part of the file, so it is set on each load.
    working.encode_special_tokens = True
    # Some files list [SEP] and its kin as ordinary added tokens, for which the flag does nothing.
    framing = set(working.encode("", "").ids)
    for index, token in working.get_added_tokens_decoder().items():
        if not token.special and (index in framing or token.content in special):
            token.special = True
            working.add_special_tokens([token])
    return working


def _flat_of(cut: Cut, num_texts: int, has_type_ids: bool) -> FlatTokens:
    none = np.zeros(0, np.int32)
    ids = np.concatenate([none, *(row.ids for row in cut.rows)])
    type_ids = None
    if has_type_ids:
        found = np.concatenate([none, *(row.type_ids for row in cut.rows if row.type_ids is not None)])
        type_ids = found.astype(np.uint8) if found.any() else None
    owner = cut.owner if len(cut.rows) != num_texts else None
    return FlatTokens(ids, type_ids, lengths_of(cut.rows), owner, num_texts)


def _find_pad_id(
    working: tokenizers.Tokenizer, config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]
) -> int:
    for token in (pad_token_of(tokenizer_config), "[PAD]", "<pad>"):
        found = None if token is None else working.token_to_id(token)
        if found is not None:
            return int(found)
    for key in ("pad_token_id", "eos_token_id"):
        if isinstance(config.get(key), int):
            return int(config[key])
    # The mask comes from the lengths, so that any id can fill.
    return 0


def _checked(texts: Sequence[Text]) -> list[str | tuple[str, str]]:
    checked: list[str | tuple[str, str]] = []
    for index, text in enumerate(texts):
        match text:
            case str():
                checked.append(_whole_characters(text))
            case (str() as first, str() as second):
                checked.append((_whole_characters(first), _whole_characters(second)))
            case _:
                raise DataError(
                    "A text must be one string or a pair of strings",
                    got=f"{type(text).__name__} {str(text)[:60]!r} at position {index}",
                    fix="Turn the value into text first, or leave the row out.",
                )
    return checked


def _whole_characters(text: str) -> str:
    """Return `text` with half surrogate pairs as U+FFFD; JSON escapes can bring them in."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
