"""The gate between versions of each shape: compared by what they choose, refused where the shape differs."""

from __future__ import annotations

import pytest

from tests.shapes import SHAPES
from textmill.core.decision import Decision
from textmill.core.errors import GateRefused
from textmill.core.types import Example
from textmill.data.config import CleanConfig
from textmill.model.predictor import TorchPredictor
from textmill.runtime.assemble import prepare_bundle
from textmill.runtime.gate_rows import read_gate_rows
from textmill.serve.gate import GateConfig, promote
from textmill.store.registry import Store


def _rows_of(shape, predictor):
    """Rows on which the predictor is right."""
    rows = shape.examples(120, seed=3)
    names = predictor.decision.names(predictor.scores([row.text for row in rows]), shape.labels)
    return [Example(row.id, row.text, labels) for row, labels in zip(rows, names, strict=True)]


def _prepare(folder, classifier, tokenizer, rows):
    facts = prepare_bundle(
        folder,
        classifier,
        tokenizer,
        clean=CleanConfig(),
        golden_texts=[rows[0].text],
        gate_rows=rows,
        metrics={},
    )
    return folder, facts


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Versions that are right on all their gate rows, and ones that are not."""
    root = tmp_path_factory.mktemp("gate")
    shape = SHAPES["multilabel"]
    classifier, tokenizer = shape.parts()
    rows = _rows_of(shape, TorchPredictor(classifier, tokenizer))
    made = {"sets": _prepare(root / "sets", classifier, tokenizer, rows)}
    assert {len(row.labels) for row in rows} > {0, 1}
    limits = classifier.decision.thresholds
    classifier.decision = Decision(True, tuple(limit + 1e-5 for limit in limits))
    made["nearly"] = _prepare(root / "nearly", classifier, tokenizer, rows)
    classifier.decision = Decision(True, (0.99, *limits[1:]))
    made["blind"] = _prepare(root / "blind", classifier, tokenizer, rows)
    for name in ("pairs", "windows", "head-tail", "single"):
        classifier, tokenizer = SHAPES[name].parts()
        found = _rows_of(SHAPES[name], TorchPredictor(classifier, tokenizer))
        made[name] = _prepare(root / name, classifier, tokenizer, found)
    return made


@pytest.fixture
def publish(sources, tmp_path):
    store = Store(tmp_path / "store", "m")

    def publish_all(*names):
        for name in names:
            store.publish(*sources[name])
        promote(store, 1, GateConfig())
        return store

    return publish_all


def test_thresholds_may_change_and_are_what_is_compared(publish):
    store = publish("sets", "nearly", "blind")
    report = promote(store, 2, GateConfig())
    assert "The thresholds are new." in report.checks[1].sentence
    assert report.checks[-1].numbers["live"] == 1.0
    with pytest.raises(GateRefused, match=r"Worse: macro-F1 0\.[67]"):
        promote(store, 3, GateConfig())
    with pytest.raises(GateRefused, match="Worse: share of rows with exactly the right labels"):
        promote(store, 3, GateConfig(metric="accuracy"))
    assert store.state().live == 2


def test_gate_rows_of_sets_and_pairs_are_kept_as_they_are(publish):
    store = publish("sets", "pairs")
    kinds = [read_gate_rows(store.bundle(version).file("gate.parquet")) for version in (1, 2)]
    assert {len(row.labels) for row in kinds[0]} > {0, 1}
    assert all(isinstance(row.text, tuple) and len(row.labels) == 1 for row in kinds[1])


def test_a_version_of_pairs_is_compared_on_pairs(publish):
    report = promote(publish("pairs", "pairs"), 2, GateConfig())
    assert report.checks[-1].numbers["candidate"] == 1.0


def test_another_rule_for_long_texts_passes_and_is_said(publish):
    report = promote(publish("head-tail", "windows"), 2, GateConfig(margin=0.9))
    assert "windows, where the live version has head-tail" in report.checks[1].sentence


@pytest.mark.parametrize("second", ["pairs", "sets"])
def test_another_task_is_refused_even_where_breaking_is_allowed(publish, second):
    store = publish("single", second)
    with pytest.raises(GateRefused, match=r"The task is \w+, where the live version's is classification"):
        promote(store, 2, GateConfig(allow_breaking=True))
