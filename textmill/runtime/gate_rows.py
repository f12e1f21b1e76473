"""The rows of the gate: labelled text kept inside a bundle, so that any host can repeat the comparison.

What is not covered: rows with several labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textmill.core.errors import StoreError
from textmill.core.types import Example, Text

GATE_ROWS = "gate.parquet"
"""The file of a bundle with its gate rows: columns id, text, label, and text_pair for pairs."""


def write_gate_rows(path: Path, examples: Sequence[Example]) -> None:
    """Write examples with one label each as Parquet."""
    import pyarrow
    from pyarrow import parquet

    assert all(len(example.labels) == 1 for example in examples), "a gate row has exactly one label"
    first = [each.text if isinstance(each.text, str) else each.text[0] for each in examples]
    second = [None if isinstance(each.text, str) else each.text[1] for each in examples]
    columns = {
        "id": [example.id for example in examples],
        "text": first,
        "text_pair": second,
        "label": [example.labels[0] for example in examples],
    }
    table = pyarrow.table({name: pyarrow.array(values, pyarrow.string()) for name, values in columns.items()})
    parquet.write_table(table, path)


def read_gate_rows(path: Path) -> list[Example]:
    """Read the gate rows of a bundle.

    Raises:
        StoreError: the file is not there or is no such Parquet.
    """
    import pyarrow
    from pyarrow import parquet

    try:
        rows = parquet.read_table(path, columns=["id", "text", "text_pair", "label"]).to_pylist()
    except (OSError, pyarrow.ArrowException) as err:
        raise StoreError(
            "The gate rows must be Parquet with id, text, text_pair and label",
            got=f"{path} ({' '.join(str(err).split())[:120]})",
            fix="Publish the version again.",
        ) from err
    return [Example(id=row["id"], text=_text(row), labels=(row["label"],)) for row in rows]


def _text(row: dict[str, str]) -> Text:
    return row["text"] if row["text_pair"] is None else (row["text"], row["text_pair"])
