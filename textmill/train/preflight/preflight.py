"""The look over a model, its tokenizer and its rows before the first step, in seconds.

A loss that stays at ln C has causes that can be seen beforehand: weights that were not loaded, a tokenizer
of another model, a mask that is lost, labels of a wrong type, a frozen encoder, a rate that throws the
weights about, batches of one class. Each is probed for, and each finding names its fix.

Promises: the model is left as it was given, gradients cleared; random states and the number of threads are
put back; no file is written; the whole is bounded by rows, steps and seconds. A sound project gets no
warning.
What is not covered: several processes; what only shows after hundreds of steps (the guard watches that).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example
from textmill.data.findings.finding import Finding, Table, findings_table
from textmill.data.prepare import Splits
from textmill.encode.tokenizer import Tokenizer
from textmill.model.build import BuildNotes
from textmill.model.classifier import Classifier
from textmill.order.config import OrderConfig, Strategy
from textmill.order.difficulty import Difficulty
from textmill.order.sampler import BatchPlan
from textmill.order.schedule import schedule_for
from textmill.train.config import TrainConfig
from textmill.train.device import choose_hardware
from textmill.train.preflight.learning import find_in_learning, overfit
from textmill.train.preflight.mix import find_in_mix, measure_mix
from textmill.train.preflight.static import find_before_steps, find_foreign_tokenizer
from textmill.train.preflight.wiring import probe_wiring
from textmill.train.probe import auto_max_tokens
from textmill.train.rows import EncodedRows, encode_rows

_NUM_ROWS = 2000  # of the training rows, from which batches are made
_BATCH_ROWS = 16
_BATCH_TOKENS = 32, 128  # bounds of the median length, up to which rows are taken to be learnt
_UNBALANCED: tuple[Strategy, ...] = (
    "shuffle",
    "ordered-plain",
    "competence",
    "random-subset",
    "label-sorted",
)
"""Orders whose batches may hold one class; the others are balanced by construction."""


@dataclass(frozen=True, slots=True)
class PreflightLimits:
    """What the look over may cost."""

    steps: int = 60
    """Of learning one batch, for each learning rate."""
    seconds: float = 20.0
    """Of learning, for all rates together."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found and measured."""

    findings: tuple[Finding, ...]
    numbers: dict[str, float]
    """What was measured, by name."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return all as plain values."""
        return asdict(self)

    def as_tables(self) -> list[Table]:
        """Return the numbers, and the findings if there are any."""
        rows: list[tuple[object, ...]] = [
            (name.replace("_", " "), f"{value:.4g}") for name, value in self.numbers.items()
        ]
        tables = [Table(f"Preflight ({self.seconds:.1f} s)", ("", "value"), rows)]
        if self.findings:
            tables.append(findings_table("Preflight findings", self.findings))
        return tables


def look_over(
    classifier: Classifier,
    tokenizer: Tokenizer,
    notes: BuildNotes,
    splits: Splits,
    config: TrainConfig,
    order: OrderConfig,
    *,
    is_multilabel: bool = False,
    limits: PreflightLimits | None = None,
    progress: Progress = SILENT,
) -> Preflight:
    """Probe a model that was just built.

    Args:
        classifier: left as it was.
        tokenizer: of its backbone.
        notes: of the building.
        splits: the data; only training rows are used.
        config: the `[train]` table.
        order: the `[order]` table.
        is_multilabel: whether a row may have any number of labels.
        limits: bounds; None for the default ones.
        progress: who watches.

    Raises:
        DataError: a label that is not among the classes.
        ProjectError: a device that is not there.
    """
    limits = PreflightLimits() if limits is None else limits
    begin = time.monotonic()
    was_training = classifier.training
    place = next(classifier.parameters()).device
    hardware = choose_hardware(config)
    with hardware.claimed(), progress.task("look over the model", 4) as task:
        findings = find_before_steps(classifier, tokenizer, notes, config)
        findings += find_foreign_tokenizer(classifier, tokenizer, notes)
        task.advance()
        rows = encode_rows(_some(splits.train), tokenizer, splits.labels, is_multilabel=is_multilabel)
        mix = measure_mix(_plan(rows, config, order, splits.labels), rows.class_index)
        findings += find_in_mix(mix, order.strategy)
        task.advance()
        batch = rows.batch(_choose(rows))
        classifier.to(hardware.device).eval()
        wiring = probe_wiring(classifier, batch, hardware.device)
        findings += wiring.findings
        numbers = wiring.numbers | {"batches_of_one_class": mix.single_share, "file_order": mix.changes_share}
        task.advance()
        can_move = any(weight.requires_grad for weight in classifier.parameters())
        if can_move and not any(finding.kind in ("not_finite", "labels") for finding in findings):
            learning = overfit(
                classifier, batch, config, hardware.device, steps=limits.steps, seconds=limits.seconds
            )
            findings += find_in_learning(learning, len(batch.lengths))
            numbers |= {
                "batch_loss_first": learning.configured.first,
                "batch_loss_last": learning.configured.last,
                "batch_steps": learning.configured.steps,
            }
        task.advance()
    classifier.to(place).train(was_training)
    return Preflight(tuple(findings), numbers, time.monotonic() - begin)


def _some(examples: Sequence[Example]) -> list[Example]:
    """Return up to `_NUM_ROWS` rows, evenly over the file and in its order, so that sorted stays sorted."""
    num = min(_NUM_ROWS, len(examples))
    return [examples[int(position)] for position in np.linspace(0, len(examples) - 1, num).round()]


def _plan(
    rows: EncodedRows, config: TrainConfig, order: OrderConfig, labels: Sequence[str]
) -> list[npt.NDArray[np.int64]]:
    """Return the batches of the first epoch; difficulty is length alone here, which asks no teacher."""
    if order.strategy not in _UNBALANCED:
        return []
    # For class_index a class of its own stands for rows without labels.
    schedule = schedule_for(
        order.model_copy(update={"clear_weight": 0.0, "length_weight": 1.0}),
        difficulty=Difficulty(tuple(rows.ids), rows.lengths, None, 1.0, 0.0),
        class_index=rows.class_index,
        labels=labels,
        seed=config.seed,
    )
    budget = auto_max_tokens(config, rows.lengths)
    return BatchPlan(rows.lengths, budget, config.row_limit, seed=config.seed, schedule=schedule).plan_epoch(
        0
    )


def _choose(rows: EncodedRows) -> npt.NDArray[np.int64]:
    """Return rows of all classes in turn, of different texts, none longer than needed."""
    rng = numpy_generator(0, "preflight")
    shuffled = rng.permutation(len(rows))
    longest = min(max(_BATCH_TOKENS[0], int(np.median(rows.lengths))), _BATCH_TOKENS[1])
    shorter = shuffled[rows.lengths[shuffled] <= longest]
    pool = (
        shorter
        if len(shorter) >= _BATCH_ROWS
        else shuffled[np.argsort(rows.lengths[shuffled], kind="stable")]
    )
    by_class: dict[int, list[int]] = {}
    seen: set[bytes] = set()
    for row in pool.tolist():
        key = rows.encoded[row].ids.tobytes()
        if key not in seen:
            seen.add(key)
            by_class.setdefault(int(rows.class_index[row]), []).append(row)
    chosen: list[int] = []
    while by_class and len(chosen) < _BATCH_ROWS:
        for name in sorted(by_class):
            chosen.append(by_class[name].pop(0))
            if not by_class[name]:
                del by_class[name]
    return np.array(sorted(chosen[:_BATCH_ROWS]), dtype=np.int64)
