from __future__ import annotations

from tests.data.findings.rows import examples
from tests.toy import toy_examples
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example
from textmill.data.findings.suspects import find_suspects, suspect_labels, suspects_table


def with_wrong_labels(num: int, wrong: int) -> tuple[list[Example], set[str]]:
    rows = toy_examples(num)
    chosen = set(numpy_generator(0, "wrong").choice(num, size=wrong, replace=False).tolist())
    swap = {"class0": "class1", "class1": "class0"}
    changed = [Example(r.id, r.text, (swap[r.labels[0]],)) if n in chosen else r for n, r in enumerate(rows)]
    return changed, {rows[n].id for n in chosen}


def test_wrong_labels_come_first_each_with_its_reason_and_the_telling_words():
    rows, wrong = with_wrong_labels(300, 8)
    suspects = suspect_labels(rows, False, seed=0)
    first = {suspect.id for suspect in suspects.found[:8]}
    assert len(first & wrong) >= 6
    top = suspects.found[0]
    assert top.said != top.given
    assert f"labelled {top.given!r}, reads like {top.said!r}" in top.reason
    signs = {
        "class0": {"awful", "boring", "terrible", "worst"},
        "class1": {"great", "lovely", "wonderful", "best"},
    }
    assert set(top.telling) & signs[top.said]
    assert suspects.agreement > 0.9
    found = next(find_suspects(suspects))
    assert found.rows[0] == top.id
    assert suspects_table(suspects).rows


def test_a_teacher_that_learns_nothing_accuses_nobody_and_says_so():
    rng = numpy_generator(0, "labels")
    rows = [Example(r.id, r.text, (str(rng.integers(2)),)) for r in toy_examples(300)]
    suspects = suspect_labels(rows, False, seed=0)
    assert suspects.count == 0
    assert [finding.kind for finding in find_suspects(suspects)] == ["no_signal"]


def test_each_class_of_a_multilabel_set_is_asked_for():
    rows, wrong = with_wrong_labels(240, 6)
    # The second class has its own words; the wrong rows lack it or have it against them.
    several = [Example(r.id, r.text, ("b",) if r.labels == ("class1",) else ()) for r in rows]
    suspects = suspect_labels(several, True, seed=0)
    assert len({suspect.id for suspect in suspects.found[:6]} & wrong) >= 4
    assert {suspect.given for suspect in suspects.found} <= {"b", "not b"}


def test_few_rows_and_a_class_for_each_row_are_left_alone():
    assert suspect_labels(examples(["a", "b"]), False, seed=0).count == 0
    ids = [(f"id{n}",) for n in range(60)]
    assert suspect_labels(examples([f"text {n}" for n in range(60)], ids), False, seed=0).count == 0
