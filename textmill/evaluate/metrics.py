"""The numbers that describe a classifier with one label a row on labelled rows, with their uncertainty.

Promises: every number follows from the true class, the scores and nothing else; intervals are the
percentile bootstrap over rows (Efron 1979); the same generator state gives the same intervals.
One row and classes that never occur are fine.

A class that is neither true nor predicted in the rows at hand is left out of macro-F1, as
scikit-learn does by default; a precision or recall without a denominator is 0.

What is not covered: several labels a row (`multilabel.py`, which fills the same table); weights of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Metric: TypeAlias = Literal["accuracy", "f1_macro"]
Classes: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

NUM_BINS = 15  # Guo et al. (2017), "On Calibration of Modern Neural Networks", use 15 throughout
NUM_RESAMPLES = 1000
_MAX_DRAWS = 2**22  # drawn numbers held at once: 32 MiB


class Interval(NamedTuple):
    """The two ends of a 95 % interval."""

    low: float
    high: float


class Cell(NamedTuple):
    """A pair of classes that occurs, by index, and how often."""

    truth: int
    predicted: int
    rows: int


@dataclass(frozen=True, slots=True)
class ClassMetrics:
    """How one class fares."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int
    """Rows whose true class this is."""
    predicted: int
    """Rows for which this class was predicted."""
    threshold: float | None = None
    """The score from which the class is chosen; None with one label a row."""
    average_precision: float | None = None
    """Of a multi-label class over all thresholds; None with one label a row, or where it is never true."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows whose confidence lies in (low, high]."""

    low: float
    high: float
    count: int
    confidence: float
    """Mean confidence of these rows; 0 if there are none."""
    accuracy: float
    """Share of these rows that are right; 0 if there are none."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """All numbers of one evaluation."""

    rows: int
    accuracy: float
    """Share of rows answered right; with several labels a row those with exactly the right set."""
    accuracy_interval: Interval
    """Percentile bootstrap over rows, 95 %."""
    accuracy_wilson: Interval
    """Wilson (1927) score interval, 95 %: a second view, still sensible at 0, at 1 and for few rows."""
    f1_macro: float
    f1_macro_interval: Interval
    """Percentile bootstrap over rows, 95 %."""
    f1_micro: float
    f1_weighted: float
    log_loss: float
    """Mean of -ln(score of the true class), in nats; with several labels of each class's yes or no."""
    ece: float
    """Expected calibration error, see `reliability`."""
    per_class: tuple[ClassMetrics, ...]
    confusion: tuple[Cell, ...]
    """The cells of the confusion matrix that are not empty: at most as many as rows, however many classes.

    With several labels a row: for two classes the rows in which one is true and the other is chosen."""
    reliability: tuple[Bin, ...]
    num_resamples: int
    hamming: float | None = None
    """Share of the decisions about a row and a class that are wrong; None with one label a row."""

    @property
    def is_multilabel(self) -> bool:
        """Whether a row may have any number of labels."""
        return self.hamming is not None

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain values for a JSON file."""
        plain = asdict(self)
        for name in ("accuracy_interval", "accuracy_wilson", "f1_macro_interval"):
            interval: Interval = getattr(self, name)
            plain[name] = {"low": interval.low, "high": interval.high}
        return plain


class Counts(NamedTuple):
    """Rows by class: all that accuracy and F1 need; leading axes are free (resamples)."""

    hits: Floats  # (..., C) rows of the class that were predicted as it
    predicted: Floats  # (..., C) rows predicted as the class
    actual: Floats  # (..., C) rows of the class
    right: Floats | np.float64 | None = None  # (...) share of rows wholly right; None: one label a row


def measure(
    truth: Classes,
    scores: npt.NDArray[np.floating[Any]],
    labels: Sequence[str],
    rng: np.random.Generator,
    *,
    num_resamples: int = NUM_RESAMPLES,
) -> Metrics:
    """Return all metrics of a classifier on labelled rows.

    Args:
        truth: (N,) index of the true class, N >= 1.
        scores: (N, C) finite probabilities.
        labels: the C class names.
        rng: draws the resamples.
        num_resamples: how many resamples the intervals rest on.
    """
    num_rows, num_classes = scores.shape
    assert num_rows > 0, "metrics need at least one row"
    assert truth.shape == (num_rows,), "truth and scores must fit"
    assert len(labels) == num_classes, "labels and scores must fit"
    predicted = scores.argmax(axis=1)
    counts = count(truth, predicted, num_classes)
    per_class = class_metrics(counts, labels)
    (resampled,) = resample(truth, [predicted], num_classes, rng, num_resamples)
    bins = reliability(truth, scores)
    return Metrics(
        rows=num_rows,
        accuracy=float(value_of("accuracy", counts)),
        accuracy_interval=interval(value_of("accuracy", resampled)),
        accuracy_wilson=wilson_interval(int(counts.hits.sum()), num_rows),
        f1_macro=float(value_of("f1_macro", counts)),
        f1_macro_interval=interval(value_of("f1_macro", resampled)),
        f1_micro=float(2 * counts.hits.sum() / (counts.predicted.sum() + counts.actual.sum())),
        f1_weighted=float(sum(each.f1 * each.support for each in per_class) / num_rows),
        log_loss=log_loss(truth, scores),
        ece=expected_calibration_error(bins),
        per_class=per_class,
        confusion=confusion_cells(truth, predicted),
        reliability=bins,
        num_resamples=num_resamples,
    )


def confusion_cells(truth: Classes, predicted: Classes) -> tuple[Cell, ...]:
    """Return the pairs of true and predicted class that occur, in order, with their rows."""
    pairs, rows = np.unique(np.stack([truth, predicted], axis=1), axis=0, return_counts=True)
    return tuple(
        Cell(row, column, size) for (row, column), size in zip(pairs.tolist(), rows.tolist(), strict=True)
    )


def count(truth: Classes, predicted: Classes, num_classes: int) -> Counts:
    """Return the counts by class of rows with a true and a predicted class."""
    groups = (truth[truth == predicted], predicted, truth)
    return Counts(*(np.bincount(group, minlength=num_classes).astype(np.float64) for group in groups))


def value_of(metric: Metric, counts: Counts) -> Floats:
    """Return a metric for each leading index of `counts` (a plain number if there is none)."""
    if metric == "accuracy":
        if counts.right is not None:
            return np.asarray(counts.right)
        accuracy: Floats = counts.hits.sum(axis=-1) / counts.actual.sum(axis=-1)
        return accuracy
    occurs = counts.predicted + counts.actual > 0
    macro: Floats = _f1(counts).sum(axis=-1) / np.maximum(occurs.sum(axis=-1), 1)
    return macro


def class_metrics(counts: Counts, labels: Sequence[str]) -> tuple[ClassMetrics, ...]:
    """Return precision, recall and F1 of each class."""
    precision = _ratio(counts.hits, counts.predicted)
    recall = _ratio(counts.hits, counts.actual)
    f1 = _f1(counts)
    return tuple(
        ClassMetrics(
            label=label,
            precision=float(precision[i]),
            recall=float(recall[i]),
            f1=float(f1[i]),
            support=int(counts.actual[i]),
            predicted=int(counts.predicted[i]),
        )
        for i, label in enumerate(labels)
    )


def log_loss(truth: Classes, scores: npt.NDArray[np.floating[Any]]) -> float:
    """Return the mean of -ln(score of the true class), in nats.

    A score of 0 counts as the smallest normal float32, so that one such row adds 87 nats, not infinity.
    """
    chosen = scores[np.arange(len(truth)), truth].astype(np.float64)
    return float(-np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).mean())


def reliability(truth: Classes, scores: npt.NDArray[np.floating[Any]]) -> tuple[Bin, ...]:
    """Return the reliability table: 15 bins of equal width over the confidence (the highest score).

    Bin m holds the confidences in ((m - 1) / 15, m / 15] (Guo et al. 2017, section 2).
    """
    return bins_of(scores.max(axis=1).astype(np.float64), scores.argmax(axis=1) == truth)


def bins_of(confidence: Floats, right: npt.NDArray[np.bool_]) -> tuple[Bin, ...]:
    """Return the reliability table of (N,) confidences and whether what they speak of is true."""
    place = np.clip(np.ceil(confidence * NUM_BINS).astype(np.int64) - 1, 0, NUM_BINS - 1)
    counts = np.bincount(place, minlength=NUM_BINS)
    confidences = _ratio(np.bincount(place, weights=confidence, minlength=NUM_BINS), counts)
    accuracies = _ratio(np.bincount(place, weights=right, minlength=NUM_BINS), counts)
    return tuple(
        Bin(
            low=m / NUM_BINS,
            high=(m + 1) / NUM_BINS,
            count=int(counts[m]),
            confidence=float(confidences[m]),
            accuracy=float(accuracies[m]),
        )
        for m in range(NUM_BINS)
    )


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Return the mean gap between confidence and accuracy, bins weighted by rows (Guo et al. 2017, eq. 3)."""
    rows = sum(each.count for each in bins)
    return sum(each.count * abs(each.accuracy - each.confidence) for each in bins) / rows


