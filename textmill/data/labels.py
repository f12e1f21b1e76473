"""Class names as people meant them.

Promises: labels that differ only by blanks or invisible characters become one, and that is told
with every spelling and its count; labels that differ by case are only named (they may be meant);
a word such as NA, None or null is a class like any other.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from textmill.core.progress import Progress

_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u2060\ufeff]")


@dataclass(frozen=True)
class LabelNames:
    """How the spellings found in the data became class names."""

    merged: dict[str, dict[str, int]] = field(default_factory=dict)
    """Class name -> each spelling that became it, with its count; only where there was more than one
    spelling or the spelling was not clean."""
    look_alikes: list[dict[str, int]] = field(default_factory=list)
    """Groups of spellings that look alike, with counts: those merged and those that differ by case."""

    def say_merged(self, progress: Progress) -> None:
        """Tell which spellings became one class."""
        for name, found in self.merged.items():
            if len(found) > 1:
                progress.say(f"labels that differ only by blanks are one class {name!r}: {found!r}")


def tidy_label(label: str) -> str:
    """Return a label without blanks at its ends, runs of blanks or invisible characters."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", label)).split())


def survey_labels(spellings: Iterable[str] | Mapping[str, int]) -> LabelNames:
    """Return what was merged and what looks alike among all labels of a data set, one by one or counted."""
    counts = Counter(spellings)
    by_name: dict[str, dict[str, int]] = {}
    by_look: dict[str, dict[str, int]] = {}
    for spelling, count in sorted(counts.items()):
        name = tidy_label(spelling)
        by_name.setdefault(name, {})[spelling] = count
        look = unicodedata.normalize("NFKC", name).casefold()
        by_look.setdefault(look, {})[spelling] = count
    return LabelNames(
        merged={name: found for name, found in by_name.items() if set(found) != {name}},
        look_alikes=[found for found in by_look.values() if len(found) > 1],
    )
