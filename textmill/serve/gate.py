"""The gate: what a version must show before it may go live, and the only way to live.

Promises: a damaged, broken or measurably worse version never replaces the live one; every verdict is a
line of the journal; the comparison rests on labelled rows inside the candidate: any host can repeat it.
"Not worse" is a non-inferiority test: the lower 95 % bound of the paired bootstrap difference to the
live version is at least -margin. Too few rows to tell is `inconclusive`, which does not pass either.
Several labels a text are compared as they are chosen, each version by its own thresholds.
What is not covered: speed and memory of a version.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from textmill.core.config import Config
from textmill.core.errors import GateRefused, StoreError, TextmillError
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.serve.gate_config import GateConfig
from textmill.store.bundle import Bundle
from textmill.store.registry import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from textmill.core.decision import Decision
    from textmill.core.types import Example, Scores
    from textmill.evaluate.compare import Difference
    from textmill.runtime.predictor import BundlePredictor
    from textmill.store.manifest import Signature

__all__ = ["Check", "GateConfig", "GateReport", "gate", "promote"]

Verdict: TypeAlias = Literal["passed", "refused", "inconclusive"]
_NAMES = {"f1_macro": "macro-F1", "accuracy": "accuracy"}
_SET_NAMES = {"f1_macro": "macro-F1", "accuracy": "share of rows with exactly the right labels"}


class Check(Config):
    """One check of the gate."""

    name: Literal["files", "signature", "golden", "numbers", "comparison"]
    """What was looked at."""
    verdict: Verdict
    """What came out."""
    sentence: str
    """The same for a reader, with the numbers."""
    numbers: dict[str, float | int | str | None] = Field(default_factory=dict)
    """The numbers by name."""

    @property
    def can_be_forced(self) -> bool:
        """Whether a person may overrule it: never for a version that is damaged or cannot answer."""
        return self.name in ("signature", "comparison")


class GateReport(Config):
    """What the gate found."""

    candidate: int
    """The version that wants to go live."""
    live: int | None
    """The version it was compared with."""
    verdict: Verdict
    """Whether it may."""
    sentence: str
    """The deciding check in one sentence."""
    checks: tuple[Check, ...]
    """All checks made, in order; the first refusal ends them."""
    forced: bool = False
    """Whether the version went live although it did not pass."""

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return self.model_dump(mode="json")

    def as_lines(self) -> list[str]:
        """Return the report as lines for a terminal."""
        against = "" if self.live is None else f" against version {self.live}"
        forced = ", forced" if self.forced else ""
        lines = [f"{check.name:<10}  {check.verdict:<12}  {check.sentence}" for check in self.checks]
        return [f"Version {self.candidate}{against}: {self.verdict}{forced}.", *lines]


def gate(
    candidate: Bundle,
    live: Bundle | None,
    config: GateConfig,
    *,
    threads: int = 1,
    seed: int = 0,
    progress: Progress = SILENT,
) -> GateReport:
    """Check whether a version may go live.

    Args:
        candidate: the version.
        live: the version that it would replace; None if there is none yet.
        config: what must hold.
        threads: processors for the answers.
        seed: of the bootstrap.
        progress: who watches.
    """
    checks: list[Check] = []

    def report() -> GateReport:
        last = next((check for check in checks if check.verdict != "passed"), checks[-1])
        return GateReport(
            candidate=candidate.version,
            live=None if live is None else live.version,
            verdict=last.verdict,
            sentence=last.sentence,
            checks=tuple(checks),
        )

    checks.append(_try("files", lambda: _check_files(candidate, progress)))
    if checks[-1].verdict == "passed":
        checks.append(_check_signature(candidate, live, config))
    if checks[-1].verdict != "passed":
        return report()
    try:
        predictor = _open(candidate, threads)
        rows = _read_rows(candidate, config.rows)
    except TextmillError as err:
        checks.append(Check(name="golden", verdict="refused", sentence=str(err)))
        return report()
    checks.append(_try("golden", lambda: _check_golden(candidate, predictor)))
    if checks[-1].verdict != "passed":
        return report()
    scores = _scores(predictor, rows, progress)
    checks.append(_check_numbers(scores, rows))
    if checks[-1].verdict == "passed":
        checks.append(
            _compare(candidate, live, rows, scores, predictor.decision, config, threads, seed, progress)
        )
    return report()


def promote(
    store: Store,
    version: int,
    config: GateConfig,
    *,
    force: bool = False,
    threads: int = 1,
    progress: Progress = SILENT,
) -> GateReport:
    """Make a version live if it passes the gate.

    Args:
        store: where it is.
        version: the version.
        config: what must hold.
        force: also if the gate cannot tell, finds it worse or of another signature, or if it is banned;
            never if its files, golden answers or numbers are wrong.
        threads: processors for the answers.
        progress: who watches.

    Raises:
        GateRefused: it does not pass; the live version stays.
        StoreError: no such version, a banned one, or another version went live meanwhile.
    """
    state = store.state()
    candidate = store.bundle(version)
    if version in state.bans and not force:
        raise StoreError(
            f"Version {version} of {store.name} must not be banned to go live",
            got=f"a ban ({state.bans[version]})",
            fix="Publish a better version, or promote this one with --force to lift the ban.",
        )
    live, fault = _live_bundle(store, state.live)
    report = gate(candidate, live, config, threads=threads, progress=progress)
    if fault is not None and report.verdict == "passed":
        report = GateReport(
            candidate=version,
            live=state.live,
            verdict=fault.verdict,
            sentence=fault.sentence,
            checks=(*report.checks[:-1], fault),
        )
    failed = [check for check in report.checks if check.verdict != "passed"]
    if failed and force and all(check.can_be_forced for check in failed):
        report = report.model_copy(update={"forced": True})
    elif failed:
        store.record("gate", version=version, reason=report.sentence, report=report.as_json())
        raise GateRefused(
            f"Version {version} of {store.name} must pass the gate to go live",
            got=f"{report.verdict}: {report.sentence}",
            fix=_next_step(failed[0], state.live),
        )
    reason = "forced: " if report.forced else ""
    store.set_live(version, reason + report.sentence, report.as_json(), replacing=state, lift_ban=force)
    return report


def _next_step(check: Check, live: int | None) -> str:
    stays = "Nothing is live yet." if live is None else f"Version {live} stays live."
    return f"{stays} Promote with --force if you know better." if check.can_be_forced else stays


def _live_bundle(store: Store, live: int | None) -> tuple[Bundle | None, Check | None]:
    """Return the live bundle after verifying it, or the check that says why it cannot be compared with."""
    if live is None:
        return None, None
    try:
        bundle = store.bundle(live)
        bundle.verify()
    except StoreError as err:
        return None, Check(
            name="comparison", verdict="inconclusive", sentence=f"The live version cannot be read: {err}"
        )
    return bundle, None


def _try(name: Literal["files", "golden"], check: Callable[[], str]) -> Check:
    """Return a check that passes with the sentence of `check`, or is refused with its error."""
    try:
        return Check(name=name, verdict="passed", sentence=check())
    except TextmillError as err:
        return Check(name=name, verdict="refused", sentence=str(err))


def _check_files(candidate: Bundle, progress: Progress) -> str:
    candidate.verify(progress)
    return f"All {len(candidate.manifest.files)} files have their hashes."


def _check_signature(candidate: Bundle, live: Bundle | None, config: GateConfig) -> Check:
    ours = candidate.manifest.signature
    if live is None:
        return Check(name="signature", verdict="passed", sentence="There is no live version to fit.")
    theirs = live.manifest.signature
    if ours.task != theirs.task:
        sentence = f"The task is {ours.task}, where the live version's is {theirs.task}."
        return Check(name="signature", verdict="refused", sentence=sentence)
    added = sorted(set(ours.labels) - set(theirs.labels))
    gone = sorted(set(theirs.labels) - set(ours.labels))
    if not added and not gone:
        sentence = (
            f"Task and {len(ours.labels)} labels are those of the live version.{_changed(ours, theirs)}"
        )
        return Check(name="signature", verdict="passed", sentence=sentence)
    sentence = f"The labels differ from the live version's: new {_listed(added)}, gone {_listed(gone)}."
    if config.allow_breaking:
        return Check(
            name="signature", verdict="passed", sentence=f"{sentence} gate.allow_breaking permits it."
        )
    return Check(
        name="signature",
        verdict="refused",
        sentence=f"{sentence} Set gate.allow_breaking once every caller knows the new ones.",
    )


def _changed(ours: Signature, theirs: Signature) -> str:
    """Return what else differs, which callers need not know: the answers' form stays."""
    changes = []
    if ours.thresholds != theirs.thresholds:
        changes.append("The thresholds are new.")
    if ours.long_text != theirs.long_text:
        changes.append(
            f"Of long texts is read: {ours.long_text}, where the live version has {theirs.long_text}."
        )
    return "".join(f" {change}" for change in changes)


