"""Suspect labels: rows in whose label a teacher that has not seen them does not believe.

The teacher (TF-IDF + logistic regression) is taught on some folds and asked about the others: confident
learning (Northcutt, Jiang, Chuang 2021, equation 2: a class is believed from its rows' mean
self-confidence on), with the margin between its answer and the given label as the rank. The telling words
are found by leaving each out and asking again.

Promises: every suspect comes with its reason in words; rows come with the largest margin first; a teacher
that learnt nothing accuses nobody.
What is not covered: a wrong label that a linear model finds plausible; more rows than the sample; labels
that depend on more than words (negation, irony) are suspected too often, so read before correcting.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example, Text
from textmill.data.findings.finding import NUM_NAMED, Finding, Table, excerpt, named, plain, rows_of
from textmill.data.folds import assign_folds
from textmill.data.teacher import Teacher

_FOLDS = 3
_ENOUGH = 0.75  # believed at the latest: of easy classes, half of the right labels lie below the mean
_MIN_MARGIN = 0.3  # between the other label and the given one
_MIN_GAIN = 0.2  # of the way from the largest class's share to 1 that the teacher must make
_NO_SIGNAL_ROWS = 200  # with fewer rows, a teacher that learns nothing says little
_NO_SIGNAL_GAIN = 0.02
_NUM_SUSPECTS = 20
_MAX_PIECES = 40  # words of a text that are left out in turn
_NUM_TELLING = 3
_MAX_CLASSES = 8  # of a multi-label set, the most frequent
_FEW_ROWS = 20
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Suspect:
    """One row whose label may be wrong."""

    id: str
    text: str
    given: str
    """The label in the data (`not x` where a multi-label row lacks x)."""
    said: str
    """What the teacher says instead."""
    confidence: float
    """Of the teacher in what it says."""
    given_confidence: float
    """Of the teacher in the given label."""
    telling: tuple[str, ...]
    """Words without which the teacher would be less sure."""

    @property
    def reason(self) -> str:
        """Say why, in words."""
        words = f", by {', '.join(map(repr, self.telling))}" if self.telling else ""
        return f"labelled {self.given!r}, reads like {self.said!r} ({self.confidence:.0%} sure{words})"


@dataclass(frozen=True)
class Suspects:
    """What the teacher thinks of the labels of a sample."""

    rows: int = 0
    """Rows looked at."""
    count: int = 0
    """Suspects among them."""
    agreement: float = 0.0
    """Share of the rows where the teacher's answer is the label: how much its doubts are worth."""
    majority: float = 0.0
    """Share of the largest class: the agreement of who always answers it."""
    found: tuple[Suspect, ...] = ()
    """The first of them."""


@dataclass(frozen=True, slots=True)
class _Doubt:
    row: int
    margin: float
    said: str
    confidence: float
    given_confidence: float
    teacher: Teacher


@dataclass(frozen=True, slots=True)
class _Opinion:
    doubts: list[_Doubt]
    agreement: float
    majority: float

    @property
    def gain(self) -> float:
        """How far the teacher gets from the largest class's share towards 1."""
        return (self.agreement - self.majority) / max(1e-9, 1.0 - self.majority)


def suspect_labels(
    examples: Sequence[Example], is_multilabel: bool, seed: int, progress: Progress = SILENT
) -> Suspects:
    """Return the rows whose labels the teacher doubts most.

    Args:
        examples: N rows.
        is_multilabel: whether a row may have any number of labels.
        seed: of the project.
        progress: who watches.
    """
    if len(examples) < _FEW_ROWS:
        return Suspects()
    texts = [example.text for example in examples]
    if is_multilabel:
        return _suspect_each(examples, texts, seed, progress)
    labels = [example.labels[0] for example in examples]
    if not 2 <= len(set(labels)) <= len(labels) / 2:  # nothing to tell apart, or a class for each row
        return Suspects()
    with progress.task("doubt labels", _FOLDS) as task:
        opinion = _ask(texts, labels, seed, task.advance)
    doubts = opinion.doubts if opinion.gain >= _MIN_GAIN else []
    found = [_explain(doubt, examples, labels[doubt.row]) for doubt in _first(doubts)]
    return Suspects(len(examples), len(doubts), opinion.agreement, opinion.majority, tuple(found))


def find_suspects(suspects: Suspects) -> Iterator[Finding]:
    """Yield that there are suspects with the first reason, or that the words tell nothing of the labels."""
    if suspects.rows >= _NO_SIGNAL_ROWS and suspects.agreement < suspects.majority + _NO_SIGNAL_GAIN:
        message = (
            f"a word model that has not seen a row agrees with {suspects.agreement:.1%} of the labels; "
            f"always answering the largest class agrees with {suspects.majority:.1%}"
        )
        fix = "Check that data.text and data.label name the right columns and that the rows were not shifted."
        yield Finding("no_signal", "warning", message, fix)
    if not suspects.count:
        return
    ids = tuple(suspect.id for suspect in suspects.found)
    share = suspects.count / suspects.rows
    first = suspects.found[0]
    message = (
        f"{rows_of(suspects.count)} ({share:.1%}) may carry a wrong label: {named(ids)}; "
        f"{first.id} is {first.reason}"
    )
    fix = (
        f"Read them, the first ones first, and correct what is wrong (the teacher agrees with "
        f"{suspects.agreement:.0%} of all labels)."
    )
    level = "warning" if share > 0.02 and suspects.agreement > 0.9 else "note"
    yield Finding(
        "suspect_labels", "warning" if level == "warning" else "note", message, fix, ids[:NUM_NAMED]
    )


