"""The teacher: TF-IDF and logistic regression, a fast judge of how clear a text's label is.

Promises: word 1-2-grams catch phrases, character 2-5-grams catch stems, typing errors and scripts
without blanks (Chinese); the same texts and seed give the same numbers; out-of-fold confidences
never come from a model that has seen the row's text; classes of one or two rows break nothing.

What is not covered: pairs of texts are read as one joined text.
Follows: multinomial logistic regression on sublinear TF-IDF (Salton and Buckley 1988), as in scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from textmill.core.decision import SINGLE, Decision
from textmill.core.seeds import numpy_generator
from textmill.core.types import Scores, Text

_LARGE_DATA = 500  # from so many rows on, what stands in one row alone is noise
_MAX_CHARS = 20_000  # of a text; n-grams of longer ones only cost memory
_PENALTY_C = 4.0  # inverse regularization strength
_MAX_STEPS = 300
_WORD = r"(?u)\b\w+\b"  # also of one letter, unlike scikit-learn's default


class Teacher:
    """A Predictor that learns thousands of texts in seconds."""

    def __init__(
        self, labels: tuple[str, ...], features: _Features, model: LogisticRegression | None
    ) -> None:
        """Build from parts; use `Teacher.fit`."""
        self._labels = labels
        self._features = features
        self._model = model

    @classmethod
    def fit(cls, texts: Sequence[Text], labels: Sequence[str], seed: int) -> Teacher:
        """Return a teacher that has learnt the texts.

        Args:
            texts: N texts, at least one.
            labels: N class names; with only one class the teacher always answers it.
            seed: of the project.
        """
        assert len(texts) == len(labels) > 0, "a label for each text"
        names = tuple(sorted(set(labels)))
        features = _Features(len(texts))
        matrix = features.fit(texts)
        if len(names) == 1 or matrix.shape[1] == 0:
            return cls(names, features, None)
        model = LogisticRegression(C=_PENALTY_C, max_iter=_MAX_STEPS, random_state=seed % 2**32)
        with warnings.catch_warnings():
            # A hundred steps more would move the confidences in the third digit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(matrix, list(labels))
        return cls(names, features, model)

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, sorted."""
        return self._labels

    @property
    def decision(self) -> Decision:
        """One class a text."""
        return SINGLE

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`."""
        if self._model is None or not len(texts):
            return np.full((len(texts), len(self._labels)), 1 / len(self._labels), dtype=np.float32)
        probabilities = self._model.predict_proba(self._features.transform(texts))
        assert tuple(self._model.classes_) == self._labels, "scikit-learn sorts classes as we do"
        return np.asarray(probabilities, dtype=np.float32)


def out_of_fold(
    texts: Sequence[Text], labels: Sequence[str], folds: int, seed: int
) -> npt.NDArray[np.float32]:
    """Return (N,) the confidence in the given label, by a teacher that has not seen the row.

    Rows with one text are always in one fold. A class that no other fold holds gets confidence 0:
    nothing else in the data speaks for it.

    Args:
        texts: N texts.
        labels: N class names.
        folds: how many, at least 2.
        seed: of the project.
    """
    assert folds >= 2, "out of fold needs two folds"
    assert len(texts) == len(labels)
    fold = assign_folds(texts, labels, folds, seed)
    confidence = np.zeros(len(texts), dtype=np.float32)
    for number in range(folds):
        held = [index for index in range(len(texts)) if fold[index] == number]
        learnt = [index for index in range(len(texts)) if fold[index] != number]
        if not held or not learnt:
            continue
        teacher = Teacher.fit([texts[i] for i in learnt], [labels[i] for i in learnt], seed)
        scores = teacher.scores([texts[i] for i in held])
        column = {name: index for index, name in enumerate(teacher.labels)}
        for row, index in enumerate(held):
            if labels[index] in column:
                confidence[index] = scores[row, column[labels[index]]]
    return confidence


def assign_folds(
    texts: Sequence[Text], labels: Sequence[str], folds: int, seed: int
) -> npt.NDArray[np.int64]:
    """Return (N,) fold numbers: each class dealt out evenly, rows with one text together."""
    by_class: dict[str, list[Text]] = {}
    for text, label in dict(zip(texts, labels, strict=True)).items():
        by_class.setdefault(label, []).append(text)
    number: dict[Text, int] = {}
    dealt = 0
    for label in sorted(by_class):
        unique = by_class[label]
        for index in numpy_generator(seed, "folds", label).permutation(len(unique)):
            number[unique[index]] = dealt % folds
            dealt += 1
    return np.array([number[text] for text in texts], dtype=np.int64)


class _Features:
    """Word and character n-grams of N texts as one sparse matrix."""

    def __init__(self, num_texts: int) -> None:
        min_rows = 2 if num_texts >= _LARGE_DATA else 1
        common: dict[str, Any] = {"sublinear_tf": True, "min_df": min_rows, "dtype": np.float32}
        self._parts = [
            TfidfVectorizer(ngram_range=(1, 2), token_pattern=_WORD, **common),
            TfidfVectorizer(ngram_range=(2, 5), analyzer="char_wb", **common),
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
