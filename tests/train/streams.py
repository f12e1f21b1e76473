"""Small streams and what is trained on them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.toy import toy_classifier, toy_examples
from textmill.core.types import Example
from textmill.data.config import DataConfig
from textmill.data.stream.open import Stream, open_stream
from textmill.encode.tokenizer import Tokenizer
from textmill.train.stream_feed import StreamFeed
from textmill.train.stream_steps import StepMaker


def write_stream(folder: Path, num: int = 3000, files: int = 3, classes: int = 2) -> Path:
    """Write examples as JSON lines with ids over several files."""
    place = folder / "rows"
    place.mkdir(parents=True)
    examples = toy_examples(num, classes)
    for number in range(files):
        lines = [as_line(example) for example in examples[number::files]]
        (place / f"part-{number}.jsonl").write_text("".join(lines))
    return place


def as_line(example: Example) -> str:
    return json.dumps({"id": example.id, "text": example.text, "label": example.labels[0]}) + "\n"


def toy_stream(folder: Path, path: str = "rows", source: Any = None, **settings: Any) -> Stream:
    values = {"train": path, "id": "id", "streaming": True, "shuffle_rows": 700, "head_rows": 50, **settings}
    return open_stream(DataConfig(**values), folder, seed=0, source=source)


def toy_feed(stream: Stream, *, accumulate: int = 1, seed: int = 0, **changes: Any) -> StreamFeed:
    tokenizer = _tokenizer(stream.splits.labels)
    config = stream.usable.config
    make = StepMaker(
        stream.source,
        stream.usable,
        tokenizer,
        max_tokens=400,
        row_limit=None,
        seed=seed,
        accumulate=accumulate,
        pool_rows=config.shuffle_rows,
        epoch_rows=config.epoch_rows,
    )
    return StreamFeed(
        make, **{"train_rows": stream.train_rows, "rows_per_step": 16.0, "prefetch": 0, **changes}
    )


@lru_cache
def _tokenizer(labels: tuple[str, ...]) -> Tokenizer:
    return toy_classifier(labels)[1]


def ids_of(step: Any) -> tuple[str, ...]:
    return tuple(row for batch in step for row in batch.ids)


def all_ids(feed: StreamFeed, epoch: int = 0, position: int = 0) -> list[tuple[str, ...]]:
    """Draw and make all steps that are left of an epoch."""
    found = []
    for step in feed.steps(epoch, position):
        found.append(ids_of(step))
        feed.observe(found[-1], np.zeros(len(found[-1]), np.float32))
    return found
