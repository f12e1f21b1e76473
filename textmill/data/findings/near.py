"""Near-duplicates: rows that say the same with a few characters changed, their leaks and their conflicts.

Texts become sets of character shingles (5 characters; 3 where Chinese, Japanese or Korean characters
prevail), compared by Jaccard similarity. MinHash (Broder 1997) with locality-sensitive hashing proposes
pairs, the exact similarity of the sets decides. Each row is compared with the first row of the groups
found so far only, so that time grows with the rows and not with their pairs.

Promises: no pair below the threshold is reported. Validation and test rows come before training rows, so
that a group with rows on two sides is a leak into training.
What is not covered: texts below 25 shingles are not compared ("order 12" and "order 13" are different
texts); of a text the first 4,000 characters are; about 1 in 10 pairs just above the threshold is missed
(1 in 100 at 0.9).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from datasketch import MinHash, MinHashLSH

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example, Text
from textmill.data.findings.finding import NUM_NAMED, Finding, Table, excerpt, named, plain, rows_of
from textmill.data.report import Left, listed
from textmill.data.split import Side

THRESHOLD = 0.8
_PROPOSED_FROM = 0.7  # the hashing proposes from here on, so that few pairs at 0.8 are missed
_NUM_HASHES = 64
_MIN_SHINGLES = 25
_MAX_CHARS = 4000
_MAX_PROPOSED = 20  # groups with which one row is compared
_WIDTH, _WIDTH_CJK = 5, 3
_CJK_SHARE = 0.3
_FIRST_CJK = 0x2E80
_NUM_GROUPS = 20  # listed in the table
_GAP = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class NearGroup:
    """Rows that are near to the first of them."""

    text: str
    """The first row's text, shortened."""
    rows: tuple[str, ...]
    """Ids of the first of them."""
    num_rows: int
    similarity: float
    """Lowest similarity to the first row, 0 to 1."""
    sides: dict[Side, int]
    labels: dict[str, int]
    """Labels as they stand (several joined by commas) -> rows."""


@dataclass(frozen=True)
class NearDuplicates:
    """All groups of near-duplicates."""

    compared: int = 0
    """Rows looked at."""
    num_groups: int = 0
    repeats: Left = field(default_factory=Left)
    """Rows that nearly repeat another one."""
    leaks: Left = field(default_factory=Left)
    """Training rows near to a row of validation or test, and validation rows near to one of the test."""
    conflicts: Left = field(default_factory=Left)
    """Rows of groups in which the labels differ."""
    groups: tuple[NearGroup, ...] = ()
    """The largest groups, those that leak or contradict first."""


@dataclass(slots=True)
class _Group:
    leader: int
    shingles: npt.NDArray[np.uint32]
    rows: list[int]
    similarity: float = 1.0


@dataclass(slots=True)
class _Index:
    """The groups so far, found again by their leaders' sketches."""

    groups: list[_Group] = field(default_factory=list)
    hashing: MinHashLSH = field(
        default_factory=lambda: MinHashLSH(threshold=_PROPOSED_FROM, num_perm=_NUM_HASHES)
    )
    empty: MinHash = field(default_factory=lambda: MinHash(num_perm=_NUM_HASHES, hashfunc=int, seed=1))

    def add(self, row: int, shingles: npt.NDArray[np.uint32]) -> None:
        sketch = self.empty.copy()
        sketch.update_batch(shingles.tolist())
        for number in sorted(self.hashing.query(sketch))[:_MAX_PROPOSED]:
            group = self.groups[number]
            likeness = _jaccard(shingles, group.shingles)
            if likeness >= THRESHOLD:
                group.rows.append(row)
                group.similarity = min(group.similarity, likeness)
                return
        self.hashing.insert(len(self.groups), sketch, check_duplication=False)
        self.groups.append(_Group(row, shingles, [row]))


