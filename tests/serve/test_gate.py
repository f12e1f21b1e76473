import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

from tests.toy import toy_classifier, toy_examples
from textmill.core.errors import GateRefused, StoreError
from textmill.core.types import Example
from textmill.data.config import CleanConfig
from textmill.evaluate.compare import Difference
from textmill.model.predictor import TorchPredictor
from textmill.runtime.assemble import prepare_bundle
from textmill.serve.gate import GateConfig, judge, promote
from textmill.store.registry import Store

CONFIG = GateConfig()


def balanced_classifier(texts):
    """Return a tiny model that answers each of two classes for half of `texts`."""
    classifier, tokenizer = toy_classifier(max_length=24)
    scores = TorchPredictor(classifier, tokenizer).scores(texts)
    logits = np.log(scores[:, 1] / scores[:, 0])
    bias = list(classifier.head.parameters())[-1]
    with torch.no_grad():
        bias[1] -= float(np.median(logits))
    return classifier, tokenizer


def prepare(folder, classifier, tokenizer, rows):
    facts = prepare_bundle(
        folder,
        classifier,
        tokenizer,
        clean=CleanConfig(),
        golden_texts=["a great film"],
        gate_rows=rows,
        metrics={},
    )
    return folder, facts


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Prepared folders: a model that is right on all gate rows, one that is wrong on all, and variants."""
    root = tmp_path_factory.mktemp("sources")
    texts = [example.text for example in toy_examples(80)]
    classifier, tokenizer = balanced_classifier(texts)
    answers = TorchPredictor(classifier, tokenizer).scores(texts).argmax(axis=1)
    rows = [
        Example(id=str(i), text=text, labels=(f"class{answer}",))
        for i, (text, answer) in enumerate(zip(texts, answers, strict=True))
    ]
    made = {
        "right": prepare(root / "right", classifier, tokenizer, rows),
        "few": prepare(root / "few", classifier, tokenizer, rows[:20]),
    }
    *_, weights, bias = classifier.head.parameters()
    with torch.no_grad():
        weights.neg_()
        bias.neg_()
    made["wrong"] = prepare(root / "wrong", classifier, tokenizer, rows)
    other = toy_classifier(("class0", "class1", "class2"), max_length=24)
    made["labels"] = prepare(root / "labels", *other, rows)
    shutil.copytree(root / "right", root / "golden")
    golden = json.loads((root / "golden" / "golden.json").read_text())
    golden["rows"][0]["scores"] = [0.9, 0.1]
    (root / "golden" / "golden.json").write_text(json.dumps(golden))
    made["golden"] = (root / "golden", made["right"][1])
    return made


@pytest.fixture
def publish(sources, tmp_path):
    """Return a function that publishes sources by name into one store."""
    store = Store(tmp_path / "store", "m")

    def publish_all(*names):
        for name in names:
            store.publish(*sources[name])
        return store

    return publish_all


def damage(store, version):
    path = store.path / "versions" / str(version) / "model.onnx"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def test_a_first_version_goes_live_without_comparison(publish):
    store = publish("right")
    report = promote(store, 1, CONFIG)
    assert report.verdict == "passed"
    assert report.checks[-1].sentence == "There is no live version to compare with."
    assert [check.name for check in report.checks] == [
        "files",
        "signature",
        "golden",
        "numbers",
        "comparison",
    ]
    assert store.state().live == 1


def test_an_equal_version_passes_with_its_numbers_in_the_journal(publish):
    store = publish("right", "right")
    promote(store, 1, CONFIG)
    report = promote(store, 2, CONFIG)
    assert report.verdict == "passed"
    assert report.checks[-1].numbers["difference"] == 0
    assert report.checks[-1].numbers["rows"] == 80
    assert store.journal()[-1].report == report.as_json()
    assert report.as_lines()[0] == "Version 2 against version 1: passed."


def test_a_better_version_passes(publish):
    store = publish("wrong", "right")
    promote(store, 1, CONFIG)
    assert promote(store, 2, CONFIG).checks[-1].numbers["candidate"] == 1.0


def test_a_worse_version_is_refused_and_live_stays(publish):
    store = publish("right", "wrong")
    promote(store, 1, CONFIG)
    with pytest.raises(GateRefused, match=r"refused: Worse: macro-F1 0\.0000 against 1\.0000") as caught:
        promote(store, 2, CONFIG)
    assert caught.value.exit_code == 3
    assert store.state().live == 1
    last = store.journal()[-1]
    assert (last.what, last.version, last.live_after) == ("gate", 2, 1)
    assert last.report["verdict"] == "refused"


def test_a_refusal_by_comparison_can_be_forced_and_that_is_said(publish):
    store = publish("right", "wrong")
    promote(store, 1, CONFIG)
    report = promote(store, 2, CONFIG, force=True)
    assert report.forced
    assert store.state().live == 2
    assert store.journal()[-1].reason.startswith("forced: Worse")


def test_too_few_rows_are_inconclusive_with_the_number_needed(publish):
    store = publish("right", "few")
    promote(store, 1, CONFIG)
    with pytest.raises(GateRefused, match=r"inconclusive: 20 gate rows are too few .* at least 50"):
        promote(store, 2, CONFIG)
    assert promote(store, 2, GateConfig(min_rows=20)).verdict == "passed"


def test_a_damaged_version_cannot_be_forced(publish):
    store = publish("right", "right")
    promote(store, 1, CONFIG)
    damage(store, 2)
    with pytest.raises(GateRefused, match=r"model\.onnx must have the SHA-256"):
        promote(store, 2, CONFIG, force=True)
    assert store.state().live == 1


def test_other_answers_than_the_golden_ones_cannot_be_forced(publish):
    store = publish("golden")
    with pytest.raises(GateRefused, match=r"golden answers.*0\.9000.*Nothing is live yet"):
        promote(store, 1, CONFIG, force=True)
    assert store.state().live is None


def test_other_labels_are_refused_unless_breaking_is_allowed(publish):
    store = publish("right", "labels")
    promote(store, 1, CONFIG)
    with pytest.raises(GateRefused, match="new 'class2', gone none"):
        promote(store, 2, CONFIG)
    with pytest.raises(GateRefused, match="Worse"):
        promote(store, 2, GateConfig(allow_breaking=True))


def test_a_live_version_that_is_damaged_makes_the_gate_inconclusive(publish):
    store = publish("right", "right")
    promote(store, 1, CONFIG)
    damage(store, 1)
    with pytest.raises(GateRefused, match="inconclusive: The live version cannot be read"):
        promote(store, 2, CONFIG)
    assert promote(store, 2, CONFIG, force=True).forced
    assert store.state().live == 2


def test_a_banned_version_needs_force(publish):
    store = publish("right", "right")
    promote(store, 1, CONFIG)
    promote(store, 2, CONFIG)
    store.rollback("seen errors")
    with pytest.raises(StoreError, match=r"a ban \(seen errors\)"):
        promote(store, 2, CONFIG)
    promote(store, 2, CONFIG, force=True)
    assert store.state().bans == {}


def test_a_version_that_is_not_there_is_no_refusal(publish):
    with pytest.raises(StoreError, match="Known versions: 1"):
        promote(publish("right"), 7, CONFIG)


DIFFERENCE = Difference(
    metric="accuracy", rows=100, first=0.8, second=0.8, difference=0.0, low=-0.05, high=0.05
)


@pytest.mark.parametrize(
    ("low", "middle", "high", "verdict"),
    [
        (-0.02, 0.0, 0.05, "passed"),
        (0.01, 0.03, 0.05, "passed"),
        (-0.021, 0.0, 0.05, "inconclusive"),
        (-0.06, -0.03, -0.01, "inconclusive"),
        (-0.06, -0.04, -0.021, "refused"),
        (-0.06, -0.04, -0.02, "inconclusive"),
    ],
)
def test_the_lower_bound_against_the_margin_decides(low, middle, high, verdict):
    difference = dataclasses.replace(DIFFERENCE, low=low, difference=middle, high=high)
    assert judge(difference, 0.02).verdict == verdict


def test_an_inconclusive_verdict_names_rows_and_margin_that_would_decide():
    check = judge(DIFFERENCE, 0.02)
    assert check.numbers["rows_needed"] == pytest.approx(100 * (0.05 / 0.02) ** 2, abs=1)
    assert check.numbers["margin_needed"] == 0.05
    assert judge(DIFFERENCE, check.numbers["margin_needed"]).verdict == "passed"
