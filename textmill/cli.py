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
from typing import Annotated

import typer
from typer.exceptions import TyperException

from textmill import __version__
from textmill.core.errors import TextmillError
from textmill.terminal import show_json, show_lines, show_table
from textmill.verbs.data import data_app
from textmill.verbs.options import (
    DEFAULT_PROJECT,
    Json,
    Overrides,
    ProjectFile,
    ProjectOption,
    RunFolder,
    Version,
    load,
    progress_shown,
    serve_next,
    show,
)
from textmill.verbs.server import server_app
from textmill.verbs.store import store_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Labelled text in, a model that serves and can be replaced while it serves out.",
)
app.add_typer(data_app, name="data")
app.add_typer(store_app, name="store")
app.add_typer(server_app, name="server")

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
    text_pair: Annotated[str | None, typer.Option(help="The column of a pair's second text.")] = None,
    name: Annotated[str | None, typer.Option(help="The model's name; default: the file's.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = DEFAULT_PROJECT,
    as_json: Json = False,
) -> None:
    """Write a project file for a labelled file, with a backbone that fits its language."""
    from textmill.new_project import init_project

    made = init_project(
        train, output, name=name, text=text, label=label, text_pair=text_pair, progress=progress_shown()
    )
    show(made.as_json(), as_json, made.as_lines())


@app.command()
def check(
    project: ProjectFile = DEFAULT_PROJECT,
    overrides: Overrides = None,
    preflight: Annotated[
        bool | None,
        typer.Option(
            "--preflight/--no-preflight",
            help="Try the model on a few rows, too; default: if its weights are here and not large.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at data and model before training: duplicates, leaks, labels, lengths, wiring."""
    from textmill.check import check as check_project

    found = check_project(load(project, overrides), preflight=preflight, progress=progress_shown())
    if as_json:
        show_json(found.as_json())
    else:
        for table in found.as_tables():
            show_table(table.title, table.columns, table.rows)
        show_lines([found.summary(project)])


@app.command()
def train(
    project: ProjectFile = DEFAULT_PROJECT,
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest unfinished run.")] = False,
    as_json: Json = False,
) -> None:
    """Train, evaluate the best state on the test rows, and write the report."""
    from textmill.pipeline import train_run

    run = train_run(load(project, overrides), resume=resume, progress=progress_shown())
    show(run.as_json(), as_json, [*run.as_lines(), f"Next: textmill store publish {run.folder}"])


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

    found = evaluate_model(
        load(project), version=version, run_folder=run, data=data, progress=progress_shown()
    )
    show(found.as_json(), as_json, found.as_lines())


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
        load(project), texts or [], source=source, output=output, version=version, run_folder=run,
        progress=progress_shown(),
    )  # fmt: skip
    show(answer.as_json(), as_json, answer.as_lines())


@app.command()
def run(
    project: ProjectFile = DEFAULT_PROJECT,
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest unfinished run.")] = False,
    as_json: Json = False,
) -> None:
    """Train, evaluate, publish, and promote through the gate."""
    from textmill.pipeline import run as run_all

    outcome = run_all(load(project, overrides), resume=resume, progress=progress_shown())
    show(outcome.as_json(), as_json, [*outcome.as_lines(), serve_next(outcome.version, project)])


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
    loaded = load(project, overrides)

    def ready(address: Address) -> None:
        facts = {"url": address.url, "admin_url": address.admin_url, "pid": address.pid}
        name = loaded.config.name
        show(
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

    show(project_schema(), as_json, [json.dumps(project_schema(), indent=2, ensure_ascii=False)])


if __name__ == "__main__":
    main()
