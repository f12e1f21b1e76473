"""A project file for a labelled file: columns guessed, a backbone proposed, each with its reason.

Promises: an existing file is never overwritten; every guess is said and stands as a comment in the
file. What is not covered: settings of training (their defaults are good ones to start with).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.core.errors import DataError, ProjectError, StoreError, nearest
from textmill.core.files import write_atomic
from textmill.core.progress import SILENT, Progress
from textmill.core.types import Task
from textmill.data.label_sets import looks_like_sets
from textmill.data.read import Rows, read_rows
from textmill.model.propose import Proposal, guess_language, propose
from textmill.project import load_project
from textmill.store.manifest import check_name

_SAMPLE = 2000  # rows looked at: enough to tell a class column from a text column
_TEXT_NAMES = ("text", "review", "sentence", "content", "comment", "message", "body", "文本", "内容", "评论")
_LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "target", "y", "标签", "类别")

_TEMPLATE = """\
# textmill project. `textmill schema` prints every key; `textmill check` looks at the data first.
name = {name}
task = {task}

[data]
train = {train}
text = {text}{pair}
label = {label}

[model]
# {why}
backbone = {backbone}{hub}
head = "mlp"
pooling = "mean"

[train]
epochs = 3
lr = 5e-5
batch_size = 32

[gate]
metric = "f1_macro"
margin = 0.02    # how much worse than the live version is still tolerated
"""


_FROM_HUB = (
    "The first use fetches it from the model hub (HF_ENDPOINT names a mirror); "
    "model.backbone may also be a folder with its files."
)


@dataclass(frozen=True, slots=True)
class NewProject:
    """The file that was written, and why it says what it says."""

    path: Path
    text: str
    label: str
    proposal: Proposal
    task: Task = "classification"

    def as_json(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        return {
            "path": str(self.path),
            "text": self.text,
            "label": self.label,
            "task": self.task,
            "backbone": self.proposal.backbone,
            "why": self.proposal.why,
        }

    def as_lines(self) -> list[str]:
        """Return what a person wants to know."""
        return [
            f"Wrote {self.path}: text in {self.text!r}, label in {self.label!r}",
            *(
                [f"The values of {self.label!r} are sets of classes, so the task is multilabel"]
                if self.task == "multilabel"
                else []
            ),
            f"Backbone {self.proposal.backbone}: {self.proposal.why}",
            *([_FROM_HUB] if self.proposal.needs_hub else []),
            f"Next: textmill check {self.path}",
        ]


def init_project(
    train: str,
    output: Path,
    *,
    name: str | None = None,
    text: str | None = None,
    label: str | None = None,
    text_pair: str | None = None,
    progress: Progress = SILENT,
) -> NewProject:
    """Write a project file.

    Args:
        train: the labelled file, folder or `hf:` name.
        output: the file to write.
        name: the model's name; None takes the name of the file.
        text: the column of the text; None guesses it.
        label: the column of the label; None guesses it. Where its values are sets of classes, the task
            is multilabel.
        text_pair: the column of the second text of a pair, which makes the task pairs.
        progress: who watches.

    Raises:
        ProjectError: the file is already there.
        StoreError: a name that cannot be one.
        DataError: the data cannot be read, or the columns cannot be told.
    """
    if output.is_dir():
        output = output / "project.toml"
    if output.exists():
        raise ProjectError(
            "An existing project file is never overwritten",
            got=str(output),
            fix="Name another file with --output, or remove the old one.",
        )
    name = check_name(name, "model name") if name is not None else _name_of(train)
    rows = read_rows(train, Path.cwd(), progress=progress)
    text = _known(rows, text) if text else _guess_text(rows)
    label = _known(rows, label) if label else _guess_label(rows, text, text_pair)
    task: Task = "classification"
    if text_pair is not None:
        _known(rows, text_pair)
        task = "pairs"
    elif looks_like_sets(rows.columns[label][:_SAMPLE]):
        task = "multilabel"
    sample = [str(value) for value in rows.columns[text][:_SAMPLE] if value]
    proposal = propose(task, guess_language(sample))
    path = train if train.startswith("hf:") else os.path.relpath(train, output.resolve().parent)
    values = {"name": name, "train": path, "text": text, "label": label, "backbone": proposal.backbone}
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    hub = "    # from the model hub; a folder with its files does as well" if proposal.needs_hub else ""
    pair = "" if text_pair is None else f"\ntext_pair = {json.dumps(text_pair, ensure_ascii=False)}"
    write_atomic(
        output, _TEMPLATE.format(**quoted, task=json.dumps(task), pair=pair, why=proposal.why, hub=hub)
    )
    load_project(output)
    return NewProject(output, text, label, proposal, task)


def _name_of(train: str) -> str:
    """Return the name of the data (`reviews` for `data/reviews.csv.gz`) where it can be a model's name."""
    name = Path(train.removeprefix("hf:").partition(":")[0]).name.partition(".")[0]
    try:
        return check_name(name, "model name")
    except StoreError:
        return "model"


def _known(rows: Rows, column: str) -> str:
    if column not in rows.columns:
        raise DataError("The column must be in the data", got=repr(column), fix=nearest(column, rows.columns))
    return column


def _guess_text(rows: Rows) -> str:
    by_name = _by_name(rows.columns, _TEXT_NAMES)
    if by_name is not None:
        return by_name
    mean_length = {
        name: sum(len(value) for value in values[:_SAMPLE] if isinstance(value, str)) / len(rows)
        for name, values in rows.columns.items()
    }
    return max(mean_length, key=lambda name: mean_length[name])


def _guess_label(rows: Rows, text: str, text_pair: str | None = None) -> str:
    others = [name for name in rows.columns if name not in (text, text_pair)]
    by_name = _by_name(others, _LABEL_NAMES)
    if by_name is not None:
        return by_name
    num_values = {name: len(set(map(str, rows.columns[name][:_SAMPLE]))) for name in others}
    likely = {
        name: num for name, num in num_values.items() if 2 <= num <= max(2, min(len(rows), _SAMPLE) // 2)
    }
    if not likely:
        raise DataError(
            "A column with the label must be recognisable",
            got=f"the columns {', '.join(rows.columns)}",
            fix="Name it with --label.",
        )
    return min(likely, key=lambda name: likely[name])


def _by_name(columns: Iterable[str], known: Sequence[str]) -> str | None:
    lowered = {column.lower(): column for column in columns}
    return next((lowered[name] for name in known if name in lowered), None)
