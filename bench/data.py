"""From a file to padded batches, side by side with the `datasets` library.

    bin/bench data [--quick]

Mapped mode (`bench/loading/mapped.py`): each measurement is a fresh process, its clock starts after
the imports; first use and re-use of the caches are told apart; both sides give batches of 32 rows in
random order. Ours also cleans, drops duplicates and splits, which theirs does not.
`share_of_bare_tokenizer` is our rate over that of `encode_batch_fast` on texts that are in memory
already. Memory is what the process holds beside mapped files, whose pages the system takes back at will.
Stream mode: `bench/loading/stream.py`.
What is not covered: disks slower than the tokenizer, more than one machine.
"""

from __future__ import annotations

import argparse
import importlib.metadata

from bench.figures import SCRATCH, Goal, finish
from bench.loading import mapped, stream

MEMORY_GOAL = Goal("memory_growth_mb", "<=", 300.0)
"""Of the mode that grows more, on files of 3 GB."""


def main(arguments: list[str]) -> int:
    """Measure, print, keep; return the exit code."""
    parser = argparse.ArgumentParser(prog="bin/bench data")
    parser.add_argument("--quick", action="store_true", help="small files, within a minute")
    chosen = parser.parse_args(arguments)
    SCRATCH.mkdir(exist_ok=True)
    figures = mapped.measure(mapped.QUICK if chosen.quick else mapped.FULL)
    figures |= stream.measure(chosen.quick)
    figures["memory_growth_mb"] = max(figures["mapped_memory_growth_mb"], figures["stream_memory_growth_mb"])
    goals = [*mapped.GOALS, *stream.GOALS, MEMORY_GOAL, *(() if chosen.quick else stream.RESUME_GOALS)]
    versions = {name: importlib.metadata.version(name) for name in ("datasets", "tokenizers", "pyarrow")}
    return finish("data", figures, goals, quick=chosen.quick, machine=versions)
