"""The report of a run: `report.json` for programs, `report.html` for people, `card.md` for the model's users.

Promises: the HTML file is whole in itself (styles and pictures inside, no script, nothing fetched);
everything that comes from data is escaped; each file is written whole or not at all; values come as
plain data, so that a report can be made from any training.

What is not covered: PDF; reports over several runs.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from textmill import __version__
from textmill.core.files import write_atomic, write_json
from textmill.core.types import Example, Text
from textmill.encode.config import LongText
from textmill.evaluate.compare import Comparison, compare
from textmill.evaluate.curve import Curve, read_curve
from textmill.evaluate.evaluate import Evaluation
from textmill.evaluate.metrics import NUM_BINS, Cell
from textmill.evaluate.pictures import (
    MAX_DRAWN_CLASSES,
    draw_attempts,
    draw_calibration,
    draw_confusion,
    draw_lengths,
    draw_loss,
    draw_metrics,
    shorten,
)

REPORT_JSON, REPORT_HTML, CARD = "report.json", "report.html", "card.md"
NO_DATA: dict[str, Any] = {"findings": (), "labels": {}, "sides": {}, "sources": {}, "fingerprint": None}
_TEMPLATES = Path(__file__).parent / "templates"
_NUM_ERRORS = 12
_TEXT_WIDTH = 280  # of a text among the errors, in half-width characters


class ReportPaths(NamedTuple):
    """Where the three files are."""

    json: Path
    html: Path
    card: Path


def write_report(
    run_dir: Path,
    *,
    project: Mapping[str, Any],
    data: Mapping[str, Any],
    evaluation: Evaluation,
    baseline: Evaluation | None = None,
    events: Path | None = None,
    lengths: npt.NDArray[np.int64] | None = None,
    max_length: int | None = None,
    long_text: LongText = "head",
    comparison: Comparison | None = None,
    attempts: Sequence[Mapping[str, Any]] | None = None,
    attempt_events: Sequence[Path] = (),
    examples: Sequence[Example] | None = None,
) -> ReportPaths:
    """Write `report.json`, `report.html` and `card.md` into a run folder.

    Args:
        run_dir: the folder.
        project: the resolved project as nested plain values.
        data: the data report as plain values (`sources`, `labels`, `sides`); `fingerprint` and `findings`
            (each with `level`, `message`, `fix`) are shown if there.
        evaluation: the model on the test rows.
        baseline: a simple model on the same rows.
        events: the event log of the training.
        lengths: (N,) tokens of each row before cutting.
        max_length: tokens beyond which a text is cut.
        long_text: what is read of a longer text.
        comparison: baseline against model; None computes it where there is a baseline.
        attempts: one entry for each try of the training, shown where there are several.
        attempt_events: the event log of each, for the picture of them all.
        examples: the test rows, so that the errors show their texts; None shows ids only.

    Raises:
        DataError: the baseline was not measured on the same rows.
        StoreError: the disk is full, read-only or forbidden.
    """
    if comparison is None and baseline is not None:
        comparison = compare(baseline, evaluation, seed=evaluation.seed)
    curve = read_curve(events) if events is not None else None
    facts: dict[str, Any] = {
        "format": 1,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "textmill": __version__,
        "project": dict(project),
        "data": dict(data),
        "evaluation": evaluation.as_json(),
        "baseline": None if baseline is None else baseline.as_json(),
        "comparison": None if comparison is None else comparison.as_json(),
        "training": None if curve is None else curve.as_json(),
        "lengths": None
        if lengths is None or not len(lengths)
        else sum_up_lengths(lengths, max_length, long_text),
        "errors": list_errors(evaluation, examples),
        "attempts": None if attempts is None else [dict(attempt) for attempt in attempts],
    }
    pictures = draw_figures(evaluation, curve, lengths, max_length)
    tries = [found for path in attempt_events if (found := read_curve(path)) is not None]
    if len(tries) > 1:
        losses = [each.losses for each in tries]
        # The mean of C binary cross-entropies of a constant one half is ln 2.
        num_classes = 2 if evaluation.decision.is_multilabel else len(evaluation.labels)
        pictures["attempts"] = draw_attempts(losses, label_entropy(evaluation), num_classes)
    shown = facts | {
        "data": NO_DATA | facts["data"],
        "pictures": pictures,
        "confusions": list_confusions(evaluation),
        "labels": evaluation.labels,
        "is_multilabel": evaluation.decision.is_multilabel,
        "given_up": None,
    }
    environment = templates()
    paths = ReportPaths(run_dir / REPORT_JSON, run_dir / REPORT_HTML, run_dir / CARD)
    write_atomic(paths.html, environment.get_template("report.html.jinja").render(shown))
    write_atomic(paths.card, environment.get_template("card.md.jinja").render(shown))
    write_json(paths.json, facts)  # last: who finds it finds the other two
    return paths


def sum_up_lengths(
    lengths: npt.NDArray[np.int64], max_length: int | None, long_text: LongText = "head"
) -> dict[str, Any]:
    """Return the spread of lengths in tokens, the share of rows that are cut and of tokens that are lost."""
    median, most, longest = np.quantile(lengths, [0.5, 0.95, 1.0])
    longer = 0.0 if max_length is None else float((lengths > max_length).mean())
    is_cut = max_length is not None and long_text != "windows"
    lost = int(np.maximum(lengths - max_length, 0).sum()) if is_cut and max_length is not None else 0
    return {
        "rows": len(lengths),
        "median": float(median),
        "percentile_95": float(most),
        "longest": int(longest),
        "max_length": max_length,
        "long_text": long_text,
        "longer_share": longer,
        "truncated_share": longer if is_cut else 0.0,
        "lost_share": lost / int(lengths.sum()) if lost else 0.0,
    }


def label_entropy(evaluation: Evaluation) -> float:
    """Return H(y) of the test rows in nats: the loss of the best answer that is the same for every text.

    With several labels a row it is the mean over the labels, as the loss is.
    """
    return entropy_of(evaluation.truth_sets.mean(axis=0), is_multilabel=evaluation.decision.is_multilabel)


def entropy_of(shares: npt.NDArray[np.float64], *, is_multilabel: bool) -> float:
    """Return the same for the (C,) shares of rows that have each class."""
    num_classes = len(shares)
    if is_multilabel:
        shares = np.stack([shares, 1 - shares])  # (2, C)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    total = float(-(shares * logs).sum())
    return total / num_classes if is_multilabel else total


def list_errors(evaluation: Evaluation, examples: Sequence[Example] | None) -> list[dict[str, Any]]:
    """Return the wrong answers of which the model was surest, the surest first."""
    truth, chosen = evaluation.truth_sets, evaluation.chosen
    is_multilabel = evaluation.decision.is_multilabel
    if is_multilabel:
        # Of a row's wrong decisions the surest: the score of a class that does not apply, or 1 - it.
        sureness = np.where(chosen, evaluation.scores, 1 - evaluation.scores)
        confidence = np.where(chosen != truth, sureness, 0).max(axis=1)
    else:
        confidence = evaluation.scores.max(axis=1)
    wrong = np.flatnonzero((chosen != truth).any(axis=1))
    surest = wrong[np.argsort(-confidence[wrong], kind="stable")][:_NUM_ERRORS]
    texts = {example.id: example.text for example in examples or ()}

    def named(applies: npt.NDArray[np.bool_]) -> str | list[str]:
        names = [label for label, is_true in zip(evaluation.labels, applies.tolist(), strict=True) if is_true]
        return names if is_multilabel else names[0]

    return [
        {
            "id": evaluation.ids[row],
            "truth": named(truth[row]),
            "label": named(chosen[row]),
            "confidence": float(confidence[row]),
            "text": _one_line(texts[evaluation.ids[row]]) if evaluation.ids[row] in texts else None,
        }
        for row in surest.tolist()
    ]


def list_confusions(evaluation: Evaluation, limit: int = 6) -> list[dict[str, Any]]:
    """Return the most frequent mistakes: true class, predicted class, rows, share of the true class."""
    mistakes = [cell for cell in evaluation.metrics.confusion if cell.truth != cell.predicted]
    per_class = evaluation.metrics.per_class
    return [
        {
            "truth": evaluation.labels[cell.truth],
            "label": evaluation.labels[cell.predicted],
            "rows": cell.rows,
            "share": cell.rows / per_class[cell.truth].support,
        }
        for cell in sorted(mistakes, key=lambda cell: -cell.rows)[:limit]
    ]


def draw_figures(
    evaluation: Evaluation,
    curve: Curve | None,
    lengths: npt.NDArray[np.int64] | None = None,
    max_length: int | None = None,
) -> dict[str, Markup | None]:
    """Return the pictures of a page by name, None where there is nothing to draw."""
    pictures: dict[str, Markup | None] = {"loss": None, "metrics": None, "lengths": None, "attempts": None}
    metrics = evaluation.metrics
    confusion, kept = _most_confused(metrics.confusion, len(evaluation.labels))
    totals = np.array([metrics.per_class[place].support for place in kept], dtype=np.int64)
    pictures["confusion"] = draw_confusion(confusion, [evaluation.labels[place] for place in kept], totals)
    # The confidence in one of C classes is at least 1 / C; the score of a class by itself may be 0.
    lowest = NUM_BINS + 1 if metrics.is_multilabel else len(evaluation.labels)
    pictures["calibration"] = draw_calibration(metrics.reliability, lowest)
    if lengths is not None and len(lengths) and max_length is not None:
        pictures["lengths"] = draw_lengths(lengths, max_length)
    if curve is not None:
        # The mean of C binary cross-entropies of a constant one half is ln 2.
        num_classes = 2 if metrics.is_multilabel else len(evaluation.labels)
        pictures["loss"] = draw_loss(
            curve.steps, curve.losses, curve.valid_steps, curve.valid_losses, num_classes
        )
        if curve.best_step is not None:
            pictures["metrics"] = draw_metrics(
                curve.valid_steps, curve.f1_macro, curve.accuracy, curve.best_step
            )
    return pictures


def _most_confused(confusion: Sequence[Cell], num_classes: int) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Return the part of a confusion matrix that fits a picture: the classes with most mistakes."""
    mistakes = np.zeros(num_classes, dtype=np.int64)
    for cell in confusion:
        if cell.truth != cell.predicted:
            mistakes[[cell.truth, cell.predicted]] += cell.rows
    kept = np.sort(np.argsort(-mistakes, kind="stable")[:MAX_DRAWN_CLASSES]).tolist()
    place = {index: number for number, index in enumerate(kept)}
    matrix = np.zeros((len(kept), len(kept)), dtype=np.int64)
    for cell in confusion:
        if cell.truth in place and cell.predicted in place:
            matrix[place[cell.truth], place[cell.predicted]] = cell.rows
    return matrix, kept


