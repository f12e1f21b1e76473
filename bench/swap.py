"""Swaps under load: does any request fail, or get another answer than the right one?

    bin/bench swap [--quick]

Two versions of a classifier (MiniLM; a small one in a quick run) with different heads, whose right
answers are known, go live in turn while keep-alive clients send reviews; corrupt versions go live in
between and must be refused. The old worker is ended after each swap, so that every swap loads a version
anew. Each answer is compared with those of the version it names. Latencies while a version loads are
told beside the steady ones; only the counts are judged.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.figures import SCRATCH, Goal, finish, say
from bench.serve import NAME, load_texts, make_source
from textmill.model.config import ArchitectureConfig
from textmill.runtime.open import open as open_bundle
from textmill.serve.admin import AdminClient
from textmill.serve.config import ServeConfig
from textmill.serve.load import BackgroundLoad, Expected
from textmill.serve.server import start_server
from textmill.store.registry import Store

GOALS = [Goal("failed", "==", 0), Goal("wrong", "==", 0)]
SETTLE_S = 1.0
PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    swaps: int
    corrupt_every: int
    clients: int | None
    rate_s: float | None
    architecture: ArchitectureConfig | None
    """None: MiniLM."""


SMALL = ArchitectureConfig(layers=2, hidden_size=64, heads=2, intermediate_size=128, max_positions=512)
FULL = Plan(swaps=20, corrupt_every=5, clients=16, rate_s=None, architecture=None)
QUICK = Plan(swaps=4, corrupt_every=4, clients=8, rate_s=None, architecture=SMALL)


def prepare_store(
    folder: Path, architecture: ArchitectureConfig | None
) -> tuple[Store, list[str], dict[int, Expected]]:
    """Publish two versions that answer differently, and one that is then damaged."""
    rows, labels = load_texts()
    texts = [str(row.text) for row in rows[:48]]
    store = Store(folder / "store", NAME)
    expected = {}
    for favours in (0, 1):
        source = folder / f"source-{favours}"
        facts = make_source(source, rows, labels, favours=favours, architecture=architecture)
        version = store.publish(source, facts)
        predictor = open_bundle(store.bundle(version).path, "onnx", threads=1)
        scores = np.concatenate([predictor.scores([text]) for text in texts])
        expected[version] = Expected(tuple(labels), scores)
    corrupt = store.publish(source, facts)
    path = store.bundle(corrupt).path / "model.onnx"
    path.chmod(0o644)
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"damaged")
    distance = float(np.abs(expected[1].scores - expected[2].scores).max(axis=1).min())
    assert distance > 2e-3, f"the versions answer alike ({distance})"
    return store, texts, expected


def swap_under_load(plan: Plan, folder: Path) -> dict[str, float]:
    """Return the counts and latencies of a load during which versions are swapped."""
    store, texts, expected = prepare_store(folder, plan.architecture)
    store.set_live(1, "for the benchmark")
    config = ServeConfig(port=0, admin_port=0, rollback_hold_s=0.0)
    loading: list[tuple[float, float]] = []
    steady: list[tuple[float, float]] = []
    commits: list[float] = []
    refused = 0
    with start_server(folder / "store", [NAME], config) as server:
        admin = AdminClient(folder / "store", server.address.admin_port)

        def model() -> dict[str, object]:
            found: dict[str, object] = admin.status()["models"][NAME]
            return found

        load = BackgroundLoad(
            server.url, NAME, texts, clients=plan.clients, rate_s=plan.rate_s, expected=expected
        )
        load.start()
        started = time.time()
        for swap in range(plan.swaps):
            begun = time.time() - started
            time.sleep(SETTLE_S)
            steady.append((begun, time.time() - started))
            if swap % plan.corrupt_every == plan.corrupt_every - 1:
                store.set_live(3, "damaged, for the benchmark")
                _wait(lambda: bool(model()["refused"]))
                refused += 1
            target = 2 if swap % 2 == 0 else 1
            begun = time.time() - started
            store.set_live(target, "for the benchmark")
            _wait(lambda target=target: model()["live"] == target)  # type: ignore[misc]
            loading.append((begun, time.time() - started))
            commits.append(float(str(model()["commit_ms"])))
            say(f"swap {swap + 1} to version {target}: loaded in {loading[-1][1] - loading[-1][0]:.1f} s")
        receipt = load.end()
    figures = receipt.as_json()
    for reason, number in figures["reasons"].items():
        say(f"{number} x {reason}")
    return {
        **{key: figures[key] for key in ("sent", "answered", "failed", "wrong")},
        "swaps": plan.swaps,
        "refused_corrupt": refused,
        "commit_ms_median": statistics.median(commits),
        "commit_ms_max": max(commits),
        "p99_ms_steady": receipt.latency_ms(0.99, steady),
        "p99_ms_while_loading": receipt.latency_ms(0.99, loading),
    }


def main(arguments: list[str]) -> int:
    """Measure, print, keep; return the exit code."""
    parser = argparse.ArgumentParser(prog="bin/bench swap")
    parser.add_argument("--quick", action="store_true", help="within 50 s: 4 swaps of a small model")
    quick = parser.parse_args(arguments).quick
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="swap-", dir=SCRATCH) as folder:
        figures = swap_under_load(QUICK if quick else FULL, Path(folder))
    return finish(
        "swap",
        figures,
        GOALS,
        quick=quick,
        machine={"onnxruntime": importlib.metadata.version("onnxruntime")},
    )


def _wait(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline, "the server did not follow the store"
        time.sleep(0.05)
