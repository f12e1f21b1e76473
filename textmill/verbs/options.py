"""What all verbs share: their options, and how they load a project and show a result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textmill.terminal import progress_for, show_json, show_lines

if TYPE_CHECKING:
    from textmill.core.progress import Progress
    from textmill.project import Project
    from textmill.store.registry import Store

ProjectFile = Annotated[Path, typer.Argument(help="The project file, or its folder.")]
ProjectOption = Annotated[Path, typer.Option("--project", "-p", help="The project file, or its folder.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key, for example train.lr=3e-5; may repeat.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
Version = Annotated[
    int | None, typer.Option("--version", help="A version; default: live, else the newest run.")
]
RunFolder = Annotated[Path | None, typer.Option("--run", help="A run folder instead of a stored version.")]
DEFAULT_PROJECT = Path("project.toml")


def progress_shown() -> Progress:
    """Return who shows progress: bars or lines on standard error."""
    return progress_for(sys.stderr)


def load(path: Path, overrides: list[str] | None = None) -> Project:
    """Return the project with its `--set` overrides."""
    from textmill.project import load_project

    return load_project(path, overrides or ())


def store_of(project: Path) -> Store:
    """Return the store of a project."""
    from textmill.store.registry import Store

    loaded = load(project)
    return Store(loaded.store_root, loaded.config.name)


def show(result: dict[str, Any], as_json: bool, lines: list[str]) -> None:
    """Show a result to a machine or to a person."""
    if as_json:
        show_json(result)
    else:
        show_lines(lines)


def serve_next(version: int, project: Path) -> str:
    """Return what to do after a version went live."""
    where = "" if project == DEFAULT_PROJECT else f" {project}"
    return f"Version {version} is live. A running server takes it by itself; else: textmill serve{where}"
