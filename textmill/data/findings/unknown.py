"""What the tokenizer does not know: UNK tokens, the rows with them, the characters behind them.

The tokenizer comes as a function, since `encode/` lies further down the data's way; `encode/unknown.py`
makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textmill.core.types import Example, Text
from textmill.data.findings.finding import NUM_NAMED, Finding, named

_MUCH_UNKNOWN = 0.01  # of all tokens
_NUM_CHARACTERS = 15


class UnknownCount(NamedTuple):
    """What a tokenizer made of N texts."""

    unknown: npt.NDArray[np.int64]
    """(N,) UNK tokens (or bytes, where the tokenizer falls back to bytes) of each text."""
    tokens: npt.NDArray[np.int64]
    """(N,) all tokens of each text, without special tokens."""
    pieces: tuple[tuple[str, int], ...]
    """Words and characters behind the UNK tokens with their counts, the most frequent first."""


CountUnknown = Callable[[Sequence[Text]], UnknownCount]


@dataclass(frozen=True)
class Unknown:
    """What the tokenizer does not know of a data set."""

    rows: int
    """Rows looked at."""
    token_share: float
    """UNK among all tokens, 0 to 1."""
    row_share: float
    """Rows with at least one, 0 to 1."""
    worst: tuple[tuple[str, int], ...]
    """The pieces behind them and how often, the most frequent first."""
    worst_rows: tuple[str, ...]
    """Ids of the rows with the largest share."""


def sum_up_unknown(examples: Sequence[Example], count: UnknownCount) -> Unknown:
    """Return the shares over N rows, N at least 1."""
    total = max(1, int(count.tokens.sum()))
    shares = count.unknown / np.maximum(count.tokens, 1)
    worst = [row for row in np.argsort(-shares, kind="stable")[:20].tolist() if count.unknown[row]]
    return Unknown(
        rows=len(examples),
        token_share=float(count.unknown.sum()) / total,
        row_share=float((count.unknown > 0).mean()),
        worst=count.pieces[:_NUM_CHARACTERS],
        worst_rows=tuple(examples[row].id for row in worst),
    )


def find_unknown(unknown: Unknown) -> Iterator[Finding]:
    """Yield what share of the tokens says nothing to the model."""
    if not unknown.token_share:
        return
    shown = ", ".join(f"{piece!r} ({num})" for piece, num in unknown.worst[:8])
    message = (
        f"the tokenizer does not know {unknown.token_share:.2%} of the tokens, in {unknown.row_share:.1%} of "
        f"the rows (the worst: {named(unknown.worst_rows)}); most often {shown}"
    )
    fix = "Clean these characters away if they are noise; else choose a backbone whose tokenizer knows them."
    level = "warning" if unknown.token_share > _MUCH_UNKNOWN else "note"
    yield Finding(
        "unknown_tokens", "warning" if level == "warning" else "note", message, fix,
        unknown.worst_rows[:NUM_NAMED],
    )  # fmt: skip
