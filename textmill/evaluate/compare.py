"""Is the second model better than the first, on the same rows?

Promises: both models are measured on the same resampled rows (paired bootstrap), so that what is
hard for both cancels out; the exact McNemar test (McNemar 1947) is a second view on accuracy; the
verdict says "cannot tell" when the interval holds 0.

What is not covered: more than two models (no correction for many comparisons); models with
different sets of labels; noise from training (that needs several seeds).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.core.decision import SINGLE, Decision
from textmill.core.errors import DataError
from textmill.core.seeds import numpy_generator
from textmill.evaluate.evaluate import Evaluation
from textmill.evaluate.metrics import (
    NUM_RESAMPLES,
    Classes,
    Metric,
    count,
    interval,
    resample,
    value_of,
)
from textmill.evaluate.multilabel import count_sets, resample_sets

METRIC_NAMES: dict[Metric, str] = {"accuracy": "accuracy", "f1_macro": "macro-F1"}


@dataclass(frozen=True, slots=True)
class Difference:
    """How much a metric differs, second minus first, on the same rows."""

    metric: Metric
    rows: int
    first: float
    second: float
    difference: float
    low: float
    """Lower end of the 95 % interval of the difference."""
    high: float
    """Upper end of the 95 % interval of the difference."""

    def rows_to_tell(self, threshold: float = 0.0) -> int | None:
        """Return about how many rows would move the interval off `threshold`.

        The width of an interval shrinks with the square root of the number of rows; None if the
        difference is the threshold itself, so that no number of rows tells.
        """
        gap = self.difference - threshold
        reach = self.difference - self.low if gap > 0 else self.high - self.difference
        if gap == 0 or not math.isfinite(reach / gap):
            return None
        return max(1, math.ceil(self.rows * (reach / gap) ** 2))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the same rows."""

    difference: Difference
    only_first_right: int
    only_second_right: int
    mcnemar_p: float
    """Two-sided exact p-value: how often chance alone splits these rows so unevenly."""

    @property
    def verdict(self) -> str:
        """One sentence for a reader: better, worse or cannot tell, with the interval."""
        it = self.difference
        name = METRIC_NAMES[it.metric]
        range_ = f"95 % interval {_points(it.low)} to {_points(it.high)} points, {it.rows:,} rows"
        if it.low > 0:
            return f"The second model is better: {name} {_points(it.difference)} points ({range_})."
        if it.high < 0:
            return f"The second model is worse: {name} {_points(it.difference)} points ({range_})."
        rows = it.rows_to_tell()
        more = "" if rows is None or rows <= it.rows else f"; about {rows:,} rows would be needed to tell"
        return (
            "These rows cannot tell the two models apart: "
            f"{name} {_points(it.difference)} points ({range_}){more}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the numbers and the verdict as plain values."""
        it = self.difference
        return {
            "metric": it.metric,
            "rows": it.rows,
            "first": it.first,
            "second": it.second,
            "difference": it.difference,
            "low": it.low,
            "high": it.high,
            "only_first_right": self.only_first_right,
            "only_second_right": self.only_second_right,
            "mcnemar_p": self.mcnemar_p,
            "verdict": self.verdict,
        }


def paired_difference(
    truth: Classes,
    first_scores: npt.NDArray[np.floating[Any]],
    second_scores: npt.NDArray[np.floating[Any]],
    labels: Sequence[str],
    metric: Metric,
    rng: np.random.Generator,
    *,
    num_resamples: int = NUM_RESAMPLES,
    decisions: tuple[Decision, Decision] = (SINGLE, SINGLE),
) -> Difference:
    """Return second minus first in `metric`, with a 95 % interval over resampled rows.

    Args:
        truth: (N,) index of the true class, or (N, C) of 0 and 1 with several labels a row; N >= 1.
        first_scores: (N, C) finite scores of the first model.
        second_scores: (N, C) finite scores of the second model, rows in the same order.
        labels: the C class names, in the order of the columns of both.
        metric: what is compared.
        rng: draws the resamples.
        num_resamples: how many resamples the interval rests on.
        decisions: how the scores of each model become classes, its thresholds in the order of `labels`.
    """
    shape = (len(truth), len(labels))
    assert len(truth) > 0, "a comparison needs at least one row"
    for scores in (first_scores, second_scores):
        assert scores.shape == shape, "scores must fit truth and labels"
        assert np.isfinite(scores).all(), "scores must be finite"
    if truth.ndim == 2:
        applies = truth.astype(np.bool_)
        pairs = zip(decisions, (first_scores, second_scores), strict=True)
        choices = [decision.chosen(scores.astype(np.float32)) for decision, scores in pairs]
        values = [float(value_of(metric, count_sets(applies, chosen))) for chosen in choices]
        first, second = resample_sets(applies, choices, rng, num_resamples)
    else:
        predictions = [first_scores.argmax(axis=1), second_scores.argmax(axis=1)]
        values = [float(value_of(metric, count(truth, predicted, len(labels)))) for predicted in predictions]
        first, second = resample(truth, predictions, len(labels), rng, num_resamples)
    low, high = interval(value_of(metric, second) - value_of(metric, first))
    return Difference(
        metric=metric,
        rows=len(truth),
        first=values[0],
        second=values[1],
        difference=values[1] - values[0],
        low=low,
        high=high,
    )


def compare(first: Evaluation, second: Evaluation, metric: Metric = "f1_macro", seed: int = 0) -> Comparison:
    """Return how the second model differs from the first on the same rows.

    The rows may come in any order: they are matched by id.

    Raises:
        DataError: the two were not measured on the same rows, with the same truth and labels.
    """
    order = _matching_rows(first, second)
    if set(first.labels) != set(second.labels):
        raise DataError(
            "Two models can only be compared if they know the same labels",
            got=f"{_listed(set(first.labels) ^ set(second.labels))} known to one of them only",
            fix="Train both on data with the same classes.",
        )
    columns = [second.labels.index(label) for label in first.labels]
    second_scores = second.scores[order][:, columns]
    truth = first.truth_sets
    differs = (truth != second.truth_sets[order][:, columns]).any(axis=1)
    if differs.any():
        row = int(differs.argmax())
        theirs = _names(second.truth_sets[order[row]], second.labels)
        raise DataError(
            "Two models can only be compared on rows with the same truth",
            got=f"row {first.ids[row]!r} with the label {_names(truth[row], first.labels)} in one "
            f"and {theirs} in the other",
            fix="Evaluate both on the same file.",
        )
    rng = numpy_generator(seed, "evaluate", "compare", metric)
    decisions = (first.decision, second.decision.for_labels(second.labels, first.labels))
    difference = paired_difference(
        first.truth, first.scores, second_scores, first.labels, metric, rng, decisions=decisions
    )
    first_right = (first.chosen == truth).all(axis=1)
    second_right = (decisions[1].chosen(second_scores) == truth).all(axis=1)
    only_first = int((first_right & ~second_right).sum())
    only_second = int((~first_right & second_right).sum())
    return Comparison(difference, only_first, only_second, mcnemar_p(only_first, only_second))


def mcnemar_p(only_first_right: int, only_second_right: int) -> float:
    """Return the two-sided exact p-value of McNemar's test from the rows on which the two disagree."""
    if only_first_right + only_second_right == 0:
        return 1.0
    # Imported here: it loads pandas and scipy.stats, which the gate does not need.
    from statsmodels.stats.contingency_tables import mcnemar

    table = [[0, only_first_right], [only_second_right, 0]]
    return min(1.0, float(mcnemar(table, exact=True).pvalue))


def _matching_rows(first: Evaluation, second: Evaluation) -> Classes:
    """Return, for each row of `first`, where `second` has the row with the same id."""
    places = {row_id: place for place, row_id in enumerate(second.ids)}
    strangers = set(first.ids) ^ set(second.ids)
    if strangers:
        raise DataError(
            "Two models can only be compared on the same rows",
            got=f"{len(first.ids):,} and {len(second.ids):,} rows, of which {len(strangers):,} are in one "
            f"of them only ({_listed(strangers)})",
            fix="Evaluate both on the same file.",
        )
    return np.array([places[row_id] for row_id in first.ids], dtype=np.int64)


def _names(applies: npt.NDArray[np.bool_], labels: Sequence[str]) -> str:
    chosen = [repr(label) for label, is_true in zip(labels, applies.tolist(), strict=True) if is_true]
    return ", ".join(chosen) or "none"


def _listed(names: set[str], limit: int = 5) -> str:
    shown = ", ".join(repr(name) for name in sorted(names)[:limit])
    return shown if len(names) <= limit else f"{shown}, ..."


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"
