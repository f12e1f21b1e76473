"""The report of a run that was given up: `report.html`, the diagnosis in front, and `gave-up.json`.

Promises: those of `report.py`; there is no `report.json` and no card, so that nobody takes the run for a
finished one; the figures are those of the validation rows, since a run that will be made again with other
settings must not look at the test rows.
What is not covered: the diagnosis itself (`train/guard/`, `train/rescue.py`).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from textmill import __version__
from textmill.core.files import write_atomic, write_json
from textmill.core.types import Example
from textmill.evaluate.compare import compare
from textmill.evaluate.curve import read_curve
from textmill.evaluate.evaluate import Evaluation
from textmill.evaluate.pictures import draw_attempts
from textmill.evaluate.report import (
    NO_DATA,
    REPORT_HTML,
    REPORT_JSON,
    draw_figures,
    entropy_of,
    list_confusions,
    list_errors,
    templates,
)

GAVE_UP_JSON = "gave-up.json"


def write_given_up(
    run_dir: Path,
    *,
    project: Mapping[str, Any],
    data: Mapping[str, Any],
    labels: Sequence[str],
    is_multilabel: bool,
    train_rows: int,
    diagnosis: Mapping[str, Any],
    attempts: Sequence[Mapping[str, Any]],
    attempt_events: Sequence[Path],
    evaluation: Evaluation | None = None,
    baseline: Evaluation | None = None,
    events: Path | None = None,
    examples: Sequence[Example] | None = None,
) -> Path:
    """Write `report.html` and `gave-up.json` into a run folder, and take an earlier `report.json` away.

    Args:
        run_dir: the folder.
        project: the resolved project as nested plain values.
        data: the data report, as for `write_report`; H(y) is that of its training rows.
        labels: the C class names.
        is_multilabel: whether a row may have several.
        train_rows: number of training rows.
        diagnosis: `kind`, `sentence`, `numbers`, `step`, `fix`, and `kept`, the number of the attempt whose
            healthy state is in `model/`, or None.
        attempts: one entry for each try of the training.
        attempt_events: the event log of each.
        evaluation: the best healthy state on the validation rows.
        baseline: a simple model on the same rows.
        events: the event log of the attempt that the healthy state is of.
        examples: the validation rows, so that the errors show their texts.

    Returns:
        The page.

    Raises:
        StoreError: the disk is full, read-only or forbidden.
    """
    curve = None if events is None or evaluation is None else read_curve(events)
    comparison = None
    if evaluation is not None and baseline is not None:
        comparison = compare(baseline, evaluation, seed=evaluation.seed)
    facts: dict[str, Any] = {
        "format": 1,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "textmill": __version__,
        "given_up": dict(diagnosis),
        "project": dict(project),
        "data": dict(data),
        "measured_on": "validation",
        "evaluation": None if evaluation is None else evaluation.as_json(),
        "baseline": None if baseline is None else baseline.as_json(),
        "comparison": None if comparison is None else comparison.as_json(),
        "training": None if curve is None else curve.as_json(),
        "lengths": None,
        "errors": [] if evaluation is None else list_errors(evaluation, examples),
        "attempts": [dict(attempt) for attempt in attempts],
    }
    pictures = {} if evaluation is None else draw_figures(evaluation, curve)
    losses = [np.zeros(0) if curve is None else curve.losses for curve in map(read_curve, attempt_events)]
    is_drawn = any(len(values) for values in losses)
    # The mean of C binary cross-entropies of a constant one half is ln 2.
    num_classes = 2 if is_multilabel else len(labels)
    counts = data["sides"]["train"]
    shares = np.array([counts.get(label, 0) for label in labels], dtype=float) / max(1, train_rows)
    entropy = entropy_of(shares, is_multilabel=is_multilabel)
    drawn = draw_attempts(losses, entropy, num_classes) if is_drawn else None
    shown = facts | {
        "data": NO_DATA | facts["data"],
        "pictures": {"loss": None, "metrics": None, **pictures, "attempts": drawn},
        "confusions": [] if evaluation is None else list_confusions(evaluation),
        "labels": tuple(labels),
        "is_multilabel": is_multilabel,
    }
    page = run_dir / REPORT_HTML
    (run_dir / REPORT_JSON).unlink(missing_ok=True)
    write_atomic(page, templates().get_template("report.html.jinja").render(shown))
    write_json(run_dir / GAVE_UP_JSON, facts)  # last: who finds it finds the page
    return page
