import json

import pytest

from bench.detecting.cases import Case, collapsing, hard, quick
from bench.detecting.replay import replay
from bench.detecting.runs import key_of, run
from bench.detecting.table import KINDS, PAGE, by_kind, insert, make_table
from bench.detecting.text import MAX_CLASSES, generate


def short(**changes):
    return Case(
        "short", **{"lr": 3e-2, "steps": 44, "encoder": "tiny", "data": "generated", "rows": 200, **changes}
    )


def test_there_are_at_least_sixty_runs_with_two_seeds_and_a_dozen_quick_ones():
    assert 2 * len(collapsing() + hard()) >= 60
    assert 10 <= len(quick()) <= 14
    assert all(case.encoder == "tiny" for case in quick())


def test_generated_texts_show_their_class_and_no_other():
    rows = generate(2 * MAX_CLASSES, MAX_CLASSES, seed=0)
    words = [set(text.split()) for text, _ in rows]
    same = [words[i] & words[i + MAX_CLASSES] for i in range(MAX_CLASSES)]
    assert len(rows) == 40
    assert all(rows[i][1] == rows[i + MAX_CLASSES][1] == i for i in range(MAX_CLASSES))
    assert same


@pytest.mark.slow
def test_a_run_is_judged_the_same_from_the_ledger():
    case = short()
    record = run(case, 0)
    kept = json.loads(json.dumps({"key": key_of(case, 0), **record}))
    first, again = replay(case, record), replay(case, kept)
    assert first == again
    assert first.has_failed
    assert first.alarm is not None
    assert first.steps_to_alarm == first.alarm.step <= 40
    assert not first.is_missed


@pytest.mark.slow
def test_words_that_are_all_unknown_are_seen_before_the_first_step():
    judged = replay(case := short(lr=1e-3, steps=20, damage="unknown-words"), run(case, 1))
    assert judged.alarm is not None
    assert judged.alarm.step == 0
    assert judged.steps_to_alarm == 0


def test_random_labels_are_due_no_alarm_whatever_the_model_answers():
    record = {"seed": 0, "failed": True, "label_shares": None, "probe": [[0.0, 1.0], [1.0, 0.0]], "steps": []}
    record["steps"] = [[0.7, 1.0, 1.0, 1e-3, 16, 15, 0, 3.2, 0, 1, 0, 8, 8, 16, 0]] * 60
    assert not replay(short(noise=1.0), record).has_failed
    judged = replay(short(), record)
    assert judged.has_failed
    assert judged.is_missed
    assert by_kind([judged])[0]["wrong"] == 1


def test_a_key_changes_with_whatever_the_run_depends_on():
    keys = {key_of(case, seed) for case in (short(), short(lr=1e-3), short(classes=3)) for seed in (0, 1)}
    assert len(keys) == 6


def test_the_table_of_the_page_is_the_one_made_from_the_results():
    if not KINDS.exists():
        pytest.skip("the detector benchmark has not been run in full")
    rows = [json.loads(line) for line in KINDS.read_text("utf-8").splitlines()]
    text = PAGE.read_text("utf-8")
    assert insert(text, make_table(rows)) == text
