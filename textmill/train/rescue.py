"""A run as a ladder of attempts: where the guard ends one, a cure begins the next.

Promises: what is tried next follows from the diagnosis; every attempt is told to whoever watches and
kept in `attempts.json`; the best healthy state of all attempts is in `run_dir / "model"` in the end,
also when all is lost; all attempts together read at most `rescue.max_cost` times the rows of one training,
where an attempt that has begun is not cut short; a run that was killed goes on in the right attempt.
The weights that the run began with are kept in memory for its whole time, once more on the CPU.
What is not covered: noticing (`guard/`), the cures themselves (`cures/`), streams.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from textmill.core.errors import TrainingGaveUp
from textmill.core.files import write_atomic
from textmill.core.progress import SILENT, Progress
from textmill.data.mapped import text_blocks
from textmill.data.prepare import Splits
from textmill.encode.tokenizer import Tokenizer
from textmill.model import files
from textmill.model.classifier import Classifier
from textmill.model.fresh import encoder_layers, renew_head, renew_layers
from textmill.order.config import OrderConfig
from textmill.order.difficulty_file import FILE as DIFFICULTY
from textmill.train import checkpoint
from textmill.train.attempt import (
    Attempt,
    figures_of,
    is_better,
    last_verdict,
    load_attempts,
    load_identity,
    save_attempts,
)
from textmill.train.best import FOLDER as MODEL
from textmill.train.best import adopt_best
from textmill.train.config import Metric, TrainConfig
from textmill.train.cures.config import RescueConfig
from textmill.train.cures.cure import Settings, Situation, Start
from textmill.train.cures.ladder import choose, high_lr
from textmill.train.guard.config import GuardConfig
from textmill.train.guard.verdict import Verdict
from textmill.train.hooks import EVENTS, Evaluated, Hook, Outdated, StepDone
from textmill.train.identity import check_same_data, check_same_settings, identify_asked
from textmill.train.loop import train
from textmill.train.lr_probe import LrProbe, probe_lr
from textmill.train.result import FILE as RESULT
from textmill.train.result import TrainResult, load_result
from textmill.train.resume import is_complete

_GAIN = 0.02
"""A state is healthy when its macro-F1 is this much above that of the best constant answer."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What stays the same over all attempts."""

    classifier: Classifier
    tokenizer: Tokenizer
    splits: Splits
    settings: Settings
    run_dir: Path
    guard: GuardConfig
    rescue: RescueConfig
    progress: Progress
    hooks: Sequence[Hook]
    weights: dict[str, torch.Tensor]
    """Those that the run began with, on the CPU."""
    identity: dict[str, Any]
    """What must not change when the run goes on."""


def train_with_rescue(
    classifier: Classifier,
    tokenizer: Tokenizer,
    splits: Splits,
    config: TrainConfig,
    order: OrderConfig,
    run_dir: Path,
    *,
    guard: GuardConfig,
    rescue: RescueConfig,
    resume: bool = False,
    progress: Progress = SILENT,
    hooks: Sequence[Hook] = (),
) -> TrainResult:
    """Train a classifier; where the guard raises an alarm, climb the ladder of cures.

    Args:
        classifier: trained in place; on a resume too it must hold the weights that the run began with.
        tokenizer: as in `train`.
        splits: as in `train`.
        config: the `[train]` table.
        order: the `[order]` table.
        run_dir: as in `train`; gets `attempts.json` and `attempts/` too.
        guard: the `[guard]` table.
        rescue: the `[rescue]` table.
        resume: go on with the run in `run_dir`, in the attempt that was under way.
        progress: is told what is noticed, what is tried, and what came of it.
        hooks: see all attempts; step numbers begin again with each.

    Returns:
        How the last attempt ended, with `attempts` and `verdict`.

    Raises:
        UserError: as in `train`.
        TrainingGaveUp: no attempt got away from the constant answer; the message is the diagnosis.
    """
    weights = {name: tensor.detach().cpu().clone() for name, tensor in classifier.state_dict().items()}
    settings = Settings(config, order)
    held = [_Held(hook) for hook in hooks]
    identity = identify_asked(splits, config, order, classifier.config, tokenizer.settings)
    run = _Run(
        classifier, tokenizer, splits, settings, run_dir, guard, rescue, progress, held, weights, identity
    )
    attempts = load_attempts(run_dir) if resume else []
    known = load_identity(run_dir)
    if attempts and known is not None:  # an attempt that begins anew has no checkpoint to tell
        check_same_data(known, splits)
        check_same_settings(known, identity)
    try:
        return _climb(run, attempts, resume)
    finally:
        for hook in hooks:
            hook.close()


