"""A model's answers outside training: on texts, on a file of texts, on labelled rows.

Promises: answers stand in the order of the input, with the ids of the input, duplicates included; a
row whose text is missing (null, the empty cell of a csv, one of a pair) keeps its place with an empty
answer; an empty text is answered like any other, by the same scores as behind a server; a class named `NA`
or `null` is written as that name; cleaning is the one the model was trained with.
What is not covered: answers over a network (`textmill.serve`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import DataError, StoreError, UserError
from textmill.core.files import write_atomic
from textmill.core.machine import num_cpus
from textmill.core.progress import SILENT, Progress
from textmill.core.types import Predictor, Task, Text
from textmill.data.clean import clean_text
from textmill.data.config import CleanConfig, DataConfig
from textmill.data.load import load_labelled, load_unlabelled
from textmill.data.prepare import prepare
from textmill.evaluate.evaluate import Evaluation, evaluate
from textmill.model.files import load
from textmill.model.predictor import TorchPredictor
from textmill.project import Project, load_project
from textmill.run_folder import PROJECT, REPORT
from textmill.runtime.encoder import TextEncoder
from textmill.runtime.open import open as open_bundle
from textmill.store.registry import Store
from textmill.train.best import FOLDER as MODEL

_CHUNK = 512  # texts between two steps of the progress bar


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model says to N texts."""

    model: str
    """Which model answered."""
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    texts: tuple[Text, ...]
    chosen: tuple[tuple[str, ...] | None, ...]
    """The labels of each row: one, or any number of a multi-label model; None where the text is missing."""
    scores: tuple[tuple[float, ...] | None, ...]
    is_multilabel: bool = False
    label_separator: str = ","
    """What stands between the labels of a row in csv."""
    output: Path | None = None
    """The file they were written to."""

    def as_json(self) -> dict[str, Any]:
        """Return the answers, or only their number if they went to a file."""
        facts: dict[str, Any] = {"model": self.model, "labels": list(self.labels), "rows": len(self.ids)}
        if self.output is not None:
            return {**facts, "output": str(self.output)}
        return {**facts, "predictions": [self._row(place) for place in range(len(self.ids))]}

    def as_lines(self) -> list[str]:
        """Return one line a text, or where the file is."""
        if self.output is not None:
            return [f"{len(self.ids)} rows labelled by {self.model}: {self.output}"]
        return [self._line(place) for place in range(len(self.ids))]

    def _line(self, place: int) -> str:
        chosen, scores, text = self.chosen[place], self.scores[place], self.texts[place]
        if chosen is None or scores is None:
            return f"(no text)  {text!r}"
        by_label = dict(zip(self.labels, scores, strict=True))
        named = ", ".join(f"{label} {by_label[label]:.3f}" for label in chosen) or "(no label)"
        return f"{named}  {text if isinstance(text, str) else ' | '.join(text)}"

    def label_of(self, place: int) -> str | list[str] | None:
        """Return the answer of a row as it is written: a name, a list of names, or None without text."""
        chosen = self.chosen[place]
        if chosen is None:
            return None
        return list(chosen) if self.is_multilabel else chosen[0]

    def _row(self, place: int) -> dict[str, Any]:
        scores = self.scores[place]
        return {
            "id": self.ids[place],
            "labels" if self.is_multilabel else "label": self.label_of(place),
            "scores": None if scores is None else dict(zip(self.labels, scores, strict=True)),
        }


