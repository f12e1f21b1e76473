"""Looking at data and model before training: the library call behind `textmill check`.

Promises: data that nothing can be trained on is looked at all the same; without the tokenizer everything
about the data is shown, and why lengths are missing is said; the model of the preflight is thrown away,
and no file is written or changed, beside the cache of prepared rows.
What is not covered: what is looked for (`data/audit.py`, `train/preflight/`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.core.errors import ModelError
from textmill.core.progress import SILENT, Progress
from textmill.data.audit import Audit, AuditLimits, audit
from textmill.data.findings.finding import Finding, Table, findings_table
from textmill.data.prepare import Splits, survey
from textmill.data.stream.open import open_stream
from textmill.encode.source import find_source
from textmill.encode.tokenizer import Tokenizer, load_tokenizer
from textmill.encode.unknown import unknown_counter
from textmill.model.build import build
from textmill.project import Project, ProjectConfig
from textmill.train.preflight.preflight import Preflight, look_over

_MOST_BYTES = 600_000_000
"""Weights of a backbone above this are not loaded unasked: a base model has 440 MB in float32 and takes
half a minute on two cores, a large one 1.3 GB."""
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_LEVELS = ("error", "warning", "note")
_IN_REPORT = AuditLimits(rows=50_000, unknown_rows=2_000, suspect_rows=2_000)
"""After a training, whose end should not wait: `textmill check` looks at more."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about a project."""

    audit: Audit
    preflight: Preflight | None
    """None where it was not made; a finding says why."""
    notes: tuple[Finding, ...] = ()
    """What could not be looked at, and why."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: of the data, of what could not be looked at, of the model."""
        model = self.preflight.findings if self.preflight else ()
        return (*self.audit.findings, *self.notes, *model)

    def summary(self, project: Path) -> str:
        """Return what to make of it in a line, with the next step for the project file `project`."""
        counts: Counter[str] = Counter(finding.level for finding in self.findings)
        told = [f"{counts[level]} {level}{'s' * (counts[level] > 1)}" for level in _LEVELS if counts[level]]
        if counts["error"]:
            return f"{', '.join(told)}: mend the errors first; nothing useful can be trained before."
        where = "" if project.name == "project.toml" and project.parent == Path() else f" {project}"
        return f"{', '.join(told) or 'Nothing found'}. Next: textmill train{where}"

    def as_json(self) -> dict[str, Any]:
        """Return the tables as plain values; `findings` are those of data and model."""
        return {
            **self.audit.as_json(),
            "findings": [finding.as_json() for finding in self.findings],
            "preflight": None if self.preflight is None else self.preflight.as_json(),
        }

    def as_tables(self) -> list[Table]:
        """Return tables for people."""
        tables = self.audit.as_tables()
        if self.notes:
            tables.append(findings_table("Not looked at", self.notes))
        return tables + (self.preflight.as_tables() if self.preflight else [])


def check(project: Project, *, preflight: bool | None = None, progress: Progress = SILENT) -> Checked:
    """Look at the project's data, also at data that nothing can be trained on, and at its model.

    Args:
        project: the loaded project file.
        preflight: whether to build the model and try it on a few rows; None: if its weights are on this
            machine and not larger than those of a base model.
        progress: who watches.

    Raises:
        UserError: the data cannot be read.
    """
    config = project.config
    notes: list[Finding] = []
    tokenizer = None
    try:
        tokenizer = load_tokenizer(config.model.backbone, config.encode.max_length)
    except ModelError as err:
        message = f"no lengths in tokens, no unknown tokens and no preflight without the tokenizer: {err.got}"
        notes.append(Finding("no_tokenizer", "error", message, err.fix))
    if config.data.streaming:  # the tables are those of the first rows
        seed = config.train.seed
        stream = open_stream(config.data, project.folder, seed=seed, task=config.task, progress=progress)
        splits = stream.splits
    else:
        splits = survey(config.data, project.folder, progress, cache=project.cache_root, task=config.task)
    found = audit(
        splits,
        tokenizer.count_tokens if tokenizer else None,
        tokenizer.max_length if tokenizer else config.encode.max_length,
        count_unknown=unknown_counter(tokenizer) if tokenizer else None,
        is_multilabel=config.task == "multilabel",
        seed=config.train.seed,
        progress=progress,
    )
    looked = None
    if tokenizer is not None and preflight is not False:
        reason = _why_not(config, splits, is_asked=preflight is True)
        if reason is None:
            looked, broken = _preflight(config, splits, progress)
            notes += broken
        else:
            notes.append(Finding("no_preflight", "note", f"no preflight: {reason[0]}", reason[1]))
    return Checked(found, looked, tuple(notes))


def audit_facts(splits: Splits, tokenizer: Tokenizer, *, is_multilabel: bool = False) -> dict[str, Any]:
    """Return what a run's report tells of its data: the data report, the fingerprint and the audit."""
    found = audit(
        splits,
        tokenizer.count_tokens,
        tokenizer.max_length,
        count_unknown=unknown_counter(tokenizer),
        limits=_IN_REPORT,
        is_multilabel=is_multilabel,
    ).as_json()
    shown = ("looked_at", "lengths", "near", "suspects", "languages", "unknown", "boilerplate")
    return {
        **splits.report.as_json(),
        "fingerprint": splits.fingerprint,
        "findings": found["findings"],
        "audit": {name: found[name] for name in shown},
    }


def _preflight(
    config: ProjectConfig, splits: Splits, progress: Progress
) -> tuple[Preflight | None, list[Finding]]:
    try:
        classifier, tokenizer, notes = build(
            config.model, splits.labels, config.encode, config.train.seed, config.task
        )
    except ModelError as err:
        return None, [Finding("backbone", "error", f"{err.rule}, but got {err.got}", err.fix)]
    looked = look_over(
        classifier,
        tokenizer,
        notes,
        splits,
        config.train,
        config.order,
        is_multilabel=config.task == "multilabel",
        progress=progress,
    )
    return looked, []


def _why_not(config: ProjectConfig, splits: Splits, *, is_asked: bool) -> tuple[str, str] | None:
    """Return why no model is built, and what to do; None if it is."""
    if not splits.train or len(splits.labels) < 2:
        return "there is nothing to train on", "See the findings about the data."
    if is_asked or config.model.architecture is not None:
        return None
    size = _weight_bytes(find_source(config.model.backbone, with_weights=False))
    if not size:
        return (
            "the backbone's weights are not on this machine",
            "Ask for it with --preflight, which gets them.",
        )
    if size > _MOST_BYTES:
        what = f"the backbone's weights have {size / 1e6:,.0f} MB"
        return what, "Ask for it with --preflight; it takes a minute or more without a GPU."
    return None


def _weight_bytes(folder: Path) -> int:
    for pattern in _WEIGHTS:
        found = sum(path.stat().st_size for path in folder.glob(pattern))
        if found:
            return found
    return 0
