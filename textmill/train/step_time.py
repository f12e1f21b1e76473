"""How long an epoch will take, from a few real steps.

The model of a step: seconds = a + b * rows * length + c * rows * length^2. The first part is what every step
costs (the optimizer, calls), the second what every token costs, the third is attention. The three are
fitted, none below zero, to the times of a few batches of the epoch itself, from its shortest to its
longest; the epoch is the sum over all of its batches.

Promises: the steps are those of the training loop (forward, backward, clipping, optimizer); no state of a
random generator is left changed.
What is not covered: reading and tokenising, evaluation, checkpoints; a machine that is busier later on.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from textmill.core.types import Batch, Example
from textmill.encode.compare import SecondsOfEpoch
from textmill.encode.compare_candidates import Candidate
from textmill.encode.config import EncodeConfig
from textmill.encode.tokenizer import Tokenizer
from textmill.model.build import build
from textmill.model.classifier import Classifier
from textmill.model.config import ArchitectureConfig, ModelConfig
from textmill.order.sampler import BatchPlan
from textmill.train.checkpoint import Counters
from textmill.train.config import TrainConfig
from textmill.train.device import choose_hardware
from textmill.train.feed import RowFeed
from textmill.train.loss import Loss
from textmill.train.optim import build_optimizer
from textmill.train.probe import auto_max_tokens
from textmill.train.rows import EncodedRows, encode_rows
from textmill.train.step import Parts, make_step

_LABELS = ("a", "b")
_VERIFY_ROWS = 1000
_NUM_PROBED = 6
_SECONDS = 4.0
_ROUNDS = 3
_MANY_STEPS = 1_000_000_000  # the learning rate stays in its warm-up, so that no step leads astray


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a training step as a function of its shape."""

    per_step: float
    per_token: float
    per_pair: float
    """For each pair of positions in a row: attention."""

    def seconds(self, rows: npt.NDArray[np.float64], lengths: npt.NDArray[np.float64]) -> float:
        """Return the seconds of N steps with (N,) rows and (N,) padded lengths."""
        return float((_terms(rows, lengths) @ np.array(self._coefficients())).sum())

    def _coefficients(self) -> tuple[float, float, float]:
        return (self.per_step, self.per_token, self.per_pair)


@dataclass(frozen=True, slots=True)
class EpochTime:
    """What an epoch is predicted to take."""

    seconds: float
    """Over all rows."""
    sample_s: float
    """Over the rows that were looked at."""
    step_time: StepTime
    num_steps: int
    """Over the rows that were looked at."""


def fit_step_time(
    rows: npt.NDArray[np.float64], lengths: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
) -> StepTime:
    """Fit the three parts, none below zero, by least squares of the relative error.

    Args:
        rows: (N,) rows of each step.
        lengths: (N,) padded length of each step.
        seconds: (N,) what each took.
    """
    from scipy.optimize import nnls

    weighted = _terms(rows, lengths) / seconds[:, None]
    scale = weighted.max(axis=0)
    found, _ = nnls(weighted / scale, np.ones(len(seconds)))
    return StepTime(*(float(part) for part in found / scale))


