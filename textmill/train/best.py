"""Which state is the best so far, and whether it still pays to go on.

Promises: a later state replaces the best only when it is better; of equal ones that of the lower validation
loss is kept, which counts as no gain for the patience, and else the earlier one; the
folder of the best state is replaced as a whole, and a kill between its two renames is repaired.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from textmill.core.files import disk_faults, fsync_folder, fsync_tree, remove_tree
from textmill.encode.tokenizer import Tokenizer
from textmill.model import files
from textmill.model.classifier import Classifier
from textmill.train.config import Metric

FOLDER = "model"
_STAGED, _REPLACED = ".model-new", ".model-old"


@dataclass(frozen=True, slots=True)
class Best:
    """The best evaluation so far."""

    step: int = 0
    """Step after which it was made; 0: no evaluation yet."""
    epoch: int = 0
    value: float | None = None
    num_without_gain: int = 0
    """Evaluations since the value was first reached."""
    loss: float | None = None
    """Validation loss of that evaluation, which decides between equal values; None: not known."""

    def after(
        self, step: int, epoch: int, value: float | None, metric: Metric, loss: float | None = None
    ) -> Best:
        """Return the best once one more state is known; `value` is None where no row can judge it."""
        if value is None or self.value is None or _is_better(value, self.value, metric):
            return Best(step, epoch, value, loss=loss)
        num = self.num_without_gain + 1
        if value == self.value and loss is not None and self.loss is not None and loss < self.loss:
            return Best(step, epoch, value, num, loss)
        return replace(self, num_without_gain=num)


def _is_better(value: float, best: float, metric: Metric) -> bool:
    return value < best if metric == "loss" else value > best


def save_best(run_dir: Path, classifier: Classifier, tokenizer: Tokenizer) -> None:
    """Put the classifier into `run_dir/model`, in place of the one that is there.

    Raises:
        StoreError: the disk is full or forbidden; the earlier best state is still there.
    """
    with disk_faults(run_dir / _STAGED):
        files.save(classifier, tokenizer, run_dir / _STAGED)
        _replace_best(run_dir)


def adopt_best(run_dir: Path, model: Path) -> None:
    """Put a copy of the folder `model`, a state of another attempt, in place of `run_dir/model`.

    Raises:
        StoreError: the disk is full or forbidden; the earlier best state is still there.
    """
    staged = run_dir / _STAGED
    with disk_faults(staged):
        remove_tree(staged)
        shutil.copytree(model, staged)
        fsync_tree(staged)
        _replace_best(run_dir)


def _replace_best(run_dir: Path) -> None:
    staged, replaced, folder = run_dir / _STAGED, run_dir / _REPLACED, run_dir / FOLDER
    if folder.exists():
        folder.rename(replaced)
    staged.rename(folder)
    fsync_folder(run_dir)
    remove_tree(replaced)


def repair_best(run_dir: Path) -> None:
    """Finish or undo what a killed `save_best` left behind."""
    staged, replaced, folder = run_dir / _STAGED, run_dir / _REPLACED, run_dir / FOLDER
    if not folder.exists() and replaced.exists():
        # Killed between the two renames; the staged folder is whole then, but the old one is certain.
        replaced.rename(folder)
    for leftover in (
        staged,
        replaced,
        *run_dir.glob(".removed-.model-*"),
        *run_dir.glob(".staging-.model-*"),
    ):
        if leftover.exists():
            shutil.rmtree(leftover)