def suspects_table(suspects: Suspects) -> Table:
    """Return the suspects for people."""
    rows: list[tuple[object, ...]] = [
        (suspect.id, excerpt(suspect.text, 60), suspect.reason) for suspect in suspects.found[:10]
    ]
    return Table("Labels to look at", ("row", "text", "why"), rows)


def _suspect_each(
    examples: Sequence[Example], texts: Sequence[Text], seed: int, progress: Progress
) -> Suspects:
    """Ask for each frequent class whether a row has it."""
    counts = Counter(label for example in examples for label in example.labels)
    names = [name for name, _ in counts.most_common(_MAX_CLASSES)]
    found: list[tuple[float, Suspect]] = []
    opinions: list[_Opinion] = []
    num = 0
    with progress.task("doubt labels", _FOLDS * len(names)) as task:
        for name in names:
            labels = [name if name in example.labels else f"not {name}" for example in examples]
            if len(set(labels)) < 2:
                continue
            opinion = _ask(texts, labels, seed, task.advance)
            opinions.append(opinion)
            doubts = opinion.doubts if opinion.gain >= _MIN_GAIN else []
            num += len(doubts)
            found += [
                (doubt.margin, _explain(doubt, examples, labels[doubt.row])) for doubt in _first(doubts)
            ]
    found.sort(key=lambda pair: -pair[0])
    kept = tuple(suspect for _, suspect in found[:_NUM_SUSPECTS])
    best = max(opinions, key=lambda opinion: opinion.gain, default=_Opinion([], 1.0, 0.0))
    return Suspects(len(examples), num, best.agreement, best.majority, kept)


def _ask(texts: Sequence[Text], labels: Sequence[str], seed: int, advance: Callable[[], None]) -> _Opinion:
    """Return what teachers that have not seen the rows think of their labels."""
    fold = assign_folds(texts, labels, _FOLDS, seed)
    names = tuple(sorted(set(labels)))
    scores = np.zeros((len(texts), len(names)), dtype=np.float32)
    teachers: dict[int, Teacher] = {}
    for number in range(_FOLDS):
        held, learnt = np.flatnonzero(fold == number).tolist(), np.flatnonzero(fold != number).tolist()
        if held and learnt:
            teachers[number] = Teacher.fit([texts[i] for i in learnt], [labels[i] for i in learnt], seed)
            columns = [names.index(name) for name in teachers[number].labels]
            scores[np.ix_(held, columns)] = teachers[number].scores([texts[i] for i in held])
        advance()
    place = {name: index for index, name in enumerate(names)}
    given = np.array([place[label] for label in labels])
    own = scores[np.arange(len(given)), given]
    counts = np.bincount(given, minlength=len(names))
    believed_from = np.minimum(np.bincount(given, weights=own, minlength=len(names)) / counts, _ENOUGH)
    best = scores.argmax(axis=1)
    sure = scores.max(axis=1)
    # A class of one row, which no teacher has seen when asked, is no reason for doubt: its score is 0.
    doubted = (best != given) & (sure >= believed_from[best]) & (sure - own >= _MIN_MARGIN) & (own > 0)
    doubts = [
        _Doubt(row, float(sure[row] - own[row]), names[best[row]], float(sure[row]), float(own[row]),
               teachers[int(fold[row])])
        for row in np.flatnonzero(doubted).tolist()
    ]  # fmt: skip
    return _Opinion(doubts, float((best == given).mean()), float(counts.max() / len(given)))


def _first(doubts: Sequence[_Doubt]) -> list[_Doubt]:
    return sorted(doubts, key=lambda doubt: (-doubt.margin, doubt.row))[:_NUM_SUSPECTS]


def _explain(doubt: _Doubt, examples: Sequence[Example], given: str) -> Suspect:
    example = examples[doubt.row]
    return Suspect(
        id=example.id,
        text=excerpt(example.text, 200),
        given=given,
        said=doubt.said,
        confidence=round(doubt.confidence, 4),
        given_confidence=round(doubt.given_confidence, 4),
        telling=_telling_words(plain(example.text), doubt.said, doubt.teacher),
    )


def _telling_words(text: str, said: str, teacher: Teacher) -> tuple[str, ...]:
    """Return the words without which the teacher believes less in what it says."""
    pieces = list(_WORD.finditer(text))
    if any(len(piece.group()) > 12 and not piece.group().isascii() for piece in pieces):
        # Without blanks between words: every two characters.
        pieces = list(re.finditer(r"[^\W_]{2}", text))
    pieces = pieces[:_MAX_PIECES]
    variants = [text[: piece.start()] + text[piece.end() :] for piece in pieces]
    column = teacher.labels.index(said)
    believed = teacher.scores([text, *variants])[:, column]
    drops = believed[0] - believed[1:]
    ranked = np.argsort(-drops, kind="stable")[:_NUM_TELLING]
    return tuple(dict.fromkeys(pieces[place].group() for place in ranked.tolist() if drops[place] > 0.01))
