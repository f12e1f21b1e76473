"""The data's way in one function: from a labelled file to a model that may go live.

`run` reads like the list of what textmill promises: prepare, train, evaluate, publish, promote.
Each step is also a function of its own and can be called alone on what the step before left in the
run folder.

Promises: the test rows are never seen in training or in choosing the best state; a run folder holds
all that is needed to publish it (the data may have moved away by then); what was written stays
when a later step fails.
What is not covered: serving (a server watches the store and swaps by itself), tables of predictions
and checks (`answers.py`).
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.check import audit_facts
from textmill.check import check as check
from textmill.core.errors import StoreError, TextmillError, TrainingGaveUp
from textmill.core.files import remove_tree, write_atomic
from textmill.core.progress import SILENT, Progress
from textmill.data.bad_rows import SIDE_FILE
from textmill.data.mapped import text_blocks
from textmill.data.prepare import Splits, prepare
from textmill.data.stream.open import Stream, open_stream, with_bad_rows
from textmill.encode.tokenizer import Tokenizer
from textmill.evaluate.evaluate import Evaluation, evaluate
from textmill.evaluate.given_up import write_given_up
from textmill.evaluate.predictions import PREDICTIONS, read_examples, read_predictions, write_predictions
from textmill.evaluate.report import CARD, write_report
from textmill.model.baseline import baseline
from textmill.model.build import build
from textmill.model.classifier import Classifier
from textmill.model.files import load
from textmill.model.predictor import TorchPredictor
from textmill.project import Project, load_project
from textmill.run_folder import (
    GAVE_UP,
    PAGE,
    PROJECT,
    REPORT,
    claimed,
    has_epochs_left,
    new_run,
    newest_unfinished,
)
from textmill.runtime.assemble import prepare_bundle
from textmill.serve.gate import GateReport, promote
from textmill.store.registry import Store
from textmill.train.attempt import attempts_given_up, load_attempts, told
from textmill.train.best import FOLDER as MODEL
from textmill.train.device import choose_hardware
from textmill.train.hooks import EVENTS, Outdated
from textmill.train.preflight.static import find_before_steps
from textmill.train.rescue import healthiest, train_with_rescue
from textmill.train.result import TrainResult, load_result
from textmill.train.stream_train import refuse_order, train_stream

_BASELINE = "baseline.parquet"
_STAGING = ".bundle-"
_NUM_GOLDEN = 16  # golden answers in a bundle: texts of every length, answered in well under a second


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: where it is, how the training went, how good it is on the test rows."""

    folder: Path
    training: TrainResult
    evaluation: Evaluation
    baseline: Evaluation

    def as_json(self) -> dict[str, Any]:
        """Return the facts of the run as plain values."""
        return {
            "run": str(self.folder),
            "training": self.training.as_json(),
            "test": self.evaluation.as_json(),
            "baseline": self.baseline.as_json(),
        }

    def as_lines(self) -> list[str]:
        """Return what a person wants to know first."""
        ours, plain = self.evaluation.metrics, self.baseline.metrics
        right = "Exactly right" if ours.is_multilabel else "Accuracy"
        return [
            f"{right} {ours.accuracy:.3f}, macro-F1 {ours.f1_macro:.3f} on {ours.rows} test rows",
            f"Baseline (TF-IDF + logistic regression): {plain.accuracy:.3f}, {plain.f1_macro:.3f}",
            f"Report: {self.folder / 'report.html'}",
        ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `run` did: the run, the version it became, and the verdict of the gate."""

    run: Run
    version: int
    gate: GateReport

    def as_json(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        return {**self.run.as_json(), "version": self.version, "gate": self.gate.as_json()}

    def as_lines(self) -> list[str]:
        """Return what a person wants to know first."""
        return [*self.run.as_lines(), *self.gate.as_lines()]


def run(project: Project, *, resume: bool = False, progress: Progress = SILENT) -> Outcome:
    """Train, evaluate, publish, and promote through the gate.

    Args:
        project: the loaded project file.
        resume: go on with the newest unfinished run.
        progress: who watches.

    Raises:
        UserError: the data, the model or the project is wrong.
        TrainingGaveUp: no usable model came out.
        GateRefused: the version is published but may not go live; the live one stays.
    """
    trained = train_run(project, resume=resume, progress=progress)
    version = publish_run(trained.folder, progress=progress)
    return Outcome(trained, version, promote_run(project, version, progress=progress))


def train_run(project: Project, *, resume: bool = False, progress: Progress = SILENT) -> Run:
    """Train on the project's data, evaluate the best state on the test rows, write the report.

    Raises:
        UserError: the data, the model or the project is wrong.
        TrainingGaveUp: no usable model came out; the page of the run tells what was tried.
    """
    found = newest_unfinished(project) if resume else None
    # Data that cannot be used must not leave a folder behind.
    if project.config.data.streaming:
        stream = _open_stream(project, progress)
        refuse_order(project.config.order)
        splits = stream.splits
    else:
        stream = None
        splits = prepare(
            project.config.data, project.folder, progress, cache=project.cache_root, task=project.config.task
        )
    folder = found or new_run(project)
    with claimed(folder):
        return _train_in(folder, project, splits, resume, progress, stream)


def _open_stream(project: Project, progress: Progress) -> Stream:
    config = project.config
    side_file = project.cache_root / SIDE_FILE
    side_file.unlink(missing_ok=True)
    return open_stream(
        config.data,
        project.folder,
        seed=config.train.seed,
        task=config.task,
        side_file=side_file,
        progress=progress,
    )


def _train_in(
    folder: Path,
    project: Project,
    splits: Splits,
    resume: bool,
    progress: Progress,
    stream: Stream | None = None,
) -> Run:
    config = project.config
    classifier, tokenizer, training = _train_or_load(project, splits, folder, resume, progress, stream)
    if stream is not None:
        splits = with_bad_rows(splits, folder / SIDE_FILE, progress)
    write_atomic(folder / PROJECT, project.as_toml())
    simple = baseline(splits.train, splits.valid, config.task)
    seed = config.train.seed
    plain = evaluate(simple, splits.test, seed=seed, progress=progress, title="evaluate the baseline")
    ours = evaluate(
        TorchPredictor(classifier, tokenizer, training.device),
        splits.test,
        seed=config.train.seed,
        progress=progress,
    )
    write_predictions(folder / _BASELINE, plain)
    write_predictions(folder / PREDICTIONS, ours, splits.test)
    tries = load_attempts(folder)
    write_report(
        folder,
        project=config.model_dump(mode="json"),
        data=audit_facts(splits, tokenizer, is_multilabel=config.task == "multilabel"),
        evaluation=ours,
        baseline=plain,
        examples=splits.test,
        events=tries[-1].folder(folder) / EVENTS if tries else folder / EVENTS,
        attempts=[told(attempt) for attempt in tries],
        attempt_events=[attempt.folder(folder) / EVENTS for attempt in tries],
        lengths=_count_tokens(splits, tokenizer),
        max_length=tokenizer.max_length,
        long_text=tokenizer.settings.long_text,
    )
    return Run(folder, training, ours, plain)


def _count_tokens(splits: Splits, tokenizer: Tokenizer) -> npt.NDArray[np.int64]:
    """Return the (N,) tokens of the training texts before cutting, without holding the texts."""
    counts = [tokenizer.count_tokens(texts) for texts in text_blocks(splits.train)]
    return np.concatenate([np.zeros(0, np.int64), *counts])


def _train_or_load(
    project: Project,
    splits: Splits,
    folder: Path,
    resume: bool,
    progress: Progress,
    stream: Stream | None = None,
) -> tuple[Classifier, Tokenizer, TrainResult]:
    """Train, unless a run that was cut off before its report has nothing left to train."""
    config = project.config
    done = load_result(folder) if resume else None
    # Of a finished run that gets more epochs, or a given-up one that gets other cures.
    outdated = Outdated(folder / REPORT, folder / GAVE_UP, folder / PAGE)
    # Without attempts a run was cut off before they were told: the rescue goes on from there.
    is_told = done is not None and (stream is not None or bool(done.attempts))
    if done is not None and is_told and not has_epochs_left(folder, project):
        return *load(folder / MODEL), done
    classifier, tokenizer, notes = build(
        config.model, splits.labels, config.encode, config.train.seed, config.task
    )
    for sentence in notes.sentences:
        progress.say(sentence)
    for finding in find_before_steps(classifier, tokenizer, notes, config.train):
        progress.say(f"{finding.level}: {finding.message}. {finding.fix}")
    try:
        training = _train(classifier, tokenizer, project, splits, folder, resume, progress, outdated, stream)
    except TrainingGaveUp as err:
        if stream is not None:
            splits = with_bad_rows(splits, folder / SIDE_FILE, progress)
        try:
            named = _report_given_up(err, folder, project, splits, tokenizer, progress)
        except TextmillError as fault:  # a full disk, say; the diagnosis counts for more than its page
            progress.say(f"The report could not be written: {fault}")
            named = err
        raise named from err
    return classifier, tokenizer, training


def _train(
    classifier: Classifier,
    tokenizer: Tokenizer,
    project: Project,
    splits: Splits,
    folder: Path,
    resume: bool,
    progress: Progress,
    outdated: Outdated,
    stream: Stream | None,
) -> TrainResult:
    config = project.config
    if stream is not None:
        return train_stream(
            classifier,
            tokenizer,
            stream,
            config.train,
            config.order,
            folder,
            guard=config.guard,
            resume=resume,
            progress=progress,
            hooks=[outdated],
        )
    return train_with_rescue(
        classifier,
        tokenizer,
        splits,
        config.train,
        config.order,
        folder,
        guard=config.guard,
        rescue=config.rescue,
        resume=resume,
        progress=progress,
        hooks=[outdated],
    )


def _report_given_up(
    err: TrainingGaveUp,
    folder: Path,
    project: Project,
    splits: Splits,
    tokenizer: Tokenizer,
    progress: Progress,
) -> TrainingGaveUp:
    """Write the report of a run without a usable model; return the diagnosis, which names the page."""
    config = project.config
    tries = attempts_given_up(folder, err.got)
    healthy = healthiest(splits, tries, config.train.metric)
    verdict = tries[-1].verdict
    assert verdict is not None, "who gives up says why"
    # The test rows stay untouched: these settings are not the last ones.
    plain = ours = None
    if len(splits.valid):
        seed = config.train.seed
        simple = baseline(splits.train, splits.valid, config.task)
        plain = evaluate(simple, splits.valid, seed=seed, progress=progress, title="evaluate the baseline")
        if healthy is not None:
            kept, _ = load(healthy.folder(folder) / MODEL)
            predictor = TorchPredictor(kept, tokenizer, str(choose_hardware(config.train).device))
            ours = evaluate(predictor, splits.valid, seed=seed, progress=progress)
    is_multilabel = config.task == "multilabel"
    write_atomic(folder / PROJECT, project.as_toml())
    page = write_given_up(
        folder,
        project=config.model_dump(mode="json"),
        data=audit_facts(splits, tokenizer, is_multilabel=is_multilabel),
        labels=splits.labels,
        is_multilabel=is_multilabel,
        train_rows=len(splits.train),
        diagnosis={**verdict.as_json(), "fix": err.fix, "kept": None if healthy is None else healthy.number},
        attempts=[told(attempt) for attempt in tries],
        attempt_events=[attempt.folder(folder) / EVENTS for attempt in tries],
        evaluation=ours,
        baseline=plain,
        events=None if healthy is None else healthy.folder(folder) / EVENTS,
        examples=splits.valid,
    )
    return TrainingGaveUp(err.rule, got=err.got, fix=f"{err.fix} All that was tried is in {page}.")


def publish_run(folder: Path, *, progress: Progress = SILENT) -> int:
    """Publish a run's best model as the next version of its store; it does not go live by that.

    Args:
        folder: a finished run folder; the store is the one its project file names.
        progress: who watches.

    Raises:
        StoreError: the run is not finished or was given up, or the disk cannot take the version.
    """
    if (folder / GAVE_UP).exists():
        raise StoreError(
            "A run that was given up has no model to publish",
            got=f"{folder}, whose diagnosis is in {PAGE}",
            fix="Train again with other settings, or go on with `textmill train --resume` and a larger "
            "rescue.max_cost.",
        )
    if not (folder / REPORT).exists():
        raise StoreError(
            "Only a finished run can be published",
            got=f"{folder}, which has no {REPORT}",
            fix="Finish it with `textmill train --resume`, or name another run folder.",
        )
    with claimed(folder, wait=True):
        for leftover in folder.glob(f"{_STAGING}*"):  # of a publisher that was killed
            remove_tree(leftover)
        return _publish_from(folder, progress)


def _publish_from(folder: Path, progress: Progress) -> int:
    project = load_project(folder / PROJECT)
    config = project.config
    classifier, tokenizer = load(folder / MODEL)
    evaluation = read_predictions(folder / PREDICTIONS)
    rows = read_examples(folder / PREDICTIONS)
    store = Store(project.store_root, config.name)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=folder) as staging:
        source = Path(staging) / "bundle"
        facts = prepare_bundle(
            source,
            classifier,
            tokenizer,
            clean=config.data.clean,
            golden_texts=[row.text for row in rows[:_NUM_GOLDEN]],
            gate_rows=rows[: config.gate.rows],
            metrics={"accuracy": evaluation.metrics.accuracy, "f1_macro": evaluation.metrics.f1_macro},
            extra=[folder / PROJECT, folder / REPORT, folder / CARD],
            data_fingerprint=_fingerprint(folder),
            parent=store.state().live if store.path.is_dir() else None,
            progress=progress,
        )
        return store.publish(source, facts, progress)


def promote_run(
    project: Project, version: int, *, force: bool = False, progress: Progress = SILENT
) -> GateReport:
    """Make a version live if it passes the gate of the project.

    Raises:
        GateRefused: it does not; the live version stays.
        StoreError: there is no such version, or it is damaged.
    """
    store = Store(project.store_root, project.config.name)
    return promote(store, version, project.config.gate, force=force, progress=progress)


def _fingerprint(folder: Path) -> str:
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    return str(report["data"]["fingerprint"])
