"""What a tokenizer makes of the user's text, in numbers.

Promises: the tokenizer's files are read and never written, and no state of a call stays on it; numbers
are of the texts passed in, which whoever calls must name as a sample; tokens that frame a row ([CLS], </s>)
count for lengths and truncation, and for nothing else.

Sources: tokens per word and continued words as in Rust et al. (2021), "How Good is Your Tokenizer?",
sections 3.1 and 3.2 (a word here is one of `words.split_words`, a token belongs to each word it overlaps);
Renyi efficiency as in Zouhar et al. (2023), "Tokenization and the Noiseless Channel", equation 14, with
alpha 2.5, over the tokens that occur, as in the authors' tokenization-scorer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import tokenizers

from textmill.encode.compare_losses import Loss, backs, loss_of, probe_losses
from textmill.encode.lengths import LengthSummary, summarize_lengths
from textmill.encode.tokenizer import Tokenizer
from textmill.encode.words import Segmenter, split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 2.5
"""The power that agreed best with translation quality in Zouhar et al. (2023), section 5."""
_SPEED_SECONDS = 0.1
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Measures:
    """One tokenizer on one sample."""

    vocab_size: int
    tokens_per_word: float
    """Mean number of tokens that a word is cut into; Chinese words as the segmenter cuts them."""
    tokens_per_character: float
    """Tokens for each character that is not a blank."""
    tokens_per_han: float | None
    """Tokens for each Han character; None where there are hardly any."""
    characters_per_token: float
    continued_share: float
    """Share of the words that are cut into two tokens or more, 0 to 1."""
    unk_share: float
    """Share of the tokens that stand for something unknown, 0 to 1."""
    vocab_used_share: float
    """Share of the vocabulary that occurs at all, 0 to 1."""
    renyi_efficiency: float
    """How evenly the tokens are used, 0 to 1 (alpha 2.5)."""
    lengths: LengthSummary
    rows_per_s: float
    """Texts encoded in a second, in parallel as in training."""
    mb_per_s: float
    """Megabytes of UTF-8 encoded in a second."""
    losses: dict[str, Loss]
    """What is lost of digits, URLs and other probes."""
    whole_share: float
    """Share of the texts that lose no character (blanks, width, case and accents aside), 0 to 1."""

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain values."""
        return asdict(self)


def working_copy(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """Return a second tokenizer from the same bytes, without truncation and padding."""
    working = tokenizers.Tokenizer.from_str(tokenizer.json_bytes.decode())
    working.no_truncation()
    working.no_padding()
    working.encode_special_tokens = True
    return working


def measure(tokenizer: Tokenizer, texts: Sequence[str], segment: Segmenter | None = None) -> Measures:
    """Measure a tokenizer.

    Args:
        tokenizer: with the `max_length` that is wanted.
        texts: N texts, at least one of them with a word.
        segment: cuts Chinese into words; None for one word a character.
    """
    working = working_copy(tokenizer)
    counts = np.zeros(tokenizer.vocab_size, dtype=np.int64)
    words = _WordCounts()
    num_whole = 0
    for start in range(0, len(texts), _CHUNK):
        chunk = list(texts[start : start + _CHUNK])
        rows = working.encode_batch(chunk, add_special_tokens=False)
        for text, row in zip(chunk, rows, strict=True):
            np.add.at(counts, row.ids, 1)
            words.add(text, row.offsets, segment)
        num_whole += sum(
            loss_of(text, back) != "characters"
            for text, back in zip(chunk, backs(working, chunk), strict=True)
        )
    num_tokens = int(counts.sum())
    num_characters = sum(len("".join(text.split())) for text in texts)
    unk = _unknown_id(tokenizer)
    seconds = _seconds_to_encode(tokenizer, texts)
    num_bytes = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return Measures(
        vocab_size=tokenizer.vocab_size,
        tokens_per_word=words.tokens / max(1, words.words),
        tokens_per_character=num_tokens / max(1, num_characters),
        tokens_per_han=words.han_tokens / words.han if words.han > _CHUNK // 10 else None,
        characters_per_token=num_characters / max(1, num_tokens),
        continued_share=words.continued / max(1, words.words),
        unk_share=0.0 if unk is None else int(counts[unk]) / max(1, num_tokens),
        vocab_used_share=int((counts > 0).sum()) / max(1, tokenizer.vocab_size),
        renyi_efficiency=renyi_efficiency(counts),
        lengths=summarize_lengths(tokenizer.count_tokens(texts), tokenizer.max_length),
        rows_per_s=len(texts) / seconds,
        mb_per_s=num_bytes / 1e6 / seconds,
        losses=probe_losses(working),
        whole_share=num_whole / max(1, len(texts)),
    )


def renyi_efficiency(counts: NDArray[np.int64], alpha: float = ALPHA) -> float:
    """Return H_alpha(p) / log V over the V tokens that occur, 0 to 1.

    Args:
        counts: how often each token occurs.
        alpha: the power, not 1.
    """
    seen = counts[counts > 0]
    if len(seen) < 2:
        return 1.0
    shares = seen / seen.sum()
    return float(np.log((shares**alpha).sum()) / (1.0 - alpha) / np.log(len(seen)))


class _WordCounts:
    """Adds up how words are cut."""

    def __init__(self) -> None:
        self.words = self.tokens = self.continued = self.han = self.han_tokens = 0

    def add(self, text: str, offsets: Sequence[tuple[int, int]], segment: Segmenter | None) -> None:
        """Count the words of one text; `offsets` are the places of its tokens in it, ascending."""
        words = split_words(text, segment)
        if not words:
            return
        places = np.array([place for place in offsets if place[0] < place[1]], dtype=np.int64).reshape(-1, 2)
        spans = np.array([(word.begin, word.end) for word in words], dtype=np.int64)
        # Tokens stand in order: those that begin before a word's end, less those that end by its begin.
        begun = np.searchsorted(places[:, 0], spans[:, 1], side="left")
        pieces = begun - np.searchsorted(places[:, 1], spans[:, 0], side="right")
        self.words += len(words)
        self.tokens += int(pieces.sum())
        self.continued += int((pieces > 1).sum())
        is_han = np.array([word.is_han for word in words])
        self.han += int((spans[is_han, 1] - spans[is_han, 0]).sum())
        self.han_tokens += int(pieces[is_han].sum())


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id that stands for what the vocabulary lacks; None where there is no such id."""
    table = json.loads(tokenizer.json_bytes)["model"]
    if isinstance(table.get("unk_id"), int):
        return int(table["unk_id"])
    name = table.get("unk_token")
    found = None if name is None else working_copy(tokenizer).token_to_id(name)
    return None if found is None else int(found)


def _seconds_to_encode(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Return the seconds that encoding all texts once takes: the best of as many rounds as fit."""
    best, spent = float("inf"), 0.0
    while spent < _SPEED_SECONDS:
        begin = time.perf_counter()
        tokenizer.encode(texts)
        seconds = time.perf_counter() - begin
        best, spent = min(best, seconds), spent + seconds
    return best