def predict_texts(
    project: Project,
    texts: Sequence[str] = (),
    *,
    source: str | None = None,
    output: Path | None = None,
    version: int | None = None,
    run_folder: Path | None = None,
    progress: Progress = SILENT,
) -> Answers:
    """Label texts, or all rows of a file.

    Args:
        project: says which store, and which columns of a file hold text and id.
        texts: the texts, where no file is given; of a model of pairs first and second texts in turn.
        source: a file, folder or `hf:` name with a text column.
        output: a .csv, .jsonl or .parquet file to write.
        version: a version of the store; None takes the live one, else the newest finished run.
        run_folder: a run folder instead.
        progress: who watches.

    Raises:
        UserError: no texts, no model, a missing column, an unknown kind of output file, or the input
            as output.
    """
    write = None if output is None else _writer(output)
    if (source is None) == (not texts):
        raise DataError(
            "Predicting needs either texts or a file",
            got="both" if texts else "neither",
            fix='Write textmill predict "a text", or textmill predict --input file.csv --output out.csv',
        )
    if source is not None and output is not None and Path(source).resolve() == output.resolve():
        raise DataError(
            "The output must be another file than the input",
            got=f"{output} for both",
            fix="Name another file with --output.",
        )
    model = find_model(project, version=version, run_folder=run_folder)
    if source is None:
        raw: list[Text | None] = _given_texts(texts, model.task, model.clean)
        ids = [str(number) for number in range(1, len(raw) + 1)]
    else:
        rows = load_unlabelled(source, _columns_for(model, project.config.data), Path.cwd(), progress)
        ids, raw = rows.ids, rows.texts
    answers = _answer(model, ids, raw, progress)
    if write is None or output is None:
        return answers
    separator = project.config.data.label_separator
    write_atomic(output, write(replace(answers, label_separator=separator)))
    return replace(answers, output=output)


