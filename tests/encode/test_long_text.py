"""Texts that are longer than the model reads: what is kept, in one row or in windows."""

import numpy as np
import pytest

from tests.toy import BACKBONE
from textmill.core.errors import DataError
from textmill.encode.long_text import allot, pool_scores, row_weights
from textmill.encode.tokenizer import Tokenizer, load_tokenizer

LONG = " ".join(f"word{number}" for number in range(60))
ODD = ["", "a", "[SEP] [PAD] </s>", "\ud83d half", LONG]


@pytest.fixture(scope="module")
def plain():
    return load_tokenizer(BACKBONE, 16)


@pytest.fixture(scope="module")
def whole():
    return load_tokenizer(BACKBONE, 512)


def ruled(tokenizer, rule, overlap=0.25, pool="mean"):
    return tokenizer.with_long_text(rule, overlap, pool)


def ids_of(encoded):
    return [row.ids.tolist() for row in encoded]


@pytest.mark.parametrize("rule", ["head", "tail", "head-tail", "windows"])
def test_every_row_keeps_the_special_tokens_and_the_limit(plain, rule):
    cls, *_, sep = plain.encode(["a"])[0].ids.tolist()
    for row in ruled(plain, rule).cut(ODD).rows:
        assert (row.ids[0], row.ids[-1]) == (cls, sep)
        assert 2 <= len(row.ids) <= 16
        assert row.type_ids is None or len(row.type_ids) == len(row.ids)


@pytest.mark.parametrize("rule", ["head", "tail", "head-tail", "windows"])
def test_a_text_that_fits_is_the_same_under_every_rule(plain, rule):
    assert ids_of(ruled(plain, rule).cut(["a short text"]).rows) == ids_of(plain.encode(["a short text"]))


def test_head_tail_and_both_ends_keep_the_tokens_that_they_say(plain, whole):
    content = whole.encode([LONG])[0].ids.tolist()[1:-1]
    kept = {
        rule: ruled(plain, rule).encode([LONG])[0].ids.tolist()[1:-1]
        for rule in ("head", "tail", "head-tail")
    }
    assert kept["head"] == content[:14]
    assert kept["tail"] == content[-14:]
    assert kept["head-tail"] == content[:7] + content[-7:]


@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.9])
def test_windows_leave_no_token_out_and_stand_in_order(plain, whole, overlap):
    content = whole.encode([LONG])[0].ids.tolist()[1:-1]
    rows, owner = ruled(plain, "windows", overlap).cut(["a", LONG, "b"])
    assert owner.tolist() == [0] + [1] * (len(rows) - 2) + [2]
    end = 0
    for row in rows[1:-1]:
        window = row.ids.tolist()[1:-1]
        assert len(window) == 14, "the last window is as full as the others"
        start = next(place for place in range(end + 1) if content[place : place + 14] == window)
        end = start + 14
    assert end == len(content)


def test_windows_of_a_pair_go_over_the_second_text(plain, whole):
    first = whole.encode(["a question"])[0].ids.tolist()
    rows, owner = ruled(plain, "windows").cut([("a question", LONG)])
    assert len(rows) > 2
    assert set(owner.tolist()) == {0}
    assert all(row.ids.tolist()[: len(first)] == first for row in rows)
    assert all(sorted(set(row.type_ids.tolist())) == [0, 1] for row in rows)
    both_long = ruled(plain, "windows").cut([(LONG, LONG)])
    assert all(len(row.ids) == 16 for row in both_long.rows)


def test_head_and_tail_of_a_pair_keep_both_texts(plain):
    for rule in ("tail", "head-tail"):
        row = ruled(plain, rule).encode([(LONG, LONG)])[0]
        assert len(row.ids) == 16
        assert abs(int((row.type_ids == 0).sum()) - int((row.type_ids == 1).sum())) <= 2


@pytest.mark.parametrize(
    ("first", "second", "room", "kept"),
    [(3, 4, 10, (3, 4)), (2, 40, 10, (2, 8)), (40, 2, 10, (8, 2)), (40, 40, 11, (5, 6)), (5, 6, 10, (5, 5))],
)
def test_the_longer_part_of_a_pair_gives_way_first(first, second, room, kept):
    assert allot(first, second, room) == kept


def test_one_row_a_text_cannot_be_had_from_windows(plain):
    with pytest.raises(DataError, match=r"head, tail or head-tail.*several rows"):
        ruled(plain, "windows").encode(["a"])


def test_the_rule_is_saved_and_cuts_the_same_after_loading(plain, tmp_path):
    windows = ruled(plain, "windows", 0.5, "max")
    windows.save(tmp_path)
    again = Tokenizer.from_file(tmp_path)
    assert again.settings == windows.settings
    assert ids_of(again.cut(ODD).rows) == ids_of(windows.cut(ODD).rows)
    assert (tmp_path / "tokenizer.json").read_bytes() == plain.json_bytes
    assert not windows.truncated([LONG]).any()
    assert plain.truncated([LONG]).all()


def test_flat_rows_are_the_rows(plain):
    for rule in ("tail", "windows"):
        tokenizer = ruled(plain, rule)
        flat, cut = tokenizer.cut_flat(ODD), tokenizer.cut(ODD)
        assert flat.ids.tolist() == [index for row in cut.rows for index in row.ids.tolist()]
        assert flat.lengths.tolist() == [len(row.ids) for row in cut.rows]


def test_the_scores_of_windows_are_pooled_for_each_text():
    scores = np.array([[0.8, 0.2], [0.1, 0.9], [0.3, 0.7]], dtype=np.float32)
    owner = np.array([0, 0, 1])
    assert np.allclose(pool_scores(scores, owner, "mean", False), [[0.45, 0.55], [0.3, 0.7]])
    assert np.allclose(pool_scores(scores, owner, "max", True), [[0.8, 0.9], [0.3, 0.7]])
    single = pool_scores(scores, owner, "max", False)
    assert np.allclose(single.sum(axis=1), 1)
    assert np.allclose(single[0], [0.8 / 1.7, 0.9 / 1.7])
    assert pool_scores(scores[:0], owner[:0], "mean", False).shape == (0, 2)


def test_the_rows_of_a_text_weigh_as_much_as_any_other_text():
    owner = np.array([0, 0, 0, 1, 2, 2])
    weights = row_weights(owner)
    assert np.isclose(weights.mean(), 1)
    assert np.allclose(np.bincount(owner, weights=weights), 2)


@pytest.mark.parametrize("rule", ["head", "tail", "head-tail", "windows"])
def test_a_pair_keeps_exactly_its_own_separators(plain, rule):
    sep = plain.encode(["a"])[0].ids.tolist()[-1]
    pair = ("great [SEP] not great [PAD]", "[SEP] </s> [PAD] " * 20)
    for row in ruled(plain, rule).cut([pair]).rows:
        assert row.ids.tolist().count(sep) == 2
