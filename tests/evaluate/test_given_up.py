import json
import re

import numpy as np
import pytest

from tests.evaluate.test_report import EVENTS, PROJECT, _data, _Tags
from tests.evaluate.toys import simulated
from textmill.evaluate.evaluate import evaluate
from textmill.evaluate.given_up import write_given_up

LABELS = ("neg", "pos")
DIAGNOSIS = {
    "kind": "never-left",
    "sentence": "Every text gets the same <answer>.",
    "numbers": {"loss": 0.6931},
    "step": 40,
    "is_alarm": True,
    "fix": "Lower train.lr.",
    "kept": None,
}
ATTEMPT = {"attempt": 1, "cure": "", "ended": "it ended", "verdict": "never-left"}


def give_up(folder, *, num_logs=2, **changes):
    """Write the report of a run of two attempts, of which `num_logs` made steps."""
    logs = [folder / f"{number}.jsonl" for number in (1, 2)]
    for log in logs[:num_logs]:
        log.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    values = {
        "project": PROJECT,
        "data": _data(LABELS),
        "labels": LABELS,
        "is_multilabel": False,
        "train_rows": 60,
        "diagnosis": DIAGNOSIS,
        "attempts": [ATTEMPT, ATTEMPT | {"attempt": 2, "cure": "lower-lr"}],
        "attempt_events": logs,
    }
    page = write_given_up(folder, **(values | changes)).read_text()
    _Tags(page)
    return page, json.loads((folder / "gave-up.json").read_text())


def test_the_diagnosis_comes_first_and_then_the_attempts(tmp_path):
    page, facts = give_up(tmp_path)
    places = [
        page.index(words)
        for words in (
            "Given up: no usable",
            "same &lt;answer&gt;",
            "Lower train.lr.",
            "ln 2 = 0.693",
            "lower-lr",
        )
    ]
    assert places == sorted(places)
    assert "never seen" not in page
    assert "No attempt reached a healthy state" in page
    assert page.count('lang="zh"') == page.count('lang="en"') - 1
    assert facts["given_up"] == DIAGNOSIS
    assert len(facts["attempts"]) == 2
    assert facts["data"]["fingerprint"] == "ab" * 32


def test_there_is_no_report_of_a_finished_run_beside_it(tmp_path):
    (tmp_path / "report.json").touch()
    give_up(tmp_path)
    assert not (tmp_path / "report.json").exists()
    assert not (tmp_path / "card.md").exists()


def test_the_best_healthy_state_is_shown_as_one_of_the_validation_rows(tmp_path):
    predictor, examples = simulated(60, LABELS, seed=0)
    found = evaluate(predictor, examples)
    page, facts = give_up(
        tmp_path,
        evaluation=found,
        baseline=found,
        events=tmp_path / "1.jsonl",
        examples=examples,
        diagnosis=DIAGNOSIS | {"kept": 2},
    )
    assert "attempt 2" in page
    assert "measured on the 60 validation rows" in page
    assert "test rows stay untouched" in page
    assert "true class" in page
    assert (facts["measured_on"], facts["evaluation"]["metrics"]["rows"]) == ("validation", 60)


@pytest.mark.parametrize("num_logs", [0, 1])
def test_attempts_without_a_step_are_told_and_not_drawn(tmp_path, num_logs):
    page, _ = give_up(tmp_path, num_logs=num_logs)
    assert len(re.findall("<svg", page)) == num_logs
    assert "lower-lr" in page


def test_the_entropy_is_that_of_the_training_rows(tmp_path):
    data = _data(LABELS)
    data["sides"]["train"] = {"neg": 54, "pos": 6}
    entropy = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert f"H(y) = {entropy:.3f}" in give_up(tmp_path, data=data)[0]
    several = give_up(tmp_path, data=data, is_multilabel=True)[0]  # the mean over both labels
    assert f"H(y) = {entropy:.3f}" in several
    assert "ln 2 = 0.693" in several