def evaluate_model(
    project: Project,
    *,
    version: int | None = None,
    run_folder: Path | None = None,
    data: str | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Measure a model on the project's untouched test rows, or on a labelled file.

    Args:
        project: says which store, data and columns.
        version: a version of the store; None takes the live one, else the newest finished run.
        run_folder: a run folder instead.
        data: a labelled file instead of the test rows.
        progress: who watches.

    Raises:
        UserError: no model, or rows that cannot be measured on.
    """
    model = find_model(project, version=version, run_folder=run_folder)
    if model.task != project.config.task:
        raise DataError(
            "A model is measured on rows of its own task",
            got=f'{model.name} for "{model.task}", in a project with task = "{project.config.task}"',
            fix="Name another version or run, or set task to that of the model.",
        )
    config = project.config.data.model_copy(update={"clean": model.clean})
    progress.say(f"Model: {model.name}")
    if data is None:
        examples = prepare(
            config, project.folder, progress, cache=project.cache_root, task=project.config.task
        ).test
    else:
        examples = load_labelled(data, config, Path.cwd(), progress, task=project.config.task)
    return evaluate(model.predictor, examples, seed=project.config.train.seed, progress=progress)


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can answer."""

    name: str
    """As a person would call it."""
    predictor: Predictor
    clean: CleanConfig
    """The cleaning it was trained with."""
    task: Task = "classification"
    """What it does; `pairs` reads pairs of texts."""


def find_model(project: Project, *, version: int | None = None, run_folder: Path | None = None) -> Model:
    """Return a model: a run's, a version's, the live one, or the newest finished run's.

    Raises:
        StoreError: there is none.
    """
    if run_folder is None and version is None:
        version = _live_version(project)
        if version is None:
            run_folder = _newest_finished(project)
    if run_folder is not None:
        clean = load_project(run_folder / PROJECT).config.data.clean
        classifier, tokenizer = load(run_folder / MODEL)
        predictor = TorchPredictor(classifier, tokenizer)
        return Model(f"run {run_folder.name}", predictor, clean, classifier.task)
    assert version is not None, "either a run or a version is known here"
    bundle = Store(project.store_root, project.config.name).bundle(version)
    bundle.verify()
    opened = open_bundle(bundle.path, project.config.serve.runtime, num_cpus())
    texts = TextEncoder.open(bundle.path)
    return Model(f"version {version}", opened, texts.clean, texts.task)


def _live_version(project: Project) -> int | None:
    store = Store(project.store_root, project.config.name)
    return store.state().live if store.path.is_dir() else None


def _newest_finished(project: Project) -> Path:
    runs = sorted(project.runs.iterdir()) if project.runs.is_dir() else []
    for folder in reversed(runs):
        if (folder / REPORT).exists():
            return folder
    raise StoreError(
        "There must be a model: a live version or a finished run",
        got=f"neither in {project.store_root} nor in {project.runs}",
        fix="Make one with `textmill run`, or name one with --run or --version.",
    )


def _columns_for(model: Model, config: DataConfig) -> DataConfig:
    """Return the `[data]` table as the model reads a file, whatever the project has become since.

    Raises:
        DataError: the model reads pairs, and the project does not say where the second text is.
    """
    is_pairs = model.task == "pairs"
    if is_pairs and config.text_pair is None:
        raise DataError(
            f"The project must name the second text for {model.name}, a model of pairs",
            got="no data.text_pair",
            fix='Set task = "pairs" and data.text_pair in the project file.',
        )
    second = config.text_pair if is_pairs else None
    return config.model_copy(update={"clean": model.clean, "text_pair": second})


def _given_texts(texts: Sequence[str], task: Task, clean: CleanConfig) -> list[Text | None]:
    """Return the texts of a command line, cleaned, two by two for pairs."""
    cleaned = [clean_text(text, clean) for text in texts]
    if task != "pairs":
        return list(cleaned)
    if len(cleaned) % 2:
        raise DataError(
            "A model of pairs needs two texts for each answer",
            got="one text" if len(cleaned) == 1 else f"{len(cleaned)} texts",
            fix='Write textmill predict "the first text" "the second text"',
        )
    return list(zip(cleaned[::2], cleaned[1::2], strict=True))


def _answer(model: Model, ids: Sequence[str], texts: Sequence[Text | None], progress: Progress) -> Answers:
    predictor = model.predictor
    filled = [(place, text) for place, text in enumerate(texts) if text is not None]
    labels: list[tuple[str, ...] | None] = [None] * len(ids)
    scores: list[tuple[float, ...] | None] = [None] * len(ids)
    with progress.task("predict", len(filled)) as task:
        for start in range(0, len(filled), _CHUNK):
            part = filled[start : start + _CHUNK]
            rows = predictor.scores([text for _, text in part])
            names = predictor.decision.names(rows, predictor.labels)
            for (place, _), row, chosen in zip(part, rows.tolist(), names, strict=True):
                labels[place], scores[place] = chosen, tuple(row)
            task.advance(len(part))
    shown = tuple("" if text is None else text for text in texts)
    is_multilabel = predictor.decision.is_multilabel
    return Answers(
        model.name, predictor.labels, tuple(ids), shown, tuple(labels), tuple(scores), is_multilabel
    )


def _writer(output: Path) -> Callable[[Answers], bytes]:
    writers = {".csv": _as_csv, ".jsonl": _as_jsonl, ".parquet": _as_parquet}
    if output.suffix not in writers:
        raise UserError(
            "The kind of the output file must be known by its ending",
            got=repr(output.name),
            fix=f"Use one of {', '.join(writers)}.",
        )
    return writers[output.suffix]


def _as_csv(answers: Answers) -> bytes:
    key = "labels" if answers.is_multilabel else "label"
    lines = [_csv_line(["id", key, *(f"score:{label}" for label in answers.labels)])]
    for place, (row_id, scores) in enumerate(zip(answers.ids, answers.scores, strict=True)):
        label = answers.label_of(place)
        shown = _joined(label, answers) if isinstance(label, list) else label
        lines.append(_csv_line([row_id, shown, *(scores or [None] * len(answers.labels))]))
    return "".join(lines).encode()


def _joined(labels: list[str], answers: Answers) -> str:
    """Return labels as one cell that `data.label` reads back: joined, or JSON where joining is ambiguous."""
    separator = answers.label_separator
    if any(separator in label or label != label.strip() or label[:1] == "[" for label in answers.labels):
        return json.dumps(labels, ensure_ascii=False)
    return separator.join(labels)


def _csv_line(values: Sequence[object]) -> str:
    sink = io.StringIO()
    # Before Python 3.13 a carriage return in a value is quoted only where lines end with one, too.
    csv.writer(sink, lineterminator="\r\n").writerow(values)
    return sink.getvalue().removesuffix("\r\n") + "\n"


def _as_jsonl(answers: Answers) -> bytes:
    lines = (json.dumps(answers._row(place), ensure_ascii=False) for place in range(len(answers.ids)))
    return "".join(line + "\n" for line in lines).encode()


def _as_parquet(answers: Answers) -> bytes:
    columns: dict[str, Any] = {
        "id": pa.array(answers.ids, pa.string()),
    }
    found = [answers.label_of(place) for place in range(len(answers.ids))]
    if answers.is_multilabel:
        columns["labels"] = pa.array(found, pa.list_(pa.string()))
    else:
        columns["label"] = pa.array(found, pa.string())
    for place, label in enumerate(answers.labels):
        values = [None if row is None else row[place] for row in answers.scores]
        columns[f"score:{label}"] = pa.array(values, pa.float32())
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()
