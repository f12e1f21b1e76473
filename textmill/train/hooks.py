"""What follows a training: the event log, the bar, TensorBoard.

Promises: `events.jsonl` holds one JSON line a step, one an evaluation and one a change of the guard's
verdict, in order and each once, also after a resume: it is cut to the checkpoint's step before training
goes on.
What is not covered: decisions. A hook watches; `best.py`, `guard.py` and `loop.py` decide.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from textmill.core.errors import MissingExtra, missing_extra
from textmill.core.files import disk_faults, write_atomic
from textmill.core.progress import Task
from textmill.train.guard.verdict import Verdict

EVENTS = "events.jsonl"


@dataclass(frozen=True, slots=True)
class StepDone:
    """One optimizer step."""

    step: int
    """Number of the step over the whole run, from 1."""
    epoch: int
    """Number of the epoch, from 1."""
    loss: float
    """Mean over the step's rows, with smoothing and weights."""
    lr: float
    grad_norm: float
    """Before clipping."""
    encoder_norm: float
    """The encoder's part of it."""
    head_norm: float
    """The part of all other weights."""
    rows: int
    tokens: int
    """Without padding."""
    cells: int
    """Tokens with padding: rows x longest, summed over the step's batches."""
    seconds: float
    """Time of this step, without evaluations and checkpoints."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation on the validation rows."""

    step: int
    epoch: int
    valid_loss: float
    """Mean over the rows of the plain cross-entropy, without smoothing and weights."""
    accuracy: float
    f1_macro: float
    is_best: bool
    seconds: float


class Hook(Protocol):
    """Who watches a training."""

    def on_step(self, event: StepDone) -> None:
        """Take note of a step."""
        ...

    def on_evaluation(self, event: Evaluated) -> None:
        """Take note of an evaluation."""
        ...

    def close(self) -> None:
        """Let go of files; also called when training fails."""
        ...


class EventLog:
    """Writes `events.jsonl`; a line survives a kill once written, a power cut once `sync` was called."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with disk_faults(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def on_step(self, event: StepDone) -> None:
        """Write a line with `"event": "step"`."""
        self._write("step", event)

    def on_evaluation(self, event: Evaluated) -> None:
        """Write a line with `"event": "evaluation"`."""
        self._write("evaluation", event)

    def on_verdict(self, verdict: Verdict) -> None:
        """Write a line with `"event": "verdict"`."""
        self._append({"event": "verdict", **verdict.as_json()})

    def sync(self) -> None:
        """Put all lines on the disk."""
        with disk_faults(self._path):
            os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _write(self, kind: str, event: StepDone | Evaluated) -> None:
        self._append({"event": kind, **dataclasses.asdict(event)})

    def _append(self, event: dict[str, Any]) -> None:
        left = (json.dumps(event, allow_nan=False) + "\n").encode()
        with disk_faults(self._path):
            while left:  # a write is short when the disk is nearly full; the next one then says so
                left = left[os.write(self._handle, left) :]


class ProgressHook:
    """Moves a bar and shows loss, learning rate and the validation metric."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._figures: dict[str, float] = {}

    def on_step(self, event: StepDone) -> None:
        """Move on by one step."""
        self._figures |= {"loss": event.loss, "lr": event.lr, "rows/s": event.rows / max(event.seconds, 1e-9)}
        self._task.advance(1, **self._figures)

    def on_evaluation(self, event: Evaluated) -> None:
        """Show the metric from now on."""
        self._figures |= {"valid_loss": event.valid_loss, "f1_macro": event.f1_macro}
        self._task.advance(0, **self._figures)

    def close(self) -> None:
        """Leave the bar to who opened it."""


class TensorBoardHook:
    """Writes TensorBoard files into a folder; a resumed run hides what it repeats (`purge_step`)."""

    def __init__(self, folder: Path, first_step: int) -> None:
        self._writer = _summary_writer(folder, first_step)

    def on_step(self, event: StepDone) -> None:
        """Write loss, learning rate and gradient norm."""
        for name in ("loss", "lr", "grad_norm"):
            self._writer.add_scalar(f"train/{name}", getattr(event, name), event.step)

    def on_evaluation(self, event: Evaluated) -> None:
        """Write the validation figures."""
        for name in ("valid_loss", "accuracy", "f1_macro"):
            self._writer.add_scalar(f"valid/{name}", getattr(event, name), event.step)

    def close(self) -> None:
        """Write out what is buffered."""
        self._writer.close()


class Outdated:
    """Removes files that speak of the state before, with the first new step."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths

    def on_step(self, event: StepDone) -> None:
        """Remove them, if they are there yet."""
        for path in self._paths:
            path.unlink(missing_ok=True)

    def on_evaluation(self, event: Evaluated) -> None:
        """Nothing is left to do."""

    def close(self) -> None:
        """Nothing is held."""


def read_events(path: Path) -> list[dict[str, object]]:
    """Return the lines of an event log; a last line cut by a kill is left out."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def cut_events(path: Path, step: int) -> int:
    """Leave out of an event log all that happened after `step`; return the number of lines left out."""
    events = read_events(path)
    kept = [event for event in events if int(str(event["step"])) <= step]
    if path.exists():
        write_atomic(path, "".join(json.dumps(event) + "\n" for event in kept))
    return len(events) - len(kept)


def _summary_writer(folder: Path, first_step: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as err:
        failure: MissingExtra = missing_extra("tensorboard", "track", "train.tensorboard")
        raise failure from err
    return SummaryWriter(str(folder), purge_step=first_step)