def _check_golden(candidate: Bundle, predictor: BundlePredictor) -> str:
    from textmill.runtime.golden import check_golden

    return f"The golden answers are repeated to {check_golden(candidate, predictor):.1g}."


def _check_numbers(scores: Scores, rows: list[Example]) -> Check:
    import numpy as np

    lost = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(lost):
        return Check(
            name="numbers",
            verdict="refused",
            sentence=f"{len(lost)} of {len(rows)} answers are not numbers, as for {rows[int(lost[0])].id!r}.",
            numbers={"rows": len(rows), "not_numbers": len(lost)},
        )
    return Check(
        name="numbers",
        verdict="passed",
        sentence=f"All answers to {len(rows)} gate rows are numbers.",
        numbers={"rows": len(rows), "not_numbers": 0},
    )


def _compare(
    candidate: Bundle,
    live: Bundle | None,
    rows: list[Example],
    scores: Scores,
    decision: Decision,
    config: GateConfig,
    threads: int,
    seed: int,
    progress: Progress,
) -> Check:
    if live is None:
        return Check(
            name="comparison", verdict="passed", sentence="There is no live version to compare with."
        )
    if len(rows) < config.min_rows:
        return Check(
            name="comparison",
            verdict="inconclusive",
            sentence=f"{len(rows)} gate rows are too few to compare with version {live.version}; "
            f"at least {config.min_rows} are needed (gate.min_rows)",
            numbers={"rows": len(rows), "rows_needed": config.min_rows},
        )
    try:
        live_predictor = _open(live, threads)
    except TextmillError as err:
        sentence = f"The live version cannot be opened: {err}"
        return Check(name="comparison", verdict="inconclusive", sentence=sentence)
    from textmill.evaluate.compare import paired_difference

    live_scores = _scores(live_predictor, rows, progress)
    known = (*candidate.manifest.signature.labels, *live.manifest.signature.labels)
    labels = sorted({*known, *(label for row in rows for label in row.labels)})
    decisions = (
        live_predictor.decision.for_labels(live_predictor.labels, labels),
        decision.for_labels(candidate.manifest.signature.labels, labels),
    )
    truth = _truth(rows, labels, is_multilabel=decision.is_multilabel)
    difference = paired_difference(
        truth,
        _columns(live_scores, live_predictor.labels, labels),
        _columns(scores, candidate.manifest.signature.labels, labels),
        labels,
        config.metric,
        numpy_generator(seed, "gate"),
        decisions=decisions,
    )
    return judge(difference, config.margin, is_multilabel=decision.is_multilabel)


