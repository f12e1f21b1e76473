"""`textmill store`: published versions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from textmill.terminal import fact_lines, show_json, show_table
from textmill.verbs.options import (
    DEFAULT_PROJECT,
    Json,
    ProjectOption,
    load,
    progress_shown,
    serve_next,
    show,
    store_of,
)

store_app = typer.Typer(no_args_is_help=True, help="Published versions: list, publish, promote, roll back.")


@store_app.command("list")
def store_list(project: ProjectOption = DEFAULT_PROJECT, as_json: Json = False) -> None:
    """List the published versions, and which one is live."""
    from textmill.store.show import COLUMNS, list_versions, shown_version

    rows = list_versions(store_of(project))
    if as_json:
        show_json({"versions": rows})
    else:
        show_table("Versions", COLUMNS, [shown_version(row) for row in rows])


@store_app.command("show")
def store_show(
    version: Annotated[int, typer.Argument(help="The version.")],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: Json = False,
) -> None:
    """Show one version: files, signature, metrics; every hash is checked."""
    from textmill.store.show import show_version

    facts = show_version(store_of(project), version)
    show(facts, as_json, fact_lines(facts))


@store_app.command("publish")
def store_publish(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    as_json: Json = False,
) -> None:
    """Publish a run's best model as a new version; it does not go live by that."""
    from textmill.pipeline import publish_run

    version = publish_run(run, progress=progress_shown())
    show(
        {"version": version},
        as_json,
        [f"Published version {version}. Next: textmill store promote {version}"],
    )


@store_app.command("promote")
def store_promote(
    version: Annotated[int, typer.Argument(help="The version that shall go live.")],
    project: ProjectOption = DEFAULT_PROJECT,
    force: Annotated[bool, typer.Option("--force", help="Overrule signature and comparison.")] = False,
    as_json: Json = False,
) -> None:
    """Make a version live if it passes the gate; a server that watches the store swaps by itself."""
    from textmill.pipeline import promote_run

    report = promote_run(load(project), version, force=force, progress=progress_shown())
    show(report.as_json(), as_json, [*report.as_lines(), serve_next(version, project)])


@store_app.command("rollback")
def store_rollback(project: ProjectOption = DEFAULT_PROJECT, as_json: Json = False) -> None:
    """Make the previous version live again; the one that was live is banned from coming back by itself."""
    state = store_of(project).rollback()
    show(state.model_dump(mode="json"), as_json, [f"Live: version {state.live}."])


@store_app.command("prune")
def store_prune(
    project: ProjectOption = DEFAULT_PROJECT,
    keep: Annotated[int, typer.Option(help="How many of the newest versions stay.")] = 5,
    as_json: Json = False,
) -> None:
    """Remove old versions; live, previous, pinned ones and those of a channel always stay."""
    removed = store_of(project).prune(keep)
    show({"removed": removed}, as_json, [f"Removed: {', '.join(map(str, removed)) or 'none'}."])
