from __future__ import annotations

import itertools

import pytest

from tests.data.findings.rows import examples, sentence
from textmill.data.findings.near import _jaccard, _shingles, compare_rows, find_near, near_table

CHINESE = "这家酒店的服务非常好，房间干净整洁，早餐也很丰富，离地铁站只有五分钟的路程，下次还会再来入住。"


def test_rows_with_a_few_characters_changed_are_found_and_others_are_not():
    texts = [sentence(n) for n in range(60)]
    rows = examples([*texts, texts[7].replace("ka", "ko", 1), texts[9].upper() + "!!!"])
    near = compare_rows(rows, ["train"] * len(rows))
    assert (near.repeats.count, near.num_groups, near.compared) == (2, 2, 62)
    assert set(near.repeats.rows) == {"r60", "r61"}
    assert near.leaks.count == 0
    assert all(group.similarity >= 0.8 for group in near.groups)


def test_a_training_row_near_to_a_test_row_is_a_leak():
    texts = [sentence(n) for n in range(10)]
    rows = examples([*texts, texts[3] + " pelrumi", texts[4] + " pelrumi"])
    near = compare_rows(rows, ["train"] * 10 + ["test", "valid"])
    assert near.leaks.rows == ("r3", "r4")
    found = {finding.kind: finding for finding in find_near(near)}
    assert found["near_leakage"].rows == ("r3", "r4")
    assert found["near_leakage"].level == "warning"


def test_near_rows_with_other_labels_are_a_conflict():
    rows = examples([sentence(0), sentence(0) + " x", sentence(1)], [("a",), ("b",), ("a",)])
    near = compare_rows(rows, ["train"] * 3)
    assert set(near.conflicts.rows) == {"r0", "r1"}
    assert "near_conflicts" in {finding.kind for finding in find_near(near)}
    assert near.groups[0].labels == {"a": 1, "b": 1}
    assert near_table(near).rows


def test_chinese_texts_are_compared_by_three_characters():
    rows = examples([CHINESE, CHINESE.replace("五分钟", "十分钟"), CHINESE[::-1]])
    near = compare_rows(rows, ["train"] * 3)
    assert near.repeats.rows == ("r1",)


def test_pairs_are_compared_as_one_text():
    rows = examples(
        [(sentence(0), sentence(1)), (sentence(0), sentence(1) + " ka"), (sentence(2), sentence(3))]
    )
    assert compare_rows(rows, ["train"] * 3).repeats.count == 1


def test_short_texts_are_not_compared():
    rows = examples(["order number 12", "order number 13", "", "!"])
    assert compare_rows(rows, ["train"] * 4).repeats.count == 0


def test_many_rows_of_one_template_are_one_group_and_cost_one_comparison_each():
    template = sentence(0, 30)
    rows = examples([f"{template} {n}" for n in range(500)])
    near = compare_rows(rows, ["train"] * 500)
    assert (near.num_groups, near.repeats.count) == (1, 499)
    assert len(near.repeats.rows) == 20


@pytest.mark.parametrize("seed", range(3))
def test_the_pairs_are_those_of_the_plain_comparison_of_all(seed):
    texts = [sentence(100 * seed + n) for n in range(30)]
    changed = [text.replace(text.split()[5], "zzz") for text in texts[:10]]
    rows = examples([*texts, *changed])
    shingles = [_shingles(row.text) for row in rows]
    alike = {
        pair
        for pair in itertools.combinations(range(40), 2)
        if _jaccard(*(shingles[row] for row in pair)) >= 0.85
    }
    found = {
        (int(group.rows[0][1:]), int(group.rows[1][1:]))
        for group in compare_rows(rows, ["train"] * 40).groups
    }
    assert alike <= found
