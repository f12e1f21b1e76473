"""`textmill server`: a running server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from textmill.terminal import fact_lines
from textmill.verbs.options import DEFAULT_PROJECT, Json, ProjectOption, load, show

server_app = typer.Typer(no_args_is_help=True, help="A running server: its status, a load with a receipt.")


@server_app.command("status")
def server_status(
    project: ProjectOption = DEFAULT_PROJECT,
    admin_port: Annotated[int | None, typer.Option(help="Default: the project's serve.admin_port.")] = None,
    as_json: Json = False,
) -> None:
    """Ask the running server which versions it holds and which one answers."""
    from textmill.serve.admin import AdminClient

    loaded = load(project)
    facts = AdminClient(loaded.store_root, admin_port or loaded.config.serve.admin_port).status()
    show(facts, as_json, fact_lines(facts["models"]))


@server_app.command("load")
def server_load(
    texts: Annotated[Path, typer.Argument(help="A file of texts, one a line; of pairs, with a tab between.")],
    project: ProjectOption = DEFAULT_PROJECT,
    url: Annotated[str | None, typer.Option(help="Default: this machine, the project's serve.port.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests a second; default: as many as the clients get answered.")
    ] = None,
    clients: Annotated[int, typer.Option(help="Keep-alive connections, where no rate is given.")] = 8,
    duration_s: Annotated[float, typer.Option("--duration", help="Seconds.")] = 10.0,
    receipt: Annotated[Path | None, typer.Option(help="Write the receipt here, as JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Send a load without retries and account for every request; exit code 1 if one failed."""
    from textmill.serve.load import run_load
    from textmill.serve.receipt import texts_of_file

    config = load(project).config
    ledger = run_load(
        url or f"http://{config.serve.host}:{config.serve.port}",
        config.name,
        texts_of_file(texts, is_pairs=config.task == "pairs"),
        clients=clients if rate is None else None,
        rate_s=rate,
        duration_s=duration_s,
        receipt_file=receipt,
    )
    show(ledger.as_json(), as_json, ledger.as_lines())
    if not ledger.is_clean:
        raise typer.Exit(1)
