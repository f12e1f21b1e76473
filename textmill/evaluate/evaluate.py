"""One model, measured on labelled examples.

Promises: rows stay in the order of the examples; every fault of the examples or of the scores is
named with the ids concerned before a number is computed.

What is not covered: slices of the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.core.decision import SINGLE, Decision
from textmill.core.errors import DataError, ModelError, nearest
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example, Predictor, Scores
from textmill.evaluate.metrics import NUM_RESAMPLES, Classes, Interval, Metrics, measure
from textmill.evaluate.multilabel import measure_sets

_CHUNK = 512  # rows between two steps of the progress bar


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model answered on labelled rows, and how good that is."""

    labels: tuple[str, ...]
    """The C class names, in the order of the columns of `scores`."""
    ids: tuple[str, ...]
    """The N ids of the rows."""
    truth: Classes  # (N,) int64 index of the true class; (N, C) of 0 and 1 with several labels a row
    scores: Scores  # (N, C) float32
    metrics: Metrics
    seed: int = 0
    """The seed of the intervals."""
    decision: Decision = SINGLE
    """How the scores became classes."""

    @property
    def truth_sets(self) -> npt.NDArray[np.bool_]:
        """(N, C), whether a class applies, for one label a row and for several."""
        return as_sets(self.truth, len(self.labels))

    @property
    def chosen(self) -> npt.NDArray[np.bool_]:
        """(N, C), whether a class was chosen."""
        return self.decision.chosen(self.scores)

    def as_json(self) -> dict[str, Any]:
        """Return labels and metrics as plain values (rows are in predictions.parquet)."""
        return {
            "labels": list(self.labels),
            "is_multilabel": self.decision.is_multilabel,
            "seed": self.seed,
            "metrics": self.metrics.as_json(),
        }

    def as_lines(self) -> list[str]:
        """Return what a person wants to know first."""
        found = self.metrics
        classes = [f"  {each.label}: F1 {each.f1:.3f}, {each.support} rows" for each in found.per_class]
        if found.hamming is not None:
            return [
                f"Macro-F1 {found.f1_macro:.3f} (95 % {_span(found.f1_macro_interval)}), "
                f"micro-F1 {found.f1_micro:.3f}, exactly right {found.accuracy:.3f} "
                f"(95 % {_span(found.accuracy_interval)}), Hamming loss {found.hamming:.4f}, "
                f"{found.rows} rows",
                *(
                    f"{line}, threshold {each.threshold:.3f}, average precision "
                    + ("-" if each.average_precision is None else f"{each.average_precision:.3f}")
                    for line, each in zip(classes, found.per_class, strict=True)
                ),
            ]
        return [
            f"Accuracy {found.accuracy:.3f} (95 % {_span(found.accuracy_interval)}), "
            f"macro-F1 {found.f1_macro:.3f} (95 % {_span(found.f1_macro_interval)}), "
            f"calibration error {found.ece:.3f}, {found.rows} rows",
            *classes,
        ]