def templates() -> Environment:
    """Return the templates of the page and the card, with their filters."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        percent=_percent,
        points=_points,
        figure=_figure,
        flat=flatten,
        short=shorten,
        cell=_cell,
        named=_named,
        pvalue=_pvalue,
    )
    environment.globals["max_drawn_classes"] = MAX_DRAWN_CLASSES
    return environment


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables as one table with dotted keys; values that are None are left out."""
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, Mapping):
            flat |= flatten(item, f"{prefix}{key}.")
        elif item is not None:
            flat[f"{prefix}{key}"] = item
    return flat


def _one_line(text: Text) -> str:
    """Return a text fit for the report: one line, cut, without halves of surrogate pairs (no UTF-8)."""
    line = text if isinstance(text, str) else " ⏐ ".join(text)
    return shorten(line, _TEXT_WIDTH).encode("utf-8", "replace").decode("utf-8")


def _named(labels: str | Sequence[str]) -> str:
    """Return a class, or several, as one text."""
    return labels if isinstance(labels, str) else ", ".join(labels) or "–"


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


def _figure(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}"


def _pvalue(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"= {value:.2g}"


def _cell(value: object) -> str:
    """Return a value for a cell of a Markdown table: one line, its bars and marks taken literally."""
    line = " ".join(str(value).split())
    for mark in "\\`*_[]|":
        line = line.replace(mark, "\\" + mark)
    return line
