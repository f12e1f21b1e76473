"""What a tokenizer loses: decode(encode(text)) against the text.

Promises: a difference is named by the mildest reason that explains all of it; nothing is called lost
that only changes blanks, case, accents or width (which some tokenizers do by design).
What is not covered: whether a loss matters to the task.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal, TypeAlias

import tokenizers

Loss: TypeAlias = Literal["nothing", "blanks", "width", "case", "case and accents", "characters"]
"""What is lost; "characters": some cannot be had back, mostly because they became UNK."""

_ORDER: tuple[Loss, ...] = ("nothing", "blanks", "width", "case", "case and accents", "characters")

PROBES: dict[str, tuple[str, ...]] = {
    "digits": ("1234567890", "3.14159", "2024-02-29 23:59", "1,000,000"),
    "URLs": ("https://example.org/a_b?c=1&d=%20#top", "name.surname@example.org"),
    "emoji": ("😀", "👍🏽", "❤️", "🇨🇳"),
    "simplified": ("这本书很好看", "头发发现"),
    "traditional": ("這本書很好看", "頭髮發現", "臺灣"),
    "upper case": ("NASA and McDonald",),
    "accents": ("naïve café Ångström",),
}
"""Short texts whose loss would cost meaning, by kind."""


def loss_of(text: str, back: str) -> Loss:
    """Return what is missing in `back`, the decoded form of `text`."""
    if back == text:
        return "nothing"
    steps = (_without_blanks, _narrow, _lower, _bare)
    for step, loss in zip(steps, _ORDER[1:], strict=False):
        text, back = step(text), step(back)
        if text == back:
            return loss
    return "characters"


def probe_losses(working: tokenizers.Tokenizer) -> dict[str, Loss]:
    """Return the worst loss of each kind of text in `PROBES`.

    Args:
        working: a copy without truncation.
    """
    return {
        kind: worst([loss_of(text, back) for text, back in zip(texts, backs(working, texts), strict=True)])
        for kind, texts in PROBES.items()
    }


def backs(working: tokenizers.Tokenizer, texts: Sequence[str]) -> list[str]:
    """Return decode(encode(text)) of each text, without the tokens that frame a row."""
    rows = working.encode_batch_fast(list(texts), add_special_tokens=False)
    # UNK is a special token to most tokenizers: it must show, not vanish.
    decoded: list[str] = working.decode_batch([row.ids for row in rows], skip_special_tokens=False)
    return decoded


def worst(losses: Sequence[Loss]) -> Loss:
    """Return the gravest of several losses."""
    return max(losses, key=_ORDER.index, default="nothing")


def _without_blanks(text: str) -> str:
    return "".join(text.split())


def _narrow(text: str) -> str:
    narrow = unicodedata.normalize("NFKC", text)
    return _without_blanks("".join(c for c in narrow if not _only_chooses_a_form(c)))


def _only_chooses_a_form(char: str) -> bool:
    """Return whether a character has no form of its own (U+FE0F after an emoji, a joiner, a control)."""
    return "\ufe00" <= char <= "\ufe0f" or unicodedata.category(char) in ("Cf", "Cc")


def _lower(text: str) -> str:
    return text.lower()


def _bare(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return "".join(c for c in parts if unicodedata.category(c) != "Mn")
