"""The numbers that describe a multi-label classifier on labelled rows, with their uncertainty.

The same names as for one label a row, where they mean: accuracy, the share of rows with exactly the
right set of classes; macro-F1, the mean over classes (those that are neither true nor chosen left out);
log loss, the mean binary cross-entropy over rows and classes; calibration, of a class's score against
how often the class is true, over all rows and classes. Added are the Hamming loss (Schapire and Singer
1999: the share of the N x C decisions that are wrong) and the average precision of each class (the sum
over recall steps of precision times step, as in scikit-learn), into which no threshold enters.

Promises: as in `metrics.py`; the intervals draw whole rows, so that classes that go together stay so.
What is not covered: ranking measures (coverage error, NDCG).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.core.decision import Decision
from textmill.core.types import Scores
from textmill.evaluate.metrics import (
    NUM_RESAMPLES,
    Cell,
    Counts,
    Floats,
    Metrics,
    bins_of,
    class_metrics,
    expected_calibration_error,
    interval,
    value_of,
    wilson_interval,
)

_MAX_DRAWS = 2**22  # drawn numbers held at once: 32 MiB
_TINY = float(np.finfo(np.float32).tiny)


def measure_sets(
    truth: npt.NDArray[np.integer[Any]],
    scores: Scores,
    labels: Sequence[str],
    decision: Decision,
    rng: np.random.Generator,
    *,
    num_resamples: int = NUM_RESAMPLES,
) -> Metrics:
    """Return all metrics of a multi-label classifier on labelled rows.

    Args:
        truth: (N, C) of 0 and 1, N >= 1.
        scores: (N, C) finite probabilities.
        labels: the C class names.
        decision: the thresholds by which classes are chosen.
        rng: draws the resamples.
        num_resamples: how many resamples the intervals rest on.
    """
    assert truth.shape == scores.shape, "truth and scores must fit"
    assert len(truth) > 0, "metrics need at least one row"
    applies = truth.astype(np.bool_)
    chosen = decision.chosen(scores)
    counts = count_sets(applies, chosen)
    (resampled,) = resample_sets(applies, [chosen], rng, num_resamples)
    per_class = tuple(
        replace(
            each,
            threshold=decision.threshold_of(place),
            average_precision=average_precision(applies[:, place], scores[:, place]),
        )
        for place, each in enumerate(class_metrics(counts, labels))
    )
    support = sum(each.support for each in per_class)
    bins = bins_of(scores.ravel().astype(np.float64), applies.ravel())
    num_right = int((applies == chosen).all(axis=1).sum())
    return Metrics(
        rows=len(truth),
        accuracy=float(value_of("accuracy", counts)),
        accuracy_interval=interval(value_of("accuracy", resampled)),
        accuracy_wilson=wilson_interval(num_right, len(truth)),
        f1_macro=float(value_of("f1_macro", counts)),
        f1_macro_interval=interval(value_of("f1_macro", resampled)),
        f1_micro=_f1_micro(counts),
        f1_weighted=float(sum(each.f1 * each.support for each in per_class) / max(1, support)),
        log_loss=_log_loss(applies, scores),
        ece=expected_calibration_error(bins),
        per_class=per_class,
        confusion=_together(applies, chosen),
        reliability=bins,
        num_resamples=num_resamples,
        hamming=float((applies != chosen).mean()),
    )


def count_sets(truth: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]) -> Counts:
    """Return the counts by class of (N, C) true and chosen classes, and the share of rows wholly right."""
    hits, predicted, actual = (
        each.sum(axis=0).astype(np.float64) for each in (truth & chosen, chosen, truth)
    )
    return Counts(hits, predicted, actual, np.float64((truth == chosen).all(axis=1).mean()))


def resample_sets(
    truth: npt.NDArray[np.bool_],
    choices: Sequence[npt.NDArray[np.bool_]],
    rng: np.random.Generator,
    num_resamples: int,
) -> list[Counts]:
    """Draw rows with replacement, the same rows for all classifiers, and count.

    Args:
        truth: (N, C) whether a class applies.
        choices: one (N, C) array of chosen classes for each classifier.
        rng: draws the resamples.
        num_resamples: R.

    Returns:
        For each classifier the counts, each (R, C), and (R,) shares of rows wholly right.
    """
    rows = np.concatenate([truth, *choices], axis=1)
    # Equal rows are exchangeable: one multinomial draw over the K distinct ones is the same, and quicker.
    distinct, sizes = np.unique(rows, axis=0, return_counts=True)
    true, *chosen = (part.astype(np.float64) for part in np.split(distinct, len(choices) + 1, axis=1))
    parts: list[list[list[Floats]]] = [[[], [], [], []] for _ in choices]
    step = max(1, _MAX_DRAWS // len(sizes))
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        draws = rng.multinomial(len(truth), sizes / len(truth), size=size).astype(np.float64)  # (r, K)
        for part, found in zip(parts, chosen, strict=True):
            is_right = (found == true).all(axis=1).astype(np.float64)
            sums = (draws @ (true * found), draws @ found, draws @ true, draws @ is_right / len(truth))
            for kept, values in zip(part, sums, strict=True):
                kept.append(values)
    return [Counts(*(np.concatenate(values) for values in part)) for part in parts]


def average_precision(truth: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating[Any]]) -> float | None:
    """Return the average precision of one class by (N,) truths and scores; None where it is never true."""
    num_positive = int(truth.sum())
    if not num_positive:
        return None
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # equal scores come together
    hits = np.cumsum(truth[order])[ends]
    return float((np.diff(hits, prepend=0) / num_positive * hits / (ends + 1)).sum())


def _f1_micro(counts: Counts) -> float:
    below = counts.predicted.sum() + counts.actual.sum()
    return float(2 * counts.hits.sum() / below) if below else 0.0


def _log_loss(truth: npt.NDArray[np.bool_], scores: Scores) -> float:
    right = np.where(truth, scores, 1 - scores).astype(np.float64)
    return float(-np.log(np.maximum(right, _TINY)).mean())


def _together(truth: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]) -> tuple[Cell, ...]:
    """Return for each pair of classes the rows in which the first is true and the second is chosen."""
    table = truth.astype(np.int64).T @ chosen.astype(np.int64)  # (C, C)
    rows, columns = np.nonzero(table)
    return tuple(
        Cell(row, column, int(table[row, column]))
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    )