def _climb(run: _Run, attempts: list[Attempt], resume: bool) -> TrainResult:
    """Make attempts until one ends well or nothing is left to try."""
    current = attempts[-1] if attempts else Attempt(1)
    while True:
        if current.status != "alarm":
            ended, result = _try(run, current, resume)
            attempts = [*attempts[: current.number - 1], ended]
            save_attempts(run.run_dir, attempts, run.identity)
            if result is not None:
                return _finish(run, attempts, result)
            current = ended
        treated = _next_attempt(run, attempts)
        if treated is None:
            raise _give_up(run, attempts)
        current, resume = treated, False
        attempts = [*attempts, current]
        save_attempts(run.run_dir, attempts, run.identity)


def _try(run: _Run, attempt: Attempt, resume: bool) -> tuple[Attempt, TrainResult | None]:
    """Make one attempt; return it as it ended, and its result if it ended well."""
    folder = attempt.folder(run.run_dir)
    settings = _settings_of(run, attempt)
    hooks = run.hooks
    if attempt.number > 1:
        _place_weights(run, attempt)
        resume = (folder / EVENTS).exists()  # a kill may have come before its first step
        known = run.run_dir / DIFFICULTY
        if known.exists() and not (folder / DIFFICULTY).exists():
            write_atomic(folder / DIFFICULTY, known.read_bytes())
        hooks = [*hooks, Outdated(run.run_dir / RESULT)]

    done = _ended_before(run, settings, folder) if resume else None
    try:
        result = done or train(
            run.classifier,
            run.tokenizer,
            run.splits,
            settings.train,
            settings.order,
            folder,
            guard=run.guard,
            resume=resume,
            progress=run.progress,
            hooks=hooks,
        )
    except TrainingGaveUp as err:
        verdict = last_verdict(folder)
        if verdict is None or not verdict.is_alarm:
            raise
        told = replace(attempt, status="alarm", ended=err.got, verdict=verdict, **figures_of(folder))
        run.progress.say(f"Attempt {attempt.number} has ended: {verdict.sentence}")
        return told, None
    verdict, figures = last_verdict(folder), figures_of(folder)
    if verdict is not None and _has_learned_nothing(run, settings, verdict, figures):
        (folder / RESULT).unlink(missing_ok=True)  # the run is not complete
        learnt = max(0.0, verdict.numbers.get("learnt_share", 0.0))
        sentence = (
            f"The training has ended, and every text still gets the same answer: {learnt:.0%} is learnt of "
            f"what can be. At a learning rate as high as {settings.train.lr:.2g} that is no slow start."
        )
        verdict = Verdict("never-left", verdict.step, verdict.numbers, sentence, True)
        run.progress.say(f"Attempt {attempt.number} has ended: {sentence}")
        return replace(attempt, status="alarm", ended=sentence, verdict=verdict, **figures), None
    how = "stopped early, without further gain" if result.stopped_early else "all epochs are done"
    return replace(attempt, status="healthy", ended=how, verdict=verdict, **figures), result


def _ended_before(run: _Run, settings: Settings, folder: Path) -> TrainResult | None:
    """Return the result of an attempt that ended well just before the run was cut off; None: it did not.

    A run that was told whole is not meant: it has nothing left to do, which `train` says.
    """
    told, result = load_result(run.run_dir), load_result(folder)
    if result is None or (told is not None and told.attempts):
        return None
    found = checkpoint.newest_checkpoint(folder)
    return result if found is not None and is_complete(found.counters, settings.train) else None


def _has_learned_nothing(run: _Run, settings: Settings, verdict: Verdict, figures: Mapping[str, Any]) -> bool:
    """Return whether a whole training gave no alarm and still ends at one answer for every text.

    A slow start looks the same; but whoever is slow at a high learning rate is not helped by more steps.
    """
    is_high = settings.train.lr > high_lr(run.classifier.config.architecture is None)
    best = figures.get("best")
    is_constant = best is not None and best["f1_macro"] <= constant_f1(run.splits) + 0.01
    return verdict.kind == "slow" and is_high and is_constant


