"""Splits that were prepared once and lie in the project's cache, memory-mapped.

`<cache>/data-<key>/` holds `<source>-00000.arrow` and so on (columns `id`, `text`, perhaps `text_pair`,
`label`), `<side>.rows.npy` (which rows of its source a side has), `report.json` and, last, `manifest.json`.

Promises: the key is made from the contents of the files (names, sizes and SHA-256), the `[data]`
settings but for those of streams and the places of the files, and the versions of textmill and what
cleans; so a changed file is never answered with old rows, and a moved one is not read again.
What is not covered: `hf:` names, whose content is unknown before it is read: they are prepared each time.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ftfy
import numpy as np

from textmill import __version__
from textmill.core.files import sha256_file, write_json
from textmill.data.config import DataConfig
from textmill.data.find_files import SourceFile
from textmill.data.fingerprint import SidePrint
from textmill.data.mapped import MappedExamples, Shards
from textmill.data.report import DataReport, report_from_json
from textmill.data.split import SIDES, Side

FORMAT = 2
"""Goes up whenever the same input would give other rows or files; textmill's version is in the key, too."""
_KEY_CHARS = 16
_ELSEWHERE = {
    *("train", "valid", "test"),
    *("streaming", "shuffle_rows", "prefetch", "labels", "head_rows", "epoch_rows"),
}
"""Settings of `[data]` that do not change what is prepared: places of files, and those of streams."""
_REPORT = "report.json"


def data_key(sources: Mapping[Side, list[SourceFile]], config: DataConfig, task: str) -> str:
    """Return the hexadecimal key of what would be prepared from files with these settings."""
    files = [(side, file) for side, found in sources.items() for file in found]
    with ThreadPoolExecutor(2) as pool:  # hashing lets other threads run
        digests = list(pool.map(lambda item: sha256_file(Path(item[1].path)), files))
    facts = {
        "format": [FORMAT, __version__],
        "cleaning": [ftfy.__version__, unicodedata.unidata_version],
        "task": task,
        "files": [
            [side, file.name, file.size, digest] for (side, file), digest in zip(files, digests, strict=True)
        ],
        "settings": config.model_dump(mode="json", exclude=_ELSEWHERE),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_KEY_CHARS]


def keep_sides(folder: Path, sides: Mapping[Side, MappedExamples], report: DataReport) -> dict[str, Any]:
    """Write what is beside the shards and return the facts for the manifest."""
    for side, examples in sides.items():
        np.save(folder / f"{side}.rows.npy", examples.rows)
    write_json(folder / _REPORT, report.as_json())
    return {
        "format": FORMAT,
        "label_sets": [list(names) for names in sides["train"].label_sets],
        "sources": list(report.sources),
    }


def open_sides(
    folder: Path, manifest: Mapping[str, Any], config: DataConfig
) -> tuple[dict[Side, MappedExamples], DataReport]:
    """Map the sides of a folder that `keep_sides` completed, and read its report."""
    paths = {"train": config.train, "valid": config.valid, "test": config.test}
    report = report_from_json(json.loads((folder / _REPORT).read_text(encoding="utf-8")), paths)
    shards = {source: Shards.open(sorted(folder.glob(f"{source}-*.arrow"))) for source in manifest["sources"]}
    label_sets = [tuple(names) for names in manifest["label_sets"]]
    sides: dict[Side, MappedExamples] = {}
    for side in SIDES:
        rows = np.load(folder / f"{side}.rows.npy", mmap_mode="r").view(np.ndarray)
        known: SidePrint = report.fingerprints[side]
        sides[side] = MappedExamples(
            shards.get(side, shards["train"]), rows, label_sets, known, cache=folder.parent
        )
    return sides, report