def compare_rows(
    examples: Sequence[Example], sides: Sequence[Side], progress: Progress = SILENT
) -> NearDuplicates:
    """Return the near-duplicates among rows.

    Args:
        examples: N rows.
        sides: the side of each.
        progress: who watches.
    """
    rank = {"test": 0, "valid": 1, "train": 2}
    order = sorted(range(len(examples)), key=lambda row: rank[sides[row]])
    index = _Index()
    with progress.task("compare texts", len(examples)) as task:
        for row in order:
            shingles = _shingles(examples[row].text)
            if len(shingles) >= _MIN_SHINGLES:
                index.add(row, shingles)
            task.advance()
    groups = [group for group in index.groups if len(group.rows) > 1]
    leaking = {row for group in groups for row in group.rows if sides[row] != sides[group.leader]}
    torn = [group for group in groups if len({examples[row].labels for row in group.rows}) > 1]
    repeats = sorted(row for group in groups for row in group.rows[1:])
    shown = [_describe(group, examples, sides) for group in groups]
    shown.sort(key=lambda group: (len(group.sides) < 2 and len(group.labels) < 2, -group.num_rows))
    return NearDuplicates(
        compared=len(examples),
        num_groups=len(groups),
        repeats=listed([examples[row].id for row in repeats]),
        leaks=listed([examples[row].id for row in sorted(leaking)]),
        conflicts=listed([examples[row].id for group in torn for row in group.rows]),
        groups=tuple(shown[:_NUM_GROUPS]),
    )


def find_near(near: NearDuplicates) -> Iterator[Finding]:
    """Yield near-duplicates, leaks and conflicts among them."""
    if near.leaks.count:
        message = (
            f"{rows_of(near.leaks.count)} nearly repeat a text of validation or test "
            f"(similarity {THRESHOLD} or more): {named(near.leaks.rows)}"
        )
        fix = "They flatter the test figures: put the rows of one group on one side, or drop them."
        yield Finding("near_leakage", "warning", message, fix, near.leaks.rows[:NUM_NAMED])
    if near.conflicts.count:
        message = (
            f"{rows_of(near.conflicts.count)} have nearly the same text as a row with another label: "
            f"{named(near.conflicts.rows)}"
        )
        fix = "Read these groups and correct the labels; one of each is wrong, or the classes overlap."
        yield Finding("near_conflicts", "warning", message, fix, near.conflicts.rows[:NUM_NAMED])
    if near.repeats.count:
        share = near.repeats.count / near.compared
        message = (
            f"{rows_of(near.repeats.count)} ({share:.1%}) nearly repeat another row, in "
            f"{near.num_groups:,} groups: {named(near.repeats.rows)}"
        )
        fix = "Keep one of each group unless they come from different people."
        level = "warning" if share > 0.1 else "note"
        yield Finding(
            "near_duplicates", "warning" if level == "warning" else "note", message, fix,
            near.repeats.rows[:NUM_NAMED],
        )  # fmt: skip


def near_table(near: NearDuplicates) -> Table:
    """Return the groups for people."""
    rows: list[tuple[object, ...]] = [
        (
            group.text,
            group.num_rows,
            f"{group.similarity:.0%}",
            ", ".join(f"{side} {num}" for side, num in group.sides.items()),
            ", ".join(f"{label} {num}" for label, num in group.labels.items()),
            ", ".join(group.rows[:2]),
        )
        for group in near.groups[:10]
    ]
    return Table("Near-duplicates", ("text", "rows", "alike", "sides", "labels", "ids"), rows)


def _describe(group: _Group, examples: Sequence[Example], sides: Sequence[Side]) -> NearGroup:
    by_side: dict[Side, int] = {}
    by_label: dict[str, int] = {}
    for row in group.rows:
        by_side[sides[row]] = by_side.get(sides[row], 0) + 1
        label = ", ".join(examples[row].labels) or "(none)"
        by_label[label] = by_label.get(label, 0) + 1
    ids = tuple(examples[row].id for row in group.rows[:NUM_NAMED])
    text = excerpt(examples[group.leader].text, 80)
    return NearGroup(text, ids, len(group.rows), round(group.similarity, 3), by_side, by_label)


def _shingles(text: Text) -> npt.NDArray[np.uint32]:
    """Return the sorted 32-bit hashes of a text's character n-grams."""
    line = _GAP.sub(" ", plain(text)[:_MAX_CHARS].casefold()).strip()
    codes = np.frombuffer(line.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    is_cjk = int((codes >= _FIRST_CJK).sum()) > _CJK_SHARE * len(codes)
    width = _WIDTH_CJK if is_cjk else _WIDTH
    num = len(codes) - width + 1
    if num < 1:
        return np.zeros(0, dtype=np.uint32)
    hashes = np.zeros(num, dtype=np.uint64)
    for place in range(width):  # FNV-like polynomial, then a finalizer of splitmix64 (Steele et al. 2014)
        hashes = hashes * np.uint64(1099511628211) + codes[place : place + num]
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    return np.unique(hashes >> np.uint64(32)).astype(np.uint32)


def _jaccard(one: npt.NDArray[np.uint32], other: npt.NDArray[np.uint32]) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)
