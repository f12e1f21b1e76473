"""The training loop, to be read from top to bottom.

Promises: the same seed, data, threads and machine give the same numbers; a run that was killed goes
on with the very next step as if nothing had happened; the best state by the validation metric is
kept; a run never ends well without a step.
When a finished run gets more epochs, the learning rate follows the schedule of the longer run from
the next step on. More epochs than before cannot change the steps already made.
What is not covered: several processes (`parallel/`), cures for a stuck loss (`rescue.py`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from textmill.core.errors import DataError, ModelError, TrainingGaveUp
from textmill.core.files import disk_faults
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import stream_seed
from textmill.data.prepare import Splits
from textmill.encode.tokenizer import Tokenizer
from textmill.model import files
from textmill.model.classifier import Classifier
from textmill.order.config import OrderConfig
from textmill.order.difficulty_file import FILE as DIFFICULTY
from textmill.order.difficulty_file import save_difficulty
from textmill.order.make import difficulty_for
from textmill.order.sampler import BatchPlan
from textmill.order.schedule import schedule_for
from textmill.train import best as best_states
from textmill.train.checkpoint import Checkpoint, Counters, save_checkpoint
from textmill.train.config import TrainConfig
from textmill.train.device import Hardware, choose_hardware
from textmill.train.feed import Feed, RowFeed, look_ahead
from textmill.train.guard.config import GuardConfig
from textmill.train.guard.guard import Guard
from textmill.train.guard.verdict import Verdict
from textmill.train.hooks import EVENTS, Evaluated, EventLog, Hook, ProgressHook, StepDone, TensorBoardHook
from textmill.train.identity import check_same_settings, identify
from textmill.train.loss import Loss, build_loss
from textmill.train.optim import build_optimizer
from textmill.train.probe import choose_max_tokens
from textmill.train.result import TrainResult
from textmill.train.resume import begin_or_resume, cut_back, is_complete
from textmill.train.rows import EncodedRows, encode_rows
from textmill.train.step import Parts, look_first, make_step
from textmill.train.validate import validate

log = logging.getLogger(__name__)


def train(
    classifier: Classifier,
    tokenizer: Tokenizer,
    splits: Splits,
    config: TrainConfig,
    order: OrderConfig,
    run_dir: Path,
    *,
    guard: GuardConfig | None = None,
    resume: bool = False,
    progress: Progress = SILENT,
    hooks: Sequence[Hook] = (),
) -> TrainResult:
    """Train a classifier; afterwards it holds the best state, which is also in `run_dir / "model"`.

    Args:
        classifier: trained in place, on the device of `config`.
        tokenizer: the one that belongs to its backbone.
        splits: training rows, and validation rows to judge by (without them the last state is the best).
        config: the `[train]` table.
        order: the `[order]` table.
        run_dir: gets `events.jsonl`, `checkpoints/`, `model/` and `training.json`.
        guard: the `[guard]` table; None: nobody watches.
        resume: go on with the run in `run_dir`; from its start if it was killed before a checkpoint.
        progress: who watches.
        hooks: who else takes note of steps and evaluations.

    Raises:
        DataError: no training rows, fewer than two classes, or other data than the run began with.
        ModelError: a classifier with other classes than the data.
        ProjectError: a run folder in use, a resume with other settings, or a run that is complete.
        TrainingGaveUp: a loss or gradient that is not a finite number, or an alarm of the guard; the best
            state so far is kept.
    """
    _check_input(classifier, splits)
    found = begin_or_resume(run_dir, splits, config, resume, progress)
    hardware = choose_hardware(config)
    with hardware.claimed():
        classifier.to(hardware.device).train()
        is_multilabel = classifier.decision.is_multilabel
        rows = encode_rows(splits.train, tokenizer, splits.labels, is_multilabel=is_multilabel)
        max_tokens = (
            int(found.identity["max_tokens"])
            if found
            else choose_max_tokens(config, classifier, rows, hardware, progress)
        )
        feed = _ordered_feed(splits, rows, config, order, max_tokens, run_dir, progress)
        loss = build_loss(config, rows.targets.numpy(), len(splits.labels))
        # "auto" may mean another format on the machine where a run goes on: what it meant here is kept.
        settled = config.model_copy(update={"precision": hardware.precision})
        result = train_feed(
            classifier,
            tokenizer,
            feed,
            encode_rows(splits.valid, tokenizer, splits.labels, is_multilabel=is_multilabel),
            loss,
            config,
            run_dir,
            hardware=hardware,
            identity=identify(
                splits, rows.lengths, settled, order, max_tokens, classifier.config, tokenizer.settings
            ),
            guard=guard_for(guard, loss, splits.labels, rows.targets),
            found=found,
            progress=progress,
            hooks=hooks,
        )
    if feed.difficulty is not None:
        save_difficulty(feed.difficulty, run_dir)  # with what the model has shown of each row
    return result


def _ordered_feed(
    splits: Splits,
    rows: EncodedRows,
    config: TrainConfig,
    order: OrderConfig,
    max_tokens: int,
    run_dir: Path,
    progress: Progress,
) -> RowFeed:
    """Return the steps in the order that is asked for; what it rests on is kept in the run folder."""
    has_windows = len(rows) > len(splits.train)
    difficulty = difficulty_for(
        order,
        [splits.train[index] for index in rows.owner.tolist()] if has_windows else splits.train,
        rows.lengths,
        config.seed,
        progress,
        known=run_dir / DIFFICULTY,
        is_multilabel=rows.targets.ndim == 2,
    )
    if difficulty is not None:
        with disk_faults(run_dir):
            run_dir.mkdir(parents=True, exist_ok=True)
        save_difficulty(difficulty, run_dir)
    schedule = schedule_for(
        order,
        difficulty=difficulty,
        class_index=rows.targets.numpy(),
        labels=splits.labels,
        seed=config.seed,
    )
    for sentence in schedule.notes:
        progress.say(sentence)
    plan = BatchPlan(rows.lengths, max_tokens, config.row_limit, seed=config.seed, schedule=schedule)
    return RowFeed(rows, plan, config.accumulate, difficulty)


def guard_for(
    config: GuardConfig | None, loss: Loss, labels: Sequence[str], targets: torch.Tensor | None = None
) -> Guard | None:
    """Return the guard of a training; without the `targets` of all rows, sorted ones raise no alarm."""
    if config is None or not config.enabled:
        return None
    shares = None
    if targets is not None and not loss.is_multilabel:
        shares = torch.bincount(targets, minlength=len(labels)) / len(targets)
    return Guard(
        config,
        len(labels),
        label_smoothing=loss.label_smoothing,
        class_weights=None if loss.weights is None else loss.weights.tolist(),
        is_multilabel=loss.is_multilabel,
        labels=labels,
        label_shares=None if shares is None else shares.tolist(),
    )


def train_feed(
    classifier: Classifier,
    tokenizer: Tokenizer,
    feed: Feed,
    valid: EncodedRows,
    loss: Loss,
    config: TrainConfig,
    run_dir: Path,
    *,
    hardware: Hardware,
    identity: dict[str, Any],
    guard: Guard | None = None,
    found: Checkpoint | None = None,
    way_out: str = "Lower train.lr, or let [rescue] try the cures.",
    progress: Progress = SILENT,
    hooks: Sequence[Hook] = (),
) -> TrainResult:
    """Train on the steps of any feed; `train` is this with rows that are all at hand.

    Args:
        classifier: trained in place.
        tokenizer: the one that belongs to its backbone.
        feed: the steps.
        valid: rows to judge by; none: the last state is the best.
        loss: of a step.
        config: the `[train]` table.
        run_dir: as in `train`.
        hardware: where.
        identity: what must not change when the run goes on, kept in checkpoints.
        guard: watches the steps; an alarm of it ends the training.
        found: the checkpoint to go on from, out of `begin_or_resume`; its data are checked there,
            its settings here.
        way_out: what an alarm of the guard advises.
        progress: who watches.
        hooks: who else takes note.

    Raises:
        DataError: a feed without steps.
        ProjectError: a resume with other settings.
        TrainingGaveUp: as in `train`; `guard.verdict()` tells the diagnosis.
    """
    with hardware.claimed():
        torch.manual_seed(stream_seed(config.seed, "dropout"))
        classifier.to(hardware.device).train()
        parts = Parts(
            classifier=classifier,
            tokenizer=tokenizer,
            optimizer=build_optimizer(classifier, config),
            loss=loss.to(hardware.device),
            feed=feed,
            valid=valid,
            config=config,
            hardware=hardware,
            run_dir=run_dir,
            identity=identity,
            guard=guard,
            num_steps=feed.num_steps(config.epochs),
            way_out=way_out,
        )
        assert parts.num_steps > 0, "a plan without batches"
        counters = found.counters if found else Counters()
        if found:
            check_same_settings(found.identity, identity)
            cut_back(run_dir, found, progress)
            found.restore(classifier, parts.optimizer, hardware.device)
            feed.restore(found.feed)
            parts = replace(parts, num_steps=feed.num_steps(config.epochs))
            if guard is not None and found.guard is not None:
                guard.restore(found.guard)
        first_step = counters.step
        _watch_steps(parts, counters, progress, hooks)
        if counters.best.step != counters.step:
            kept, _ = files.load(run_dir / best_states.FOLDER)
            classifier.load_state_dict(kept.state_dict())
        classifier.decision = files.read_decision(run_dir / best_states.FOLDER)
        classifier.eval()
    result = _result(parts, counters, first_step)
    result.save()
    return result


def _watch_steps(parts: Parts, counters: Counters, progress: Progress, hooks: Sequence[Hook]) -> None:
    """Open what follows the run, make its steps, and close everything again."""
    with ExitStack() as stack:
        events = stack.enter_context(closing(EventLog(parts.run_dir / EVENTS)))
        task = stack.enter_context(progress.task("train", parts.num_steps))
        task.advance(counters.step)
        watchers: list[Hook] = [events, ProgressHook(task), *hooks]
        if parts.config.tensorboard:
            watchers.append(TensorBoardHook(parts.run_dir / "tensorboard", counters.step + 1))
        for watcher in watchers[1:]:
            stack.callback(watcher.close)
        _train_steps(parts, counters, events, watchers)


def _train_steps(parts: Parts, counters: Counters, events: EventLog, watchers: Sequence[Hook]) -> None:
    """Make all steps that are left; `counters` always stands between two steps."""
    config = parts.config
    saved_at = time.monotonic()
    while not is_complete(counters, config):
        is_begun = counters.position > 0
        for step in look_ahead(parts.feed.steps(counters.epoch, counters.position)):
            is_begun = True
            if counters.step == 0:
                _refuse(parts, counters, events, look_first(parts, step.batches[0]))
            begin = time.perf_counter()
            try:
                done, verdict = make_step(parts, step.batches, counters, step.seconds)
            except TrainingGaveUp:
                if parts.guard is not None:
                    events.on_verdict(parts.guard.verdict())
                raise
            for watcher in watchers:
                watcher.on_step(done)
            _refuse(parts, counters, events, verdict)
            _count(counters, done, step.is_last, step.seconds + time.perf_counter() - begin)
            if step.is_last:  # a stream knows only now how long its epochs are
                parts = replace(parts, num_steps=parts.feed.num_steps(config.epochs))

            is_new_best = False
            if counters.position == 0 or (config.evaluate_every and done.step % config.evaluate_every == 0):
                is_new_best = _evaluate(parts, counters, done, watchers)

            is_due = bool(config.checkpoint_every) and done.step % (config.checkpoint_every or 1) == 0
            is_late = time.monotonic() - saved_at >= config.checkpoint_every_s
            is_end = counters.position == 0 or is_complete(counters, config)
            if is_new_best or is_due or is_late or is_end:
                events.sync()
                _save(parts, counters)
                saved_at = time.monotonic()
            if is_complete(counters, config):
                break
        if not is_begun:
            raise DataError(
                "Every epoch must have rows to train on",
                got=f"epoch {counters.epoch + 1} without any",
                fix="`textmill check` shows where rows were lost.",
            )


def _refuse(parts: Parts, counters: Counters, events: EventLog, verdict: Verdict | None) -> None:
    """Log a verdict, and end the training if it is an alarm."""
    if verdict is None:
        return
    events.on_verdict(verdict)
    if not verdict.is_alarm:
        return
    kept = f"The best state so far is in {parts.run_dir / best_states.FOLDER}. " if counters.best.step else ""
    fix = parts.way_out
    if verdict.kind == "data-or-wiring":
        fix = "No cure helps against a fault in the data or the wiring: `textmill check` looks for it."
    raise TrainingGaveUp(
        "A training must leave the constant answer behind",
        got=f"{verdict.kind} at step {verdict.step}: {verdict.sentence.rstrip('.')}",
        fix=kept + fix,
    )


def _save(parts: Parts, counters: Counters) -> None:
    save_checkpoint(
        parts.run_dir,
        parts.classifier,
        parts.optimizer,
        counters,
        parts.identity,
        parts.config.keep_checkpoints,
        feed=parts.feed.state(),
        guard=None if parts.guard is None else parts.guard.state(),
    )


def _count(counters: Counters, done: StepDone, is_last: bool, seconds: float) -> None:
    counters.step = done.step
    counters.position += 1
    if is_last:
        counters.epoch, counters.position = counters.epoch + 1, 0
    counters.rows += done.rows
    counters.tokens += done.tokens
    counters.cells += done.cells
    counters.seconds += seconds


def _evaluate(parts: Parts, counters: Counters, done: StepDone, watchers: Sequence[Hook]) -> bool:
    """Judge the state, keep it if it is the best; return whether it is."""
    config = parts.config
    begin = time.perf_counter()
    if not len(parts.valid):
        counters.best = counters.best.after(done.step, done.epoch, None, config.metric)
        best_states.save_best(parts.run_dir, parts.classifier, parts.tokenizer)
        return True
    found = validate(parts.classifier, parts.valid, parts.hardware, parts.feed.max_tokens, config.row_limit)
    if not math.isfinite(found.loss):
        sentence = f"After step {done.step} the validation loss is no finite number: the weights fly apart."
        told = Verdict("not-a-number", done.step, {"lr": done.lr}, sentence, True)
        for watcher in watchers:
            if isinstance(watcher, EventLog) and parts.guard is not None:
                watcher.on_verdict(told)  # so that a cure may be tried, as for any other step
        raise TrainingGaveUp(
            "The validation loss must be a finite number",
            got=f"{found.loss} after step {done.step} with learning rate {done.lr:.3g}",
            fix="Lower train.lr to a third and start again.",
        )
    value = found.value(config.metric)
    counters.best = counters.best.after(done.step, done.epoch, value, config.metric, found.loss)
    is_best = counters.best.step == done.step
    parts.classifier.decision = found.decision
    if is_best:
        best_states.save_best(parts.run_dir, parts.classifier, parts.tokenizer)
    event = Evaluated(
        step=done.step,
        epoch=done.epoch,
        valid_loss=found.loss,
        accuracy=found.accuracy,
        f1_macro=found.f1_macro,
        is_best=is_best,
        seconds=time.perf_counter() - begin,
    )
    for watcher in watchers:
        watcher.on_evaluation(event)
    return is_best


def _result(parts: Parts, counters: Counters, first_step: int) -> TrainResult:
    return TrainResult(
        run_dir=parts.run_dir,
        best_step=counters.best.step,
        best_metric=counters.best.value,
        metric=parts.config.metric,
        epochs=counters.epoch + (counters.position > 0),
        steps=counters.step,
        new_steps=counters.step - first_step,
        stopped_early=counters.epoch < parts.config.epochs,
        seconds=counters.seconds,
        rows_per_s=counters.rows / counters.seconds,
        padding_share=1.0 - counters.tokens / counters.cells,
        max_tokens=parts.feed.max_tokens,
        threads=parts.hardware.threads,
        device=str(parts.hardware.device),
        precision=parts.hardware.precision,
    )


def _check_input(classifier: Classifier, splits: Splits) -> None:
    if not splits.train:
        raise DataError(
            "There must be rows to train on",
            got="a training split without rows",
            fix="`textmill check` shows where rows were lost.",
        )
    if len(splits.labels) < 2 and not classifier.decision.is_multilabel:
        raise DataError(
            "There must be at least two classes",
            got=f"{list(splits.labels)}",
            fix="Check data.label; a classifier needs rows of a second class.",
        )
    if tuple(classifier.labels) != tuple(splits.labels):
        raise ModelError(
            "The classifier's classes must be those of the data, in the same order",
            got=f"{list(classifier.labels)} for data with {list(splits.labels)}",
            fix="Build the classifier with the labels of the splits.",
        )
