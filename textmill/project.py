"""The project file as one tree of configs.

Promises: every key has a default (except the training data) and a description; unknown keys are
refused with the nearest name; relative paths are relative to the file; the resolved file that is
kept with a run gives the same run again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import Field, model_validator

from textmill.core.config import Config, apply_overrides, parse_config
from textmill.core.errors import ProjectError
from textmill.core.types import Task
from textmill.data.config import DataConfig
from textmill.encode.config import EncodeConfig
from textmill.model.config import ModelConfig
from textmill.order.config import OrderConfig
from textmill.serve.config import ServeConfig
from textmill.serve.gate import GateConfig
from textmill.train.config import TrainConfig
from textmill.train.cures.config import RescueConfig
from textmill.train.guard.config import GuardConfig

DEFAULT_FILE = "project.toml"


class ProjectConfig(Config):
    """All that textmill must know to make a model from data and serve it."""

    name: str = Field("model", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    """The model's name, in the store and in the server's addresses."""
    task: Task = "classification"
    """What the model does: one class a text, one class a pair of texts, or any number of classes a text."""
    runs: str = "runs"
    """The folder of training runs."""
    store: str = "store"
    """The folder of published versions."""
    cache: str = "cache"
    """The folder of rows and tokens that were prepared once; it may be deleted at any time."""
    data: DataConfig
    """Where the rows are and how they are cleaned and split."""
    encode: EncodeConfig = EncodeConfig()
    """How text is cut into tokens."""
    model: ModelConfig = ModelConfig()
    """The encoder and its head."""
    order: OrderConfig = OrderConfig()
    """The sequence in which rows reach the model."""
    train: TrainConfig = TrainConfig()
    """The training loop."""
    guard: GuardConfig = GuardConfig()
    """What watches the training."""
    rescue: RescueConfig = RescueConfig()
    """The cures for a training that is stuck."""
    gate: GateConfig = GateConfig()
    """The checks before a version may go live."""
    serve: ServeConfig = ServeConfig()
    """The server."""

    @model_validator(mode="after")
    def _name_both_texts(self) -> ProjectConfig:
        if self.task == "pairs" and self.data.text_pair is None:
            raise ValueError('task = "pairs" without data.text_pair, the column of the second text')
        if self.task != "pairs" and self.data.text_pair is not None:
            raise ValueError(f'data.text_pair, which is for task = "pairs", with task = "{self.task}"')
        if self.data.text_pair is not None and self.data.text_pair == self.data.text:
            raise ValueError("one column as data.text and as data.text_pair")
        return self


@dataclass(frozen=True, slots=True)
class Project:
    """A project's configuration and the folder to which its paths are relative."""

    config: ProjectConfig
    folder: Path

    @property
    def runs(self) -> Path:
        """The folder that holds this model's runs."""
        return self.folder / self.config.runs / self.config.name

    @property
    def store_root(self) -> Path:
        """The folder that holds the stores of all models."""
        return self.folder / self.config.store

    @property
    def cache_root(self) -> Path:
        """The folder of what was prepared once."""
        return self.folder / self.config.cache

    def with_values(self, **tables: Any) -> Project:
        """Return a copy in which the given top-level values or tables are updated."""
        table = self.config.model_dump()
        for key, value in tables.items():
            table[key] = {**table[key], **value} if isinstance(value, dict) else value
        return Project(parse_config(ProjectConfig, table, "the project"), self.folder)

    def as_toml(self) -> str:
        """Return the resolved project file, with absolute paths of the data."""
        table = self.config.model_dump(mode="json")
        for side in ("train", "valid", "test"):
            source = table["data"].get(side)
            if source is not None and not source.startswith("hf:"):
                table["data"][side] = str((self.folder / source).resolve())
        table["runs"] = str((self.folder / self.config.runs).resolve())
        table["store"] = str((self.folder / self.config.store).resolve())
        table["cache"] = str((self.folder / self.config.cache).resolve())
        return tomli_w.dumps(_without_nones(table))


def load_project(path: Path | str = DEFAULT_FILE, overrides: Sequence[str] = ()) -> Project:
    """Read a project file.

    Args:
        path: the file, or a folder that holds `project.toml`.
        overrides: `key.sub=value` settings that win over the file.

    Raises:
        ProjectError: the file is missing, is no TOML, or a key or value is wrong.
    """
    path = Path(path)
    if path.is_dir():
        path = path / DEFAULT_FILE
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as err:
        raise ProjectError(
            "There must be a project file",
            got=f"no file {path}",
            fix="Write one with `textmill init`, or name it: textmill train path/to/project.toml",
        ) from err
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise ProjectError(
            "A project file must be TOML in UTF-8",
            got=f"{path}: {err}",
            fix="Mend the line, or write a new file with `textmill init`.",
        ) from err
    config = parse_config(ProjectConfig, apply_overrides(table, overrides), str(path))
    folder = path.resolve().parent
    return Project(config.model_copy(update={"model": _place_backbone(config.model, folder)}), folder)


def project_schema() -> dict[str, Any]:
    """Return the JSON schema of the project file."""
    schema = ProjectConfig.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def _place_backbone(config: ModelConfig, folder: Path) -> ModelConfig:
    """Make the path of a backbone absolute where it is a folder beside the project file."""
    place = folder / config.backbone
    if config.backbone.startswith("package:") or not place.is_dir():
        return config
    return config.model_copy(update={"backbone": str(place.resolve())})


def _without_nones(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nones(item) for key, item in value.items() if item is not None}
    return value