def interval(values: Floats) -> Interval:
    """Return the percentile interval, 95 %, of resampled values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def wilson_interval(hits: int, rows: int) -> Interval:
    """Return the Wilson score interval, 95 %, of the share `hits / rows`."""
    # Imported here: it loads pandas and scipy.stats, which the gate's settings alone do not need.
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(hits, rows, alpha=0.05, method="wilson")
    return Interval(float(low), float(high))


def resample(
    truth: Classes,
    predictions: Sequence[Classes],
    num_classes: int,
    rng: np.random.Generator,
    num_resamples: int,
) -> list[Counts]:
    """Draw rows with replacement, the same rows for all predictions, and count.

    Rows with equal truth and predictions are exchangeable, so a resample is one multinomial draw
    over the distinct combinations: the same distribution as drawing N row numbers, much quicker.

    Args:
        truth: (N,) index of the true class.
        predictions: one (N,) array of predicted classes for each classifier.
        num_classes: C.
        rng: draws the resamples.
        num_resamples: R.

    Returns:
        For each classifier the counts, each (R, C).
    """
    rows = np.stack([truth, *predictions], axis=1)
    cells, sizes = np.unique(rows, axis=0, return_counts=True)  # (K, 1 + classifiers), (K,)
    shares = sizes / len(truth)
    sums: list[csr_array] = []
    for column in cells.T[1:]:
        same = cells[:, 0] == column
        sums.append(_class_sums(column, same, num_classes))
        sums.append(_class_sums(column, np.ones(len(cells), dtype=bool), num_classes))
    sums.append(_class_sums(cells[:, 0], np.ones(len(cells), dtype=bool), num_classes))
    parts: list[list[Floats]] = [[] for _ in sums]
    step = max(1, _MAX_DRAWS // len(cells))
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        draws = rng.multinomial(len(truth), shares, size=size).astype(np.float64)  # (r, K)
        for part, summing in zip(parts, sums, strict=True):
            part.append((summing @ draws.T).T)
    whole = [np.concatenate(part) for part in parts]
    actual = whole[-1]
    return [Counts(whole[2 * i], whole[2 * i + 1], actual) for i in range(len(predictions))]


def _class_sums(classes: Classes, chosen: npt.NDArray[np.bool_], num_classes: int) -> csr_array:
    """Return a (C, K) matrix that adds up the chosen ones of K cells by class."""
    cells = np.flatnonzero(chosen)
    shape = (num_classes, len(classes))
    return csr_array((np.ones(len(cells)), (classes[cells], cells)), shape=shape)


def _f1(counts: Counts) -> Floats:
    return _ratio(2 * counts.hits, counts.predicted + counts.actual)


def _ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Floats:
    """Return above / below, and 0 where below is 0."""
    result: Floats = np.divide(above, below, out=np.zeros(np.shape(above)), where=below > 0)
    return result
