"""Difficulties as a Parquet file that people and notebooks read too.

Promises: one row for each training example, written whole or not at all; what was saved comes back
exactly; columns id, label, length, clearness, rival, rank, epochs, mean_loss, confidence, variability.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import DataError
from textmill.core.files import write_atomic
from textmill.order.difficulty import Difficulty, Seen

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = "difficulty.parquet"
_KEY = b"textmill"


def save_difficulty(difficulty: Difficulty, folder: Path) -> Path:
    """Write `difficulty.parquet` into a folder and return its path.

    Raises:
        StoreError: the disk is full or forbidden.
    """
    seen, path = difficulty.seen, folder / FILE
    num = len(difficulty)
    columns: dict[str, Any] = {
        "id": pa.array(difficulty.ids, pa.string()),
        "label": pa.array(difficulty.given or [None] * num, pa.string()),
        "length": pa.array(difficulty.lengths, pa.int64()),
        "clearness": _floats(difficulty.clearness, num, pa.float32()),
        "rival": pa.array(difficulty.rivals or [None] * num, pa.string()),
        "rank": pa.array(difficulty.rank()),
        "epochs": pa.array(seen.epochs.astype(np.int32)),
        "mean_loss": _floats(seen.mean_loss(), num, pa.float64()),
        "confidence": _floats(seen.confidence(), num, pa.float64()),
        "variability": _floats(seen.variability(), num, pa.float64()),
    }
    # The state holds the exact sums, from which the columns for readers are made.
    weights = {"length_weight": difficulty.length_weight, "clear_weight": difficulty.clear_weight}
    kept = {**weights, "state": difficulty.state()}
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(kept).encode()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    write_atomic(path, buffer.getvalue())
    return path


def load_difficulty(path: Path) -> Difficulty:
    """Return what `save_difficulty` wrote.

    Raises:
        DataError: the file is not one that textmill wrote, or is damaged.
    """
    try:
        table = pq.read_table(path)
        kept = json.loads((table.schema.metadata or {})[_KEY])
    except (pa.ArrowInvalid, OSError, KeyError, ValueError) as err:
        raise DataError(
            "A difficulty file must be whole and written by textmill",
            got=f"{path}: {err}",
            fix="Delete it; it is made again when training starts.",
        ) from err
    clearness = table["clearness"]
    loaded = Difficulty(
        ids=tuple(table["id"].to_pylist()),
        lengths=table["length"].to_numpy().astype(np.int64),
        clearness=None if clearness.null_count else clearness.to_numpy().astype(np.float32),
        length_weight=kept["length_weight"],
        clear_weight=kept["clear_weight"],
        given=_texts(table["label"]),
        rivals=_texts(table["rival"]),
        seen=Seen.nothing(table.num_rows),
    )
    return loaded.with_state(kept["state"])


def _floats(values: NDArray[Any] | None, num: int, kind: pa.DataType) -> pa.Array:
    if values is None:
        return pa.nulls(num, kind)
    return pa.array(values, kind, mask=np.isnan(values))


def _texts(column: pa.ChunkedArray) -> tuple[str, ...]:
    return () if column.null_count else tuple(column.to_pylist())
