"""`predictions.parquet`: what a model answered, row by row, and how to read it back.

Columns: `id`, `text` (and `text_pair` for pairs) if examples are given, `truth`, `label` (the
predicted class), and for each class a float32 column `score:<class>`. With several labels a row
`truth` and `label` hold lists of classes. The prefix keeps a class
called "text" from clashing with the text.

Promises: rows stay in the order of the evaluation; the file is written whole or not at all; what is
read back equals what was written, scores bit for bit, also for classes named `NA` or `null`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.decision import SINGLE, decision_of
from textmill.core.errors import DataError
from textmill.core.files import write_atomic
from textmill.core.types import Example
from textmill.evaluate.evaluate import Evaluation, from_scores

PREDICTIONS = "predictions.parquet"
_SCORE = "score:"
_KEY = b"textmill"


def write_predictions(path: Path, evaluation: Evaluation, examples: Sequence[Example] | None = None) -> None:
    """Write one row an example, in the order of the evaluation.

    Args:
        path: the Parquet file.
        evaluation: ids, truth and scores.
        examples: the same rows with their texts, in any order; None leaves the texts out.

    Raises:
        StoreError: the disk is full, read-only or forbidden; an old file is untouched.
    """
    columns: dict[str, Any] = {"id": pa.array(evaluation.ids, pa.string())}
    if examples is not None:
        columns |= _text_columns(evaluation.ids, examples)
    for name, sets in (("truth", evaluation.truth_sets), ("label", evaluation.chosen)):
        columns[name] = _names(sets, evaluation)
    for place, label in enumerate(evaluation.labels):
        columns[_SCORE + label] = pa.array(evaluation.scores[:, place], pa.float32())
    facts = {
        "labels": evaluation.labels,
        "seed": evaluation.seed,
        "num_resamples": evaluation.metrics.num_resamples,
        "is_multilabel": evaluation.decision.is_multilabel,
        "thresholds": evaluation.decision.thresholds,
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(facts)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_atomic(path, sink.getvalue().to_pybytes())


def read_predictions(path: Path) -> Evaluation:
    """Return the evaluation that `write_predictions` wrote, with its metrics computed again.

    Raises:
        DataError: there is no such file, or it is not one of ours.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as err:
        raise DataError(
            "Predictions must be a Parquet file",
            got=f"{path}: {err}",
            fix="Run `textmill evaluate` again to write it.",
        ) from err
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise DataError(
            "A predictions file must be written by textmill",
            got=f"{path} with the columns {', '.join(table.column_names)}",
            fix="Run `textmill evaluate` again to write it.",
        )
    facts = json.loads(metadata[_KEY])
    labels: list[str] = facts["labels"]
    places = {label: place for place, label in enumerate(labels)}
    decision = SINGLE
    if facts.get("is_multilabel"):
        decision = decision_of("multilabel", facts["thresholds"])
        truth = np.zeros((len(table), len(labels)), dtype=np.int64)
        for row, names in enumerate(table["truth"].to_pylist()):
            truth[row, [places[label] for label in names]] = 1
    else:
        truth = np.array([places[label] for label in table["truth"].to_pylist()], dtype=np.int64)
    scores = np.stack([table[_SCORE + label].to_numpy() for label in labels], axis=1)
    ids = table["id"].to_pylist()
    return from_scores(labels, ids, truth, scores, facts["seed"], facts["num_resamples"], decision)


def read_examples(path: Path) -> list[Example]:
    """Return the rows of a predictions file, with their texts and true labels.

    Args:
        path: a file that was written with the texts.
    """
    wanted = [name for name in ("id", "text", "text_pair", "truth") if name in pq.read_schema(path).names]
    rows = pq.read_table(path, columns=wanted).to_pylist()
    return [
        Example(
            row["id"],
            row["text"] if row.get("text_pair") is None else (row["text"], row["text_pair"]),
            tuple(row["truth"]) if isinstance(row["truth"], list) else (row["truth"],),
        )
        for row in rows
    ]


def _names(sets: npt.NDArray[np.bool_], evaluation: Evaluation) -> pa.Array:
    """Return the class of each row, or the list of its classes, as a column."""
    if not evaluation.decision.is_multilabel:
        labels = np.array(evaluation.labels, dtype=object)
        return pa.array(labels[sets.argmax(axis=1)], pa.string())
    return pa.array([_true_names(row, evaluation.labels) for row in sets.tolist()], pa.list_(pa.string()))


def _true_names(row: list[bool], labels: Sequence[str]) -> list[str]:
    return [label for label, is_true in zip(labels, row, strict=True) if is_true]


def _text_columns(ids: Sequence[str], examples: Sequence[Example]) -> dict[str, Any]:
    texts = {example.id: example.text for example in examples}
    assert set(texts) >= set(ids), "examples must cover the rows of the evaluation"
    chosen = [texts[row_id] for row_id in ids]
    firsts = [text if isinstance(text, str) else text[0] for text in chosen]
    columns = {"text": pa.array([_encodable(text) for text in firsts], pa.string())}
    if any(not isinstance(text, str) for text in chosen):
        seconds = [None if isinstance(text, str) else _encodable(text[1]) for text in chosen]
        columns["text_pair"] = pa.array(seconds, pa.string())
    return columns


def _encodable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
