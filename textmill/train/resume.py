"""Where a training begins: at its start, or at the newest whole checkpoint of the run.

Promises: a run folder in use is never overwritten; a resume on other data is refused; what was
logged after the checkpoint is cut away, so that no step is in the log twice; a run that is
complete says so.
"""

from __future__ import annotations

from pathlib import Path

from textmill.core.errors import ProjectError
from textmill.core.progress import Progress
from textmill.data.prepare import Splits
from textmill.train import checkpoint
from textmill.train.best import repair_best
from textmill.train.checkpoint import Checkpoint, Counters, newest_checkpoint
from textmill.train.config import TrainConfig
from textmill.train.hooks import EVENTS, cut_events
from textmill.train.identity import check_same_data
from textmill.train.result import FILE as RESULT


def begin_or_resume(
    run_dir: Path, splits: Splits, config: TrainConfig, resume: bool, progress: Progress
) -> Checkpoint | None:
    """Prepare the run folder; return the checkpoint to go on from, or None for a start.

    Raises:
        ProjectError: the folder has a run already and `resume` is off, or has none and it is on, or
            the run is complete.
        DataError: the data is not that of the run.
    """
    is_used = (run_dir / EVENTS).exists() or (run_dir / checkpoint.FOLDER).exists()
    if is_used and not resume:
        raise ProjectError(
            "A new run needs a folder of its own",
            got=f"{run_dir}, which holds a run",
            fix="Choose another folder, or go on with this run with --resume.",
        )
    if not resume:
        return None
    if not run_dir.is_dir():
        raise ProjectError(
            "A run that goes on must be there", got=f"no folder {run_dir}", fix="Start it without --resume."
        )
    found = newest_checkpoint(run_dir)
    if found is None:
        num_lost = cut_events(run_dir / EVENTS, -1)  # also what was said before the first step
        repair_best(run_dir)
        progress.say(f"No checkpoint in {run_dir}: the run starts again ({num_lost} logged events dropped).")
        return None
    check_same_data(found.identity, splits)
    check_steps_left(found, config, run_dir)
    return found


def check_steps_left(found: Checkpoint, config: TrainConfig, run_dir: Path) -> None:
    """Go on only where something is left to do.

    Raises:
        ProjectError: the run has its result, and all epochs or the patience are used up.
    """
    if is_complete(found.counters, config) and (run_dir / RESULT).exists():
        counters = found.counters
        by_patience = counters.epoch < config.epochs
        raise ProjectError(
            "A run that goes on must have steps left",
            got=f"a run that is complete after {counters.step} steps"
            + (
                f" (stopped early in epoch {counters.epoch + 1})"
                if by_patience
                else f" ({counters.epoch} epochs)"
            ),
            fix="Raise train.patience to go on." if by_patience else "Raise train.epochs to go on.",
        )


def is_complete(counters: Counters, config: TrainConfig) -> bool:
    """Return whether all epochs are done or the patience has run out."""
    is_stopped = config.patience is not None and counters.best.num_without_gain >= config.patience
    return counters.epoch >= config.epochs or is_stopped


def cut_back(run_dir: Path, found: Checkpoint, progress: Progress) -> None:
    """Take the run folder back to a checkpoint: its log, its best state, its result."""
    num_lost = cut_events(run_dir / EVENTS, found.counters.step)
    repair_best(run_dir)
    (run_dir / RESULT).unlink(missing_ok=True)
    progress.say(
        f"Going on after step {found.counters.step} (epoch {found.counters.epoch + 1}); "
        f"{num_lost} logged events after it are made again."
    )