def _terms(rows: npt.NDArray[np.float64], lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.stack([np.ones_like(rows), rows * lengths, rows * lengths**2], axis=1)


class EpochClock:
    """One candidate's classifier with the sample it is timed on."""

    def __init__(
        self, classifier: Classifier, tokenizer: Tokenizer, texts: Sequence[str], config: TrainConfig
    ) -> None:
        """Tokenise the sample and plan its epoch.

        Args:
            classifier: is trained on nonsense by the timing; pass one that is not needed any more.
            tokenizer: the one that belongs to it.
            texts: M texts, without labels.
            config: batch size, optimizer, device, threads.
        """
        labels = tuple(classifier.labels)
        examples = [
            Example(id=str(place), text=text, labels=(labels[place % len(labels)],))
            for place, text in enumerate(texts)
        ]
        self._rows: EncodedRows = encode_rows(examples, tokenizer, labels)
        self._hardware = choose_hardware(config)
        max_tokens = auto_max_tokens(config, self._rows.lengths)
        if isinstance(config.max_tokens, int):
            max_tokens = config.max_tokens
        plan = BatchPlan(self._rows.lengths, max_tokens, config.row_limit, seed=config.seed)
        self._batches = plan.plan_epoch(0)
        classifier.train()
        classifier.to(self._hardware.device)
        self._parts = Parts(
            classifier=classifier,
            tokenizer=tokenizer,
            optimizer=build_optimizer(classifier, config),
            loss=Loss(config.label_smoothing).to(self._hardware.device),
            feed=RowFeed(self._rows, plan, 1),
            valid=self._rows,
            config=config,
            hardware=self._hardware,
            run_dir=Path(),
            identity={},
            guard=None,
            num_steps=_MANY_STEPS,
        )

    def predict(self, num_rows: int | None = None, seconds: float = _SECONDS) -> EpochTime:
        """Time a few batches and predict an epoch.

        Args:
            num_rows: rows of the whole epoch; None for those of the sample.
            seconds: time for the measurement, more where three rounds take longer.
        """
        rows = np.array([len(batch) for batch in self._batches], dtype=np.float64)
        lengths = np.array([self._rows.lengths[batch].max() for batch in self._batches], dtype=np.float64)
        probed = _spread(lengths, rows)
        batches = [self._rows.batch(self._batches[place]) for place in probed]
        with self._hardware.claimed():
            times = self._time_in_turn(batches, seconds)
        step_time = fit_step_time(rows[probed], lengths[probed], np.array(times))
        sample_s = step_time.seconds(rows, lengths)
        whole = sample_s if num_rows is None else sample_s * num_rows / len(self._rows)
        return EpochTime(whole, sample_s, step_time, len(self._batches))

    def measure(self) -> float:
        """Make every step of the sample's epoch and return the seconds they take."""
        with self._hardware.claimed():
            self._step(self._rows.batch(self._batches[0]))
            begin = time.perf_counter()
            for batch in self._batches:
                self._step(self._rows.batch(batch))
            return time.perf_counter() - begin

    def _time_in_turn(self, batches: Sequence[Batch], seconds: float) -> list[float]:
        """Return the median seconds of each batch; they take turns, so that a slow moment hits all."""
        for batch in batches:
            self._step(batch)  # first calls allocate
        times: list[list[float]] = [[] for _ in batches]
        until = time.perf_counter() + seconds
        while len(times[0]) < _ROUNDS or time.perf_counter() < until:
            for found, batch in zip(times, batches, strict=True):
                found.append(self._step(batch))
        return [statistics.median(found) for found in times]

    def _step(self, batch: Batch) -> float:
        begin = time.perf_counter()
        make_step(self._parts, [batch], Counters(), 0.0)
        return time.perf_counter() - begin


def _spread(lengths: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the places of a few batches, evenly spread from the shortest to the longest."""
    order = np.lexsort((rows, lengths))
    wanted = np.linspace(0, len(order) - 1, min(_NUM_PROBED, len(order))).round().astype(np.int64)
    chosen: npt.NDArray[np.int64] = order[np.unique(wanted)]
    return chosen


@dataclass(frozen=True, slots=True)
class Verified:
    """A prediction beside what happened."""

    rows: int
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """How far off the prediction was, as a share of what was measured."""
        return abs(self.predicted_s - self.measured_s) / self.measured_s


def clock_for(
    candidate: Candidate, texts: Sequence[str], config: TrainConfig, architecture: ArchitectureConfig
) -> EpochClock:
    """Return the clock of a candidate: its own weights, or an encoder from scratch where it has none."""
    model = ModelConfig(
        backbone=str(candidate.folder), architecture=None if candidate.is_pretrained else architecture
    )
    encode = EncodeConfig(max_length=candidate.tokenizer.max_length)
    classifier, tokenizer, _ = build(model, _LABELS, encode, config.seed)
    return EpochClock(classifier, tokenizer, texts, config)


def epoch_predictor(
    config: TrainConfig | None = None,
    architecture: ArchitectureConfig | None = None,
    seconds: float = _SECONDS,
) -> SecondsOfEpoch:
    """Return the function that `encode.compare` asks for the cost of an epoch.

    Args:
        config: how training will go; None for the defaults.
        architecture: of the encoder for a tokenizer without weights; None for the defaults.
        seconds: time for the measurement of a candidate, more where three rounds take longer.
    """

    def seconds_of_epoch(candidate: Candidate, texts: Sequence[str], num_rows: int) -> float:
        clock = clock_for(candidate, texts, config or TrainConfig(), architecture or ArchitectureConfig())
        return clock.predict(num_rows, seconds).seconds

    return seconds_of_epoch


def verify_prediction(
    candidate: Candidate,
    texts: Sequence[str],
    config: TrainConfig | None = None,
    architecture: ArchitectureConfig | None = None,
    seconds: float = _SECONDS,
) -> Verified:
    """Predict an epoch over some of the texts, then train it and compare; arguments as above."""
    some = texts[:_VERIFY_ROWS]
    clock = clock_for(candidate, some, config or TrainConfig(), architecture or ArchitectureConfig())
    return Verified(len(some), clock.predict(seconds=seconds).sample_s, clock.measure())
