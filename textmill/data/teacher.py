"""The teacher: TF-IDF and a linear model, a fast judge of how clear a text's label is.

Promises: word 1-2-grams catch phrases, character 2-5-grams catch stems, typing errors and scripts
without blanks (Chinese); the same texts and seed give the same numbers; out-of-fold confidences
never come from a model that has learnt the row's label or that of its text elsewhere; classes of one
or two rows break nothing; the cost of learning is bounded, in rows (a stratified sample), characters,
n-grams and classes (`judges.py`: logistic regression, naive Bayes where there are too many classes).

What is not covered: pairs of texts are read as one joined text.
Follows: multinomial logistic regression on sublinear TF-IDF (Salton and Buckley 1988), as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

from textmill.core.decision import SINGLE, Decision
from textmill.core.progress import SILENT, Progress
from textmill.core.types import Scores, Text
from textmill.data.folds import LabelSet, assign_folds, label_sets, strata, stratified_sample
from textmill.data.judges import MOST_WORK, Judge, fit_judge, given_matrix

MOST_ROWS = 20_000
"""Rows learnt from. Rank correlation of the confidences in 2,173 movie reviews with those of a teacher that
learnt 7,000: 0.51 from 400 rows, 0.65 from 875, 0.78 from 1,750, 0.90 from 3,500. It pays to learn many."""
_MOST_CHARS = 6_000_000
"""Characters learnt from, all rows together; counting their n-grams takes one core about 45 s."""
_MAX_CHARS = 5_000  # of a text: 512 tokens of English are about 2,500
_MOST_WORDS, _MOST_PIECES = 50_000, 100_000
"""n-grams of words and of characters, the most frequent; 7,000 movie reviews have 21,000 and 50,000."""
_LARGE_DATA = 500  # from so many rows on, what stands in one row alone is noise
_WORD = r"(?u)\b\w+\b"  # also of one letter, unlike scikit-learn's default
_CHUNK_SCORES = 4_000_000  # scores held at once


class Teacher:
    """A Predictor that learns thousands of texts in seconds."""

    def __init__(
        self, labels: tuple[str, ...], features: _Features, judge: Judge | None, decision: Decision
    ) -> None:
        """Build from parts; use `Teacher.fit`."""
        self._labels = labels
        self._features = features
        self._judge = judge
        self._decision = decision

    @classmethod
    def fit(
        cls,
        texts: Sequence[Text],
        labels: Sequence[str] | Sequence[LabelSet],
        seed: int,
        *,
        most_rows: int = MOST_ROWS,
    ) -> Teacher:
        """Return a teacher that has learnt the texts.

        Args:
            texts: N texts, at least one.
            labels: N class names, or N sets of them (several labels, each judged by itself); with only
                one class the teacher always answers it.
            seed: of the project.
            most_rows: of more rows a stratified sample is learnt.
        """
        assert len(texts) == len(labels) > 0, "a label for each text"
        is_multilabel = not isinstance(labels[0], str)
        sets = label_sets(labels)
        names = tuple(sorted({name for each in sets for name in each}))
        rows = _affordable(texts, strata(sets), most_rows, seed)
        features = _Features(len(rows))
        matrix = features.fit([texts[row] for row in rows])
        decision = Decision(is_multilabel=True) if is_multilabel else SINGLE
        if (len(names) == 1 and not is_multilabel) or matrix.shape[1] == 0 or not names:
            return cls(names, features, None, decision)
        number = {name: index for index, name in enumerate(names)}
        given = given_matrix([tuple(number[name] for name in sets[row]) for row in rows], len(names))
        judge = fit_judge(matrix, given, is_multilabel=is_multilabel, seed=seed)
        return cls(names, features, judge, decision)

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, sorted."""
        return self._labels

    @property
    def decision(self) -> Decision:
        """One class a text, or several where it has learnt several."""
        return self._decision

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`."""
        num_classes = len(self._labels)
        if self._judge is None or not len(texts):
            return np.full((len(texts), num_classes), 1 / max(1, num_classes), dtype=np.float32)
        judge = self._judge
        parts = [
            judge.probabilities(self._features.transform(texts[a:b]))
            for a, b in _chunks(len(texts), num_classes)
        ]
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class Judged:
    """What teachers say about N rows that they have not learnt."""

    confidence: npt.NDArray[np.float32]  # (N,) in the given label; mean over the given ones of several
    rivals: tuple[str, ...]
    """N names of the likeliest class; empty for several labels a row."""


def out_of_fold(
    texts: Sequence[Text],
    labels: Sequence[str] | Sequence[LabelSet],
    folds: int,
    seed: int,
    *,
    most_rows: int = MOST_ROWS,
    progress: Progress = SILENT,
) -> Judged:
    """Return the confidence in the given labels, by teachers that have not learnt the rows.

    Rows with one text are always in one fold. Of more than `most_rows` rows a stratified sample is
    learnt, and all are judged. n-grams are counted over the sample once, for they tell nothing of labels. A
    class that no other fold holds gets confidence 0: nothing else in the data speaks for it. A row to
    which no class applies (several labels) gets 1 - the largest probability.

    Args:
        texts: N texts, read one by one where they lie.
        labels: N class names, or N sets of them.
        folds: how many, at least 2.
        seed: of the project.
        most_rows: rows that are learnt.
        progress: is shown the rows that have been judged.
    """
    assert folds >= 2, "out of fold needs two folds"
    assert len(texts) == len(labels)
    num = len(texts)
    is_multilabel = num > 0 and not isinstance(labels[0], str)
    with progress.task("ask the teacher", num) as task:
        sets = label_sets(labels)
        found = _Answers(sets, is_multilabel)
        fold = assign_folds(texts, labels, folds, seed)
        learnt = _affordable(texts, strata(sets), most_rows, seed)
        features = _Features(len(learnt))
        matrix = features.fit([texts[row] for row in learnt])
        for number in range(folds):
            held = np.flatnonzero(fold == number)
            others = np.flatnonzero(fold[learnt] != number)
            if len(held) and len(others):
                judge, columns = _fit_fold(matrix[others], found, learnt[others], seed, folds)
                for a, b in _chunks(len(held), len(columns)):
                    rows = held[a:b]
                    scores = _ask(judge, features, [texts[row] for row in rows], len(columns))
                    found.take(rows, scores, columns)
                    task.advance(len(rows))
    return Judged(found.confidence, () if is_multilabel else tuple(found.rivals))


class _Answers:
    """Collects what the teachers of all folds say."""

    def __init__(self, sets: list[LabelSet], is_multilabel: bool) -> None:
        self.names = sorted({name for each in sets for name in each})
        number = {name: index for index, name in enumerate(self.names)}
        self.given = given_matrix([tuple(number[name] for name in each) for each in sets], len(self.names))
        self.is_multilabel = is_multilabel
        self.confidence = np.zeros(len(sets), dtype=np.float32)
        self.rivals = ["".join(each[:1]) for each in sets]

    def take(self, rows: npt.NDArray[np.int64], scores: Scores, columns: npt.NDArray[np.int64]) -> None:
        """Note the (B, K) scores of some rows; `columns` are the K classes that they are of."""
        place = np.full(len(self.names), -1)
        place[columns] = np.arange(len(columns))
        for row, answer in zip(rows.tolist(), scores, strict=True):
            given = place[self.given.indices[self.given.indptr[row] : self.given.indptr[row + 1]]]
            if len(given):
                self.confidence[row] = np.where(given >= 0, answer[given], 0.0).mean()
            else:
                self.confidence[row] = 1.0 - answer.max(initial=0.0)
            if not self.is_multilabel:
                self.rivals[row] = self.names[columns[answer.argmax()]]


def _fit_fold(
    matrix: csr_matrix, found: _Answers, rows: npt.NDArray[np.int64], seed: int, folds: int
) -> tuple[Judge | None, npt.NDArray[np.int64]]:
    """Return a judge of the classes that some rows have, and which those are; no n-grams, no judge."""
    given = found.given[rows]
    columns = np.unique(given.indices).astype(np.int64)
    if matrix.shape[1] == 0 or not len(columns):
        return None, columns
    judge = fit_judge(
        matrix,
        given[:, columns],
        is_multilabel=found.is_multilabel,
        seed=seed,
        most_work=MOST_WORK // folds,
    )
    return judge, columns


def _ask(judge: Judge | None, features: _Features, texts: list[Text], num_classes: int) -> Scores:
    if judge is None:
        return np.full((len(texts), num_classes), 1 / max(1, num_classes), dtype=np.float32)
    return judge.probabilities(features.transform(texts))


def _affordable(
    texts: Sequence[Text], stratum: npt.NDArray[np.int64], most_rows: int, seed: int
) -> npt.NDArray[np.int64]:
    """Return positions of a stratified sample of so many rows and about `_MOST_CHARS` characters at most."""
    rows = stratified_sample(stratum, most_rows, seed)
    num_chars = sum(len(_plain(texts[row])) for row in rows)
    if num_chars <= _MOST_CHARS:
        return rows
    return rows[stratified_sample(stratum[rows], int(len(rows) * _MOST_CHARS / num_chars), seed)]


def _chunks(num: int, num_classes: int) -> Iterator[tuple[int, int]]:
    size = max(1, min(2048, _CHUNK_SCORES // max(1, num_classes)))
    return ((start, min(start + size, num)) for start in range(0, num, size))


class _Features:
    """Word and character n-grams of N texts as one sparse matrix."""

    def __init__(self, num_texts: int) -> None:
        min_rows = 2 if num_texts >= _LARGE_DATA else 1
        common: dict[str, Any] = {"sublinear_tf": True, "min_df": min_rows, "dtype": np.float32}
        self._parts = [
            TfidfVectorizer(ngram_range=(1, 2), token_pattern=_WORD, max_features=_MOST_WORDS, **common),
            TfidfVectorizer(ngram_range=(2, 5), analyzer="char_wb", max_features=_MOST_PIECES, **common),
        ]

    def fit(self, texts: Sequence[Text]) -> csr_matrix:
        """Learn the n-grams and return (N, features); a part without any n-gram is left out."""
        plain = [_plain(text) for text in texts]
        fitted, matrices = [], []
        for part in self._parts:
            try:
                matrices.append(part.fit_transform(plain))
            except ValueError as err:
                # scikit-learn's words for a text without a single n-gram, or none in two rows.
                if "empty vocabulary" not in str(err) and "no terms remain" not in str(err):
                    raise
                continue
            fitted.append(part)
        self._parts = fitted
        return hstack(matrices, format="csr") if matrices else csr_matrix((len(plain), 0), dtype=np.float32)

    def transform(self, texts: Sequence[Text]) -> csr_matrix:
        """Return (B, features) for other texts."""
        assert self._parts, "without features there is no model to ask"
        plain = [_plain(text) for text in texts]
        return hstack([part.transform(plain) for part in self._parts], format="csr")


def _plain(text: Text) -> str:
    joined = text if isinstance(text, str) else "\n".join(text)
    return joined[:_MAX_CHARS]
