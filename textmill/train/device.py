"""Where and in which number format a training computes.

Promises: "auto" takes the first of cuda, mps, cpu that is there; a device or format that is not
there is a clear error, never a silent fallback.
What is not covered: several devices (`parallel/`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from textmill.core.errors import ProjectError
from textmill.core.machine import has_bf16_units, num_cpus
from textmill.train.config import TrainConfig


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a training computes on."""

    device: torch.device
    precision: str
    """"fp32" or "bf16"."""
    threads: int

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of a forward pass in the chosen number format; weights stay fp32."""
        if self.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Use the chosen number of CPU threads, and give back the old number and all random states."""
        threads = torch.get_num_threads()
        devices = [self.device] if self.device.type == "cuda" else []
        torch.set_num_threads(self.threads)
        try:
            with torch.random.fork_rng(devices=devices):
                yield
        finally:
            torch.set_num_threads(threads)


def choose_hardware(config: TrainConfig) -> Hardware:
    """Return the hardware that the config asks for.

    Raises:
        ProjectError: a device that is not there, or bf16 on a GPU that has none.
    """
    available = _available()
    name = available[0] if config.device == "auto" else config.device
    if name not in available:
        raise ProjectError(
            "train.device must be there",
            got=f"{name!r} on a machine with {', '.join(available)}",
            fix='Set train.device = "auto".',
        )
    device = torch.device(name, torch.cuda.current_device()) if name == "cuda" else torch.device(name)
    has_bf16 = _has_bf16(device)
    if config.precision == "bf16" and not has_bf16:
        raise ProjectError(
            "The GPU must have bf16 for train.precision to ask for it",
            got=f"{name!r} without it",
            fix='Set train.precision = "auto".',
        )
    is_faster = device.type == "cuda" or (device.type == "cpu" and has_bf16_units())
    wanted = "bf16" if has_bf16 and is_faster else "fp32"
    return Hardware(
        device=device,
        precision=wanted if config.precision == "auto" else config.precision,
        threads=num_cpus() if config.threads == "auto" else config.threads,
    )


def _available() -> list[str]:
    names = ["cuda"] if torch.cuda.is_available() else []
    names += ["mps"] if torch.backends.mps.is_available() else []
    return [*names, "cpu"]


def _has_bf16(device: torch.device) -> bool:
    # On CPUs without bf16 units torch computes it all the same, only slowly: allowed on request.
    return device.type == "cpu" or (
        device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    )
