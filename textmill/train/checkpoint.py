"""Everything that the next step depends on, on disk: resume after a kill is exact.

    checkpoints/step-00000120/
        model.safetensors       weights and buffers
        training.safetensors    optimizer moments, random states
        checkpoint.json         counters, identity of the run, SHA-256 of the other two; written last

Promises: data only, no pickle; a checkpoint appears whole under its name or not at all; one that is
damaged all the same is passed over for the one before it; with the same threads on the same CPU the
next step's loss is equal to the last bit.
What is not covered: other numbers of processes (`parallel/`).
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from textmill.core.files import disk_faults, fsync_folder, fsync_tree, sha256_file, write_json
from textmill.train.best import Best

FOLDER = "checkpoints"
_MODEL, _TRAINING, _MANIFEST = "model.safetensors", "training.safetensors", "checkpoint.json"
_OPTIMIZER, _RANDOM = "optimizer.", "random."

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counters:
    """Where a training stands."""

    step: int = 0
    """Optimizer steps made."""
    epoch: int = 0
    """Epochs finished."""
    position: int = 0
    """Steps made in the epoch that is under way."""
    best: Best = field(default_factory=Best)
    rows: int = 0
    tokens: int = 0
    cells: int = 0
    """Tokens with padding."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is whole: every hash fits."""

    path: Path
    counters: Counters
    identity: dict[str, Any]
    """What must not change when the run goes on (`train/identity.py`)."""
    feed: dict[str, Any]
    """The feed's own state (`train/feed.py`)."""
    guard: dict[str, Any] | None
    """The guard's state; None: nobody watched."""

    def restore(self, classifier: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
        """Put weights, optimizer moments and random states back."""
        classifier.load_state_dict(load_file(self.path / _MODEL, device=str(device)))
        tensors = load_file(self.path / _TRAINING)
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith(_OPTIMIZER):
                index, _, key = name.removeprefix(_OPTIMIZER).partition(".")
                moments.setdefault(int(index), {})[key] = tensor
        optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        torch.set_rng_state(tensors[_RANDOM + "cpu"])
        if device.type == "cuda" and _RANDOM + "cuda" in tensors:
            torch.cuda.set_rng_state(tensors[_RANDOM + "cuda"], device)


def save_checkpoint(
    run_dir: Path,
    classifier: nn.Module,
    optimizer: torch.optim.Optimizer,
    counters: Counters,
    identity: dict[str, Any],
    keep: int,
    feed: dict[str, Any] | None = None,
    guard: dict[str, Any] | None = None,
) -> Path:
    """Write a checkpoint and remove all but the newest `keep`.

    Args:
        run_dir: the run's folder.
        classifier: its weights and buffers.
        optimizer: its moments.
        counters: where the training stands.
        identity: what must not change.
        keep: how many checkpoints stay.
        feed: the feed's own state; None is an empty one.
        guard: the guard's state.

    Raises:
        StoreError: the disk is full or forbidden; earlier checkpoints are still there.
    """
    root = run_dir / FOLDER
    final = root / f"step-{counters.step:08d}"
    staged = root / f".{final.name}"
    with disk_faults(staged):
        for leftover in root.glob(".step-*"):  # of a kill while writing
            shutil.rmtree(leftover)
        try:
            staged.mkdir(parents=True)
            _write_tensors(staged / _MODEL, dict(classifier.state_dict()))
            _write_tensors(staged / _TRAINING, _training_tensors(optimizer))
            _write_manifest(
                staged,
                {"counters": asdict(counters), "identity": identity, "feed": feed or {}, "guard": guard},
            )
            fsync_tree(staged)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        if final.exists():  # a damaged one, or one beyond the step that was resumed from
            shutil.rmtree(final)
        staged.rename(final)
        fsync_folder(root)
        for old in _folders(run_dir)[keep:]:
            shutil.rmtree(old)
    return final


def newest_checkpoint(run_dir: Path) -> Checkpoint | None:
    """Return the newest checkpoint that is whole, or None; damaged ones are named in a warning."""
    for folder in _folders(run_dir):
        fault = _fault(folder)
        if fault is None:
            manifest = json.loads((folder / _MANIFEST).read_text())
            table = manifest["counters"]
            counters = Counters(**{**table, "best": Best(**table["best"])})
            return Checkpoint(folder, counters, manifest["identity"], manifest["feed"], manifest.get("guard"))
        log.warning("%s is damaged (%s); the one before it is used", folder, fault)
    return None


def _folders(run_dir: Path) -> list[Path]:
    """The checkpoint folders, newest first."""
    return sorted((run_dir / FOLDER).glob("step-*"), reverse=True)


def _fault(folder: Path) -> str | None:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        hashes: dict[str, str] = manifest["sha256"]
        for name in (_MODEL, _TRAINING):
            if sha256_file(folder / name) != hashes[name]:
                return f"{name} does not fit its hash"
    except (OSError, ValueError, KeyError, TypeError) as err:
        return str(err)
    return None


def _training_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    tensors = {_RANDOM + "cpu": torch.get_rng_state()}
    for index, moments in optimizer.state_dict()["state"].items():
        for key, value in moments.items():
            if value is not None:
                tensors[f"{_OPTIMIZER}{index}.{key}"] = value
                if value.device.type == "cuda":
                    tensors[_RANDOM + "cuda"] = torch.cuda.get_rng_state(value.device)
    return tensors


def _write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    manifest = {**facts, "sha256": {name: sha256_file(folder / name) for name in (_MODEL, _TRAINING)}}
    write_json(folder / _MANIFEST, manifest)
    mode = (folder / _MANIFEST).stat().st_mode
    for name in (_MODEL, _TRAINING):
        (folder / name).chmod(mode)  # safetensors writes 0600, whatever the umask allows


def _write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    # safetensors refuses tensors that share memory (tied weights): each one gets its own copy.
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(copies, path)