def _next_attempt(run: _Run, attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the next attempt by the diagnosis, or None where there is none or the budget is used up."""
    last = attempts[-1]
    assert last.verdict is not None
    whole = run.settings.train.epochs * _rows_of_epoch(run)
    spent = sum(attempt.rows + attempt.probe_rows for attempt in attempts)
    if spent + whole > run.rescue.max_cost * whole:
        return None
    healthy = healthiest(run.splits, attempts, run.settings.train.metric)
    settings = _settings_of(run, replace(last, start=Start()))
    probes: list[LrProbe] = []

    def measure_lr() -> float | None:
        run.progress.say("Measuring which learning rate the model can bear, on a few rows.")
        _place_weights(run, Attempt(1))
        probes.append(probe_lr(run.classifier, run.tokenizer, run.splits, settings.train))
        return probes[-1].lr

    situation = Situation(
        verdict=last.verdict,
        settings=settings,
        measure_lr=measure_lr,
        tried=tuple(attempt.cure for attempt in attempts if attempt.cure is not None),
        healthy=None if healthy is None else healthy.number,
        healthy_epochs=0 if healthy is None else healthy.best_epochs + healthy.start.epochs_done,
        num_rows=len(run.splits.train),
        num_layers=len(encoder_layers(run.classifier)),
        is_pretrained=run.classifier.config.architecture is None,
    )
    chosen = choose(situation, run.rescue.ladder)
    if chosen is None:
        return None
    rung, treatment = chosen
    number = last.number + 1
    run.progress.say(f"Attempt {number} ({rung}): {treatment.sentence}.")
    return Attempt(
        number,
        rung,
        treatment.sentence,
        {**last.changes, **treatment.changes},
        start=treatment.start,
        probe_steps=sum(probe.steps for probe in probes),
        probe_rows=sum(probe.rows for probe in probes),
        probe_tokens=sum(probe.tokens for probe in probes),
        probe_seconds=sum(probe.seconds for probe in probes),
    )


def _rows_of_epoch(run: _Run) -> int:
    """Return the rows of an epoch, counted as steps count them: a long text in windows is several."""
    if run.tokenizer.settings.long_text != "windows":
        return len(run.splits.train)
    return sum(len(run.tokenizer.cut(texts).rows) for texts in text_blocks(run.splits.train))


def _settings_of(run: _Run, attempt: Attempt) -> Settings:
    settings = run.settings.with_changes(attempt.changes)
    left = settings.train.epochs - attempt.start.epochs_done
    return settings.with_changes({"train.epochs": max(1, left)})


def _place_weights(run: _Run, attempt: Attempt) -> None:
    """Put the weights in place from which an attempt starts."""
    start = attempt.start
    run.classifier.load_state_dict(run.weights)
    if start.attempt is not None:
        kept, _ = files.load(Attempt(start.attempt).folder(run.run_dir) / MODEL)
        run.classifier.load_state_dict(kept.state_dict())
    seed = _settings_of(run, attempt).train.seed
    if start.fresh_head:
        # The number keeps the head of a second attempt with the same seed another one.
        renew_head(run.classifier, seed + attempt.number)
    if start.fresh_layers:
        renew_layers(run.classifier, start.fresh_layers, seed + attempt.number)


def _finish(run: _Run, attempts: Sequence[Attempt], result: TrainResult) -> TrainResult:
    """Bring the best state of all attempts and the last one's result into the run folder."""
    last = attempts[-1]
    kept = last
    if last.number > 1:
        healthy = healthiest(run.splits, attempts, run.settings.train.metric)
        if healthy is not None and (not last.best or is_better(healthy, last, run.settings.train.metric)):
            kept = healthy
        value = "" if result.best_metric is None else f"; {result.metric} {result.best_metric:.3f}"
        how = "has helped" if kept is last else "has ended, worse than before"
        if last.best and healthy is None:
            how = "has ended, no better than one answer for all"
        run.progress.say(f"Attempt {last.number} ({last.cure}) {how}: {last.ended}{value}.")
    if kept is not last:
        figures = ", ".join(f"{name} {value:.3f}" for name, value in kept.best.items())
        run.progress.say(f"The best state is that of attempt {kept.number}: {figures}.")
        name = "valid_loss" if result.metric == "loss" else result.metric
        result = replace(result, best_step=kept.best_step or 0, best_metric=kept.best[name])
    if kept.number > 1:
        adopt_best(run.run_dir, kept.folder(run.run_dir) / MODEL)
    best, _ = files.load(run.run_dir / MODEL)
    run.classifier.load_state_dict(best.state_dict())
    run.classifier.decision = best.decision
    run.classifier.eval()
    told = replace(
        result,
        run_dir=run.run_dir,
        epochs=result.epochs + last.start.epochs_done,
        attempts=[attempt.as_json() for attempt in attempts],
        verdict=None if last.verdict is None else last.verdict.as_json(),
    )
    told.save()
    for attempt in attempts[:-1]:  # never resumed again; hundreds of megabytes
        shutil.rmtree(attempt.folder(run.run_dir) / checkpoint.FOLDER, ignore_errors=True)
    return told


def _give_up(run: _Run, attempts: Sequence[Attempt]) -> TrainingGaveUp:
    """Keep the best healthy state, and return the diagnosis."""
    last, healthy = attempts[-1], healthiest(run.splits, attempts, run.settings.train.metric)
    assert last.verdict is not None
    if healthy is not None and healthy.number > 1:
        adopt_best(run.run_dir, healthy.folder(run.run_dir) / MODEL)
    kept = "No attempt reached a healthy state. "
    if healthy is not None:
        figures = ", ".join(f"{name} {value:.3f}" for name, value in healthy.best.items())
        kept = (
            f"The best healthy state, of attempt {healthy.number} ({figures}), is in {run.run_dir / MODEL}. "
        )
    tried = ", ".join(attempt.cure or "the settings as they are" for attempt in attempts)
    if last.verdict.kind == "data-or-wiring":
        fix = "No cure helps against a fault in the data or the wiring: `textmill check` looks for it."
    elif not run.rescue.ladder:
        fix = "Lower train.lr, or let rescue.ladder name cures."
    else:
        fix = (
            "Look at the labels with `textmill check`, lower train.lr, train for more epochs, "
            "or raise rescue.max_cost."
        )
    return TrainingGaveUp(
        "A training must get away from the constant answer",
        got=f"{last.verdict.kind} after {len(attempts)} attempt{'s' * (len(attempts) > 1)} ({tried}); "
        f"the last: {last.verdict.sentence.rstrip('.')}",
        fix=kept + fix,
    )


def healthiest(splits: Splits, attempts: Sequence[Attempt], metric: Metric) -> Attempt | None:
    """Return the attempt with the best healthy state among those whose state is kept; None: there is none."""
    least = constant_f1(splits) + _GAIN
    healthy = [a for a in attempts if a.best.get("f1_macro", 0.0) > least]
    best: Attempt | None = None
    for attempt in healthy:
        if best is None or is_better(attempt, best, metric):
            best = attempt
    return best


def constant_f1(splits: Splits) -> float:
    """Return the macro-F1 of the best constant answer on the validation rows, the bar of a healthy state.

    One label a row: the most frequent class of share p has F1 2 p / (1 + p), all others 0. Several: every
    label for every row, which gives each label its own 2 p / (1 + p).
    """
    counts = dict.fromkeys(splits.labels, 0)
    most = 0
    for example in splits.valid:
        most = max(most, len(example.labels))
        for label in example.labels:
            counts[label] = counts.get(label, 0) + 1
    shares = np.array([count for count in counts.values() if count], dtype=float) / max(1, len(splits.valid))
    if not len(shares):
        return 0.0
    f1 = 2 * shares / (1 + shares)
    return float(f1.mean() if most > 1 else f1.max() / len(f1))


class _Held:
    """A hook that outlives an attempt."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook

    def on_step(self, event: StepDone) -> None:
        self._hook.on_step(event)

    def on_evaluation(self, event: Evaluated) -> None:
        self._hook.on_evaluation(event)

    def close(self) -> None:
        """Leave the hook open for the next attempt."""