def _span(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"


def evaluate(
    predictor: Predictor,
    examples: Sequence[Example],
    *,
    seed: int = 0,
    num_resamples: int = NUM_RESAMPLES,
    progress: Progress = SILENT,
    title: str = "evaluate",
) -> Evaluation:
    """Return the answers of a predictor on labelled examples, with all metrics.

    Args:
        predictor: anything that answers for classification.
        examples: the rows, with labels that the predictor knows; one each unless it is a multi-label one.
        seed: seed of the bootstrap intervals.
        num_resamples: how many resamples the intervals rest on.
        progress: who watches.
        title: what the bar is called.

    Raises:
        DataError: no rows, an id that occurs twice, a row without exactly one label, or an unknown label.
        ModelError: scores that are no probabilities (not a number, below 0, sum not 1).
    """
    labels = tuple(predictor.labels)
    decision = predictor.decision
    truth = true_sets(examples, labels) if decision.is_multilabel else true_classes(examples, labels)
    parts: list[Scores] = []
    with progress.task(title, len(examples)) as task:
        for start in range(0, len(examples), _CHUNK):
            part = examples[start : start + _CHUNK]
            scores = predictor.scores([example.text for example in part])
            assert scores.shape == (len(part), len(labels)), "a predictor must give one score a row and label"
            parts.append(scores)
            task.advance(len(part))
    ids = [example.id for example in examples]
    return from_scores(labels, ids, truth, np.concatenate(parts), seed, num_resamples, decision)


def from_scores(
    labels: Sequence[str],
    ids: Sequence[str],
    truth: Classes,
    scores: Scores,
    seed: int = 0,
    num_resamples: int = NUM_RESAMPLES,
    decision: Decision = SINGLE,
) -> Evaluation:
    """Return the evaluation of scores that are already there.

    Args:
        labels: the C class names.
        ids: the N ids of the rows.
        truth: (N,) index of the true class, or (N, C) of 0 and 1 with several labels a row.
        scores: (N, C) probabilities.
        seed: seed of the bootstrap intervals.
        num_resamples: how many resamples the intervals rest on.
        decision: how the scores become classes.

    Raises:
        ModelError: scores that are no probabilities.
    """
    check_scores(scores, ids, is_multilabel=decision.is_multilabel)
    rng = numpy_generator(seed, "evaluate", "intervals")
    if decision.is_multilabel:
        metrics = measure_sets(truth, scores, labels, decision, rng, num_resamples=num_resamples)
    else:
        metrics = measure(truth, scores, labels, rng, num_resamples=num_resamples)
    return Evaluation(tuple(labels), tuple(ids), truth, scores.astype(np.float32), metrics, seed, decision)


def as_sets(truth: Classes, num_classes: int) -> npt.NDArray[np.bool_]:
    """Return (N, C), whether a class applies, from (N,) classes or from (N, C) of 0 and 1."""
    if truth.ndim == 2:
        return truth.astype(np.bool_)
    sets = np.zeros((len(truth), num_classes), dtype=np.bool_)
    sets[np.arange(len(truth)), truth] = True
    return sets


def true_classes(examples: Sequence[Example], labels: Sequence[str]) -> Classes:
    """Return the (N,) class index of each example.

    Raises:
        DataError: no rows, an id that occurs twice, a row without exactly one label, or an unknown label.
    """
    places = _places(examples, labels)
    unlabelled = [example.id for example in examples if len(example.labels) != 1]
    if unlabelled:
        raise DataError(
            "Every row of an evaluation must have exactly one label",
            got=_some(unlabelled, "rows with none or several"),
            fix="Label these rows or take them out; `textmill predict` needs no labels.",
        )
    return np.array([places[example.labels[0]] for example in examples], dtype=np.int64)


def true_sets(examples: Sequence[Example], labels: Sequence[str]) -> Classes:
    """Return (N, C) int64, 1 where a class applies to an example; a row may have no class.

    Raises:
        DataError: no rows, an id that occurs twice, or an unknown label.
    """
    places = _places(examples, labels)
    truth = np.zeros((len(examples), len(labels)), dtype=np.int64)
    for row, example in enumerate(examples):
        for label in example.labels:
            truth[row, places[label]] = 1
    return truth


def _places(examples: Sequence[Example], labels: Sequence[str]) -> dict[str, int]:
    """Return the place of each label, once the rows are known to be rows that can be measured on."""
    if not examples:
        raise DataError(
            "An evaluation needs at least one labelled row",
            got="none",
            fix="Give a file with labelled rows, or raise data.test_share.",
        )
    places = {label: place for place, label in enumerate(labels)}
    num_uses = Counter(example.id for example in examples)
    twice = [row_id for row_id, uses in num_uses.items() if uses > 1]
    if twice:
        raise DataError(
            "Every row must have an id of its own",
            got=_some(twice, "ids that occur more than once"),
            fix="Make the ids unique, or leave data.id out to number the rows.",
        )
    unknown = [example for example in examples if any(label not in places for label in example.labels)]
    if unknown:
        names = sorted({label for example in unknown for label in example.labels} - set(places))
        shown = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        raise DataError(
            "Every label of an evaluation must be known to the model",
            got=f"the unknown {'label' if len(names) == 1 else 'labels'} {shown} in "
            + _some([example.id for example in unknown], "rows"),
            fix=nearest(names[0], labels),
        )
    return places


def check_scores(scores: Scores, ids: Sequence[str], *, is_multilabel: bool = False) -> None:
    """Refuse scores that are no probabilities; those of several labels a row need not sum to 1.

    Raises:
        ModelError: a score that is not a number, below 0 or above 1, or rows whose sum is not 1.
    """
    lost = ~np.isfinite(scores).all(axis=1)
    if lost.any():
        raise ModelError(
            "The scores of a model must be finite numbers",
            got=_some([ids[i] for i in np.flatnonzero(lost).tolist()], "rows with NaN or infinity"),
            fix="The weights are damaged or training diverged: train again, with a lower train.lr.",
        )
    outside = (scores < 0).any(axis=1) | (scores > 1).any(axis=1)
    if is_multilabel and outside.any():
        raise ModelError(
            "The scores of a multi-label model must be probabilities: none below 0 or above 1",
            got=_some([ids[i] for i in np.flatnonzero(outside).tolist()], "rows where they are not"),
            fix="Let the predictor give probabilities (a sigmoid each), not logits.",
        )
    off = (scores < 0).any(axis=1) | (abs(scores.sum(axis=1, dtype=np.float64) - 1) > 1e-3)
    if off.any() and not is_multilabel:
        raise ModelError(
            "The scores of a row must be probabilities: none below 0, their sum 1",
            got=_some([ids[i] for i in np.flatnonzero(off).tolist()], "rows where they are not"),
            fix="Let the predictor give probabilities (softmax), not logits.",
        )


def _some(ids: Sequence[str], what: str, limit: int = 5) -> str:
    shown = ", ".join(repr(row_id) for row_id in ids[:limit]) + (", ..." if len(ids) > limit else "")
    return f"{len(ids):,} {what} ({shown})"
