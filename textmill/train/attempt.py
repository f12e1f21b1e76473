"""The tries of one run, as `attempts.json` keeps them.

    runs/<name>/<time>/             the first attempt: events.jsonl, checkpoints/, model/
        attempts.json               all of them
        attempts/02/                the second: events.jsonl, checkpoints/, model/
        model/                      in the end the state that was kept, whichever attempt it is of

Promises: the file is replaced as a whole, before an attempt begins and when it has ended, so that a
run that was killed goes on in the right attempt; the numbers of an attempt are those of its event log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from textmill.core.files import write_json
from textmill.train.config import Metric
from textmill.train.cures.cure import Start
from textmill.train.guard.verdict import Verdict
from textmill.train.hooks import EVENTS, read_events

FILE = "attempts.json"
FOLDER = "attempts"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a training."""

    number: int
    """From 1."""
    cure: str | None = None
    """The rung of the ladder; None: the training as the project file has it."""
    tried: str = "the settings of the project file"
    """The same in words."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the project file, by dotted key."""
    start: Start = field(default_factory=Start)
    """Where its weights came from."""
    status: Literal["running", "healthy", "alarm"] = "running"
    ended: str = ""
    """Why it ended, in a sentence."""
    verdict: Verdict | None = None
    steps: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0
    """Time of its steps."""
    probe_steps: int = 0
    """Steps of the measurement that chose its settings."""
    probe_rows: int = 0
    probe_tokens: int = 0
    probe_seconds: float = 0.0
    best_step: int | None = None
    """The step after which its best state was kept; None: none was evaluated."""
    best_epochs: int = 0
    """Whole epochs before that."""
    best: dict[str, float] = field(default_factory=dict)
    """Validation figures of that state."""

    def folder(self, run_dir: Path) -> Path:
        """Return where its files are."""
        return run_dir if self.number == 1 else run_dir / FOLDER / f"{self.number:02d}"

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "verdict": None if self.verdict is None else self.verdict.as_json()}


def load_attempts(run_dir: Path) -> list[Attempt]:
    """Return the attempts of a run so far, none if it has no `attempts.json`."""
    path = run_dir / FILE
    if not path.exists():
        return []
    return [
        Attempt(
            **{
                **table,
                "start": Start(**table["start"]),
                "verdict": None if table["verdict"] is None else Verdict.from_json(table["verdict"]),
            }
        )
        for table in json.loads(path.read_text(encoding="utf-8"))["attempts"]
    ]


def load_identity(run_dir: Path) -> dict[str, Any] | None:
    """Return what must not change while attempts follow each other (`identity.py`); None: not kept."""
    path = run_dir / FILE
    if not path.exists():
        return None
    found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")).get("identity")
    return found


def save_attempts(run_dir: Path, attempts: Sequence[Attempt], identity: dict[str, Any] | None) -> None:
    """Replace `attempts.json`.

    Args:
        run_dir: of the run.
        attempts: all of them.
        identity: data and settings of the run, which an attempt that begins after a kill must find again.

    Raises:
        StoreError: the disk is full or forbidden; the earlier file is still there.
    """
    tried = [attempt.as_json() for attempt in attempts]
    write_json(run_dir / FILE, {"format": 1, "attempts": tried, "identity": identity})


def attempts_given_up(run_dir: Path, ended: str) -> list[Attempt]:
    """Return the attempts of a run that was given up, the last one with the diagnosis.

    Where nobody kept them (a stream, a guard that is switched off) they are read from the event log.

    Args:
        run_dir: of the run.
        ended: why the last one ended, in words.
    """
    attempts = load_attempts(run_dir) or [Attempt(1)]
    last = attempts[-1]
    if last.status == "alarm" and last.verdict is not None:
        return attempts
    folder = last.folder(run_dir)
    verdict, figures = last_verdict(folder), figures_of(folder)
    if verdict is None or not verdict.is_alarm:  # without a guard only numbers that are none end a training
        verdict = Verdict("not-a-number", int(figures["steps"]), {}, f"It ended with {ended}.", True)
    return [*attempts[:-1], replace(last, status="alarm", ended=ended, verdict=verdict, **figures)]


def last_verdict(folder: Path) -> Verdict | None:
    """Return what the guard said last in the event log of an attempt; None: nothing."""
    found = [event for event in read_events(folder / EVENTS) if event["event"] == "verdict"]
    if not found:
        return None
    return Verdict.from_json({name: value for name, value in found[-1].items() if name != "event"})


def told(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as a line of a report: what it was, what came of it, what it cost."""
    return {
        "attempt": attempt.number,
        "cure": attempt.cure or "",
        "tried": attempt.tried,
        "ended": attempt.verdict.sentence if attempt.verdict and attempt.status == "alarm" else attempt.ended,
        "verdict": attempt.verdict.kind if attempt.verdict else "healthy",
        "steps": attempt.steps + attempt.probe_steps,
        "tokens": attempt.tokens + attempt.probe_tokens,
        "seconds": round(attempt.seconds + attempt.probe_seconds, 1),
        "f1_macro": round(attempt.best["f1_macro"], 4) if attempt.best else "",
    }


def figures_of(folder: Path) -> dict[str, Any]:
    """Return the numbers of an attempt out of its event log, by the names of `Attempt`."""
    events = read_events(folder / EVENTS)
    steps = [event for event in events if event["event"] == "step"]
    found: dict[str, Any] = {
        "steps": len(steps),
        "rows": sum(int(str(event["rows"])) for event in steps),
        "tokens": sum(int(str(event["tokens"])) for event in steps),
        "seconds": sum(float(str(event["seconds"])) for event in steps),
    }
    best = [event for event in events if event["event"] == "evaluation" and event["is_best"]]
    if best:
        names = ("valid_loss", "accuracy", "f1_macro")
        found["best"] = {name: float(str(best[-1][name])) for name in names}
        found["best_step"] = int(str(best[-1]["step"]))
        found["best_epochs"] = _whole_epochs(steps, found["best_step"])
    return found


def is_better(one: Attempt, other: Attempt, metric: Metric) -> bool:
    """Return whether the best state of `one` is better than that of `other`; both have one."""
    name = "valid_loss" if metric == "loss" else metric
    if one.best[name] == other.best[name]:
        return one.best["valid_loss"] < other.best["valid_loss"]
    return one.best[name] < other.best[name] if metric == "loss" else one.best[name] > other.best[name]


def _whole_epochs(steps: Sequence[dict[str, object]], last: int) -> int:
    """Return the epochs that have ended by step `last`: those before the epoch of the step after it."""
    after = [int(str(event["epoch"])) for event in steps if int(str(event["step"])) == last + 1]
    epochs = [int(str(event["epoch"])) for event in steps if int(str(event["step"])) <= last]
    if after:
        return after[0] - 1
    return epochs[-1] if epochs else 0