def judge(difference: Difference, margin: float, *, is_multilabel: bool = False) -> Check:
    """Return the verdict on a difference (candidate minus live) under a margin."""
    name = (_SET_NAMES if is_multilabel else _NAMES)[difference.metric]
    shown = (
        f"{name} {difference.second:.4f} against {difference.first:.4f}, difference "
        f"{100 * difference.difference:+.2f} points (95 % interval {100 * difference.low:+.2f} to "
        f"{100 * difference.high:+.2f}, {difference.rows:,} rows, margin {100 * margin:g})"
    )
    numbers: dict[str, float | int | str | None] = {
        "metric": difference.metric,
        "rows": difference.rows,
        "live": difference.first,
        "candidate": difference.second,
        "difference": difference.difference,
        "low": difference.low,
        "high": difference.high,
        "margin": margin,
    }
    if difference.low >= -margin:
        return Check(name="comparison", verdict="passed", sentence=f"Not worse: {shown}.", numbers=numbers)
    if difference.high < -margin:
        return Check(name="comparison", verdict="refused", sentence=f"Worse: {shown}.", numbers=numbers)
    rows_needed = difference.rows_to_tell(-margin)
    margin_needed = math.ceil(-difference.low * 1000) / 1000
    more = f"about {rows_needed:,} rows (gate.rows) or " if rows_needed is not None else ""
    return Check(
        name="comparison",
        verdict="inconclusive",
        sentence=f"These rows cannot tell: {shown}; {more}gate.margin = {margin_needed:g} would decide.",
        numbers={**numbers, "rows_needed": rows_needed, "margin_needed": margin_needed},
    )


def _open(bundle: Bundle, threads: int) -> BundlePredictor:
    from textmill.runtime.open import open as open_bundle

    return open_bundle(bundle.path, "onnx", threads)


def _read_rows(candidate: Bundle, limit: int) -> list[Example]:
    from textmill.runtime.gate_rows import GATE_ROWS, read_gate_rows

    return read_gate_rows(candidate.file(GATE_ROWS))[:limit]


def _scores(predictor: BundlePredictor, rows: list[Example], progress: Progress) -> Scores:
    with progress.task("gate", len(rows)) as task:
        scores = predictor.scores([row.text for row in rows])
        task.advance(len(rows))
    return scores


def _truth(rows: list[Example], labels: list[str], *, is_multilabel: bool) -> NDArray[np.int64]:
    """Return the (N,) class of each row, or (N, C) of 0 and 1 for a multi-label model."""
    import numpy as np

    places = {label: place for place, label in enumerate(labels)}
    if is_multilabel:
        return np.array([[int(label in row.labels) for label in labels] for row in rows], dtype=np.int64)
    return np.array([places[row.labels[0]] for row in rows], dtype=np.int64)


def _columns(scores: Scores, have: tuple[str, ...], want: list[str]) -> Scores:
    """Return scores with a column for each wanted label; a label that a model does not know gets 0."""
    import numpy as np

    columns = np.zeros((len(scores), len(want)), dtype=np.float32)
    columns[:, [want.index(label) for label in have]] = scores
    return columns


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
