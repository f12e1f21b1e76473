"""A process that draws two epochs of a stream and may be killed.

    python -m tests.train.stream_run FOLDER RANK WORLD

It keeps its feed's state every few steps, as a training keeps checkpoints, and notes the ids of every step.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from tests.train.streams import ids_of, toy_feed, toy_stream
from textmill.core.files import write_json

EPOCHS, SAVE_EVERY = 2, 5


def main(folder: Path, rank: int, world: int) -> None:
    saved, log = folder / f"state-{rank}.json", folder / f"log-{rank}.txt"
    feed = toy_feed(toy_stream(folder), prefetch=4, rank=rank, world=world, accumulate=2)
    epoch = position = 0
    lines: list[str] = []
    if saved.exists():
        known = json.loads(saved.read_text())
        epoch, position = known["epoch"], known["position"]
        feed.restore(known["feed"])
        lines = log.read_text().splitlines(keepends=True)[: known["lines"]]
    log.write_text("".join(lines))
    num = len(lines)
    with log.open("a") as file:
        for now in range(epoch, EPOCHS):
            begin = position if now == epoch else 0
            number = begin + (rank - begin) % world
            for step in feed.steps(now, begin):
                ids = ids_of(step)
                feed.observe(ids, np.zeros(len(ids), np.float32))
                file.write(f"{now} {number} {' '.join(ids)}\n")
                file.flush()
                num, number = num + 1, number + world
                if num % SAVE_EVERY == 0:
                    facts = {"epoch": now, "position": number - world + 1, "lines": num, "feed": feed.state()}
                    write_json(saved, facts)
                time.sleep(0.003)
    (folder / f"done-{rank}").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
