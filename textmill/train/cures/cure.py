"""What a cure is told, and what it answers.

A cure is a function `(Situation) -> Treatment | None` in a file of its own; None: it does not fit.
Treatments add up: each changes the settings of the attempt that has just failed.

Promise: a treatment is plain values and gives the same attempt again after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from textmill.order.config import OrderConfig
from textmill.train.config import TrainConfig
from textmill.train.guard.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Settings:
    """The tables of the project file that a cure may change."""

    train: TrainConfig
    order: OrderConfig

    def with_changes(self, changes: Mapping[str, Any]) -> Settings:
        """Return the settings with values by dotted key, such as `train.lr`."""
        tables: dict[str, dict[str, Any]] = {
            "train": self.train.model_dump(),
            "order": self.order.model_dump(),
        }
        for key, value in changes.items():
            table, _, name = key.partition(".")
            assert name in tables[table], f"{key} is no setting"
            tables[table][name] = value
        return Settings(TrainConfig(**tables["train"]), OrderConfig(**tables["order"]))


@dataclass(frozen=True, slots=True)
class Start:
    """Where the weights of an attempt come from."""

    attempt: int | None = None
    """Number of the attempt whose best state is gone back to; None: the weights that the run began with."""
    epochs_done: int = 0
    """Whole epochs that lie behind that state; the attempt makes the others."""
    fresh_head: bool = False
    """Whether the head is drawn anew, from the attempt's own seed."""
    fresh_layers: int = 0
    """How many of the encoder's last layers are drawn anew."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Situation:
    """A training that the guard has ended."""

    verdict: Verdict
    settings: Settings
    """Of the attempt that has just ended."""
    tried: tuple[str, ...] = ()
    """The cures so far."""
    healthy: int | None = None
    """Number of the attempt with the best healthy state; None: there is no healthy state."""
    healthy_epochs: int = 0
    """Whole epochs before that state."""
    num_rows: int = 0
    """Training rows."""
    num_layers: int = 0
    """Layers of the encoder."""
    is_pretrained: bool = True
    measure_lr: Callable[[], float | None] | None = None
    """Measures the learning rate that the first weights can bear; None: it finds none, or cannot be asked."""

    @property
    def rows_a_step(self) -> int:
        """Rows of an average step."""
        return self.settings.train.batch_size * self.settings.train.accumulate


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a cure wants changed."""

    sentence: str
    """What is tried, for people."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Values by dotted key, against the settings of the attempt that has just ended."""
    start: Start = Start()
