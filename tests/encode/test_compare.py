from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.toy import BACKBONE, toy_examples
from textmill.core.errors import DataError, ModelError
from textmill.core.files import sha256_file
from textmill.encode.compare import Compared, choose, compare, sample_texts, shown_seconds
from textmill.encode.compare_table import table_lines
from textmill.encode.source import find_source

TEXTS = [str(example.text) for example in toy_examples(60)]
CHINESE = ["这本书很好看，值得一读。", "酒店的服务太差了！"] * 30


def test_checkpoints_come_first_and_the_reason_says_why(tmp_path: Path):
    costs = {BACKBONE: 100.0, "bpe:400": 5.0, "wordpiece:400": 7.0}
    found = compare(
        list(costs), TEXTS, tmp_path, seconds_of_epoch=lambda candidate, texts, rows: costs[candidate.name]
    )
    assert found.recommended is not None
    assert found.recommended.candidate.name == BACKBONE
    assert "predicted 100 s" in found.reason
    assert "bpe:400, wordpiece:400 would need an encoder from scratch" in found.reason
    assert (tmp_path / "bpe-400" / "tokenizer.json").is_file()
    table = "\n".join(table_lines(found))
    assert "tok/word" in table
    measures = table.split("What does not come back")[0]
    assert max(map(len, measures.splitlines())) <= 80
    assert "cannot be changed without the weights" in table
    assert [each["epoch_s"] for each in found.as_json()["candidates"]] == [100.0, 5.0, 7.0]


def test_without_weights_the_cheapest_is_taken_and_that_is_said(tmp_path: Path):
    costs = {"bpe:400": 5.0, "wordpiece:400": 7.0}
    found = compare(
        list(costs), TEXTS, tmp_path, seconds_of_epoch=lambda candidate, texts, rows: costs[candidate.name]
    )
    assert found.recommended is not None
    assert found.recommended.candidate.name == "bpe:400"
    assert "next: wordpiece:400, 7 s" in found.reason
    assert "learns from your rows alone" in found.reason


def test_unk_and_truncation_refuse(tmp_path: Path):
    found = compare([BACKBONE], CHINESE, tmp_path)
    assert found.recommended is None
    assert "UNK, more than 0.5%" in found.reason
    found = compare([BACKBONE], TEXTS, tmp_path, max_length=8, max_truncated=0.1)
    assert found.recommended is None
    assert "of the texts at 8 tokens" in found.reason
    assert compare([BACKBONE], TEXTS, tmp_path, max_length=8, max_truncated=1.0).recommended is not None


def test_chinese_is_counted_by_character_and_by_word(tmp_path: Path):
    found = compare(["wordpiece:400"], CHINESE, tmp_path)
    measures = found.compared[0].measures
    assert measures.tokens_per_han == pytest.approx(1.0)
    assert measures.tokens_per_word > 1.2  # words of two characters and more
    assert any("rjieba" in note for note in found.notes)
    assert "tok/han" in "\n".join(table_lines(found))


def test_a_tokenizer_file_is_a_candidate_and_stays_as_it_is(tmp_path: Path):
    file = find_source(BACKBONE, with_weights=False) / "tokenizer.json"
    before = sha256_file(file)
    found = compare([str(file), BACKBONE], TEXTS, tmp_path)
    assert [each.candidate.origin for each in found.compared] == ["file", "checkpoint"]
    assert f"2  {BACKBONE}" in table_lines(found)  # the names are too long to stand side by side
    assert found.compared[0].measures.vocab_size == found.compared[1].measures.vocab_size
    assert sha256_file(file) == before


def test_the_sample_is_drawn_by_seed_and_said(tmp_path: Path):
    assert sample_texts(TEXTS, 10, 1) == sample_texts(TEXTS, 10, 1) != sample_texts(TEXTS, 10, 2)
    assert sample_texts(["", "a", " "], 10, 0) == ["a"]
    found = compare([BACKBONE], TEXTS, tmp_path, sample=10)
    assert "Measured on 10 of 60 texts" in found.notes[-1]
    with pytest.raises(DataError, match="text to compare on"):
        sample_texts(["", " "], 10, 0)


def test_a_wrong_candidate_is_a_clear_error(tmp_path: Path):
    with pytest.raises(ModelError, match=r"bpe:8000"):
        compare(["bpe:many"], TEXTS, tmp_path)
    with pytest.raises(DataError, match="--candidates"):
        compare([], TEXTS, tmp_path)


def test_of_equal_costs_the_first_named_is_taken(tmp_path: Path):
    each = compare([BACKBONE], TEXTS, tmp_path).compared[0]
    twin = Compared(dataclasses.replace(each.candidate, name="twin"), each.measures, None, None)
    best, _ = choose([each, twin])
    assert best is each


def test_durations_are_said_as_people_do():
    assert [shown_seconds(value) for value in (3.14159, 300, 7200)] == ["3.14 s", "5 min", "2 h"]
