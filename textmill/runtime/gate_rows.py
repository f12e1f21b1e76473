"""The rows of the gate: labelled text kept inside a bundle, so that any host can repeat the comparison.

Rows of a multi-label model have a list of labels, which may be empty; those of other models one label.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textmill.core.errors import StoreError
from textmill.core.types import Example, Text

GATE_ROWS = "gate.parquet"
"""The file of a bundle with its gate rows: columns id, text, label, and text_pair for pairs.

`label` is a string, or a list of strings in the bundle of a multi-label model."""


def write_gate_rows(path: Path, examples: Sequence[Example], *, is_multilabel: bool = False) -> None:
    """Write labelled examples as Parquet; each has exactly one label unless the model is multi-label."""
    import pyarrow
    from pyarrow import parquet

    is_fit = is_multilabel or all(len(example.labels) == 1 for example in examples)
    assert is_fit, "a gate row has exactly one label"
    first = [each.text if isinstance(each.text, str) else each.text[0] for each in examples]
    second = [None if isinstance(each.text, str) else each.text[1] for each in examples]
    string = pyarrow.string()
    labels = (
        pyarrow.array([list(example.labels) for example in examples], pyarrow.list_(string))
        if is_multilabel
        else pyarrow.array([example.labels[0] for example in examples], string)
    )
    table = pyarrow.table(
        {
            "id": pyarrow.array([example.id for example in examples], string),
            "text": pyarrow.array(first, string),
            "text_pair": pyarrow.array(second, string),
            "label": labels,
        }
    )
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
    return [Example(id=row["id"], text=_text(row), labels=_labels(row["label"])) for row in rows]


def _labels(label: str | list[str]) -> tuple[str, ...]:
    return (label,) if isinstance(label, str) else tuple(label)


def _text(row: dict[str, Any]) -> Text:
    return row["text"] if row["text_pair"] is None else (row["text"], row["text_pair"])
