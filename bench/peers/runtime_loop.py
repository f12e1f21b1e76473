"""ONNX Runtime alone: tokenize and compute in a plain loop, nothing of a server.

    python -m bench.peers.runtime_loop BUNDLE TEXTS.json

Reads a number of seconds from each line of standard input, answers with texts a second. The loop runs
over the same texts in length-sorted batches; all processors work on one batch. Before the first answer
the batch size is chosen that is fastest here.
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from pathlib import Path

from textmill.core.machine import num_cpus
from textmill.runtime.open import open as open_bundle
from textmill.runtime.predictor import scores_by_length

BUDGETS = (128, 256, 512, 1024)
"""Batch sizes that are tried, in tokens with padding."""


def main(bundle: Path, texts: list[str]) -> None:
    """Measure on request until standard input ends."""
    predictor = open_bundle(bundle, "onnx", threads=num_cpus())

    def answer(some: list[str], budget: int) -> None:
        scores_by_length(predictor.cut(some).rows, len(predictor.labels), predictor.scores_encoded, budget)

    answer(texts[:32], BUDGETS[0])
    print("ready", flush=True)
    budget = None
    for line in sys.stdin:
        if budget is None:
            budget = min(BUDGETS, key=lambda each: timeit.timeit(lambda: answer(texts[:64], each), number=1))
        seconds, begun, answered = float(line), time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            answer(texts, budget)
            answered += len(texts)
        print(answered / (time.perf_counter() - begun), budget, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
