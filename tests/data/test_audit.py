from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from textmill.core.types import Text
from textmill.data.audit import Audit, audit
from textmill.data.config import DataConfig
from textmill.data.prepare import survey

Writer = Callable[..., Path]


def count_words(texts: Sequence[Text]) -> npt.NDArray[np.int64]:
    return np.array([len(str(text).split()) for text in texts], dtype=np.int64)


def plain_rows(num: int = 100) -> list[tuple[str, str]]:
    return [(f"text number {n}", "ab"[n % 2]) for n in range(num)]


def audited(folder: Path, **settings: str) -> Audit:
    return audit(survey(DataConfig(train="t.csv", **settings), folder), count_words, 3)  # type: ignore[arg-type]


def kinds(result: Audit) -> set[str]:
    return {finding.kind for finding in result.findings}


def test_a_clean_file_has_no_findings(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(plain_rows())
    result = audited(tmp_path)
    assert result.findings == ()
    assert (result.rows, result.kept, result.columns) == (100, 100, ("text", "label"))
    assert {name: count.rows for name, count in result.classes.items()} == {"a": 50, "b": 50}
    assert sum(result.sides.values()) == 100


def test_lengths_and_truncation_are_counted_in_tokens(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([*plain_rows(90), *[(f"{n} four words here", "a") for n in range(10)]])
    lengths = audited(tmp_path).lengths
    assert lengths is not None
    assert (lengths.num_truncated, lengths.truncated_share) == (10, 0.1)
    assert (lengths.percentiles["p50"], lengths.percentiles["max"]) == (3, 4)
    assert lengths.mean == 3.1
    assert audit(survey(DataConfig(train="t.csv"), tmp_path), None, 3).lengths is None


@pytest.mark.parametrize(
    ("extra", "kind", "told"),
    [
        ([("", "a")], "missing_text", "t.csv:101"),
        ([("no label", "")], "missing_label", "t.csv:101"),
        ([("text number 0", "a")], "duplicates", "t.csv:101"),
        ([("text number 0", "b")], "conflicts", "t.csv:1"),
        ([("odd one", "A")], "look_alike_labels", "'A' (1), 'a' (50)"),
        ([("blank behind", "a ")], "look_alike_labels", "'a ' (1)"),
        ([("lonely", "c")], "tiny_class", "'c' has 1 rows (1 train"),
        ([("x" * 100_001, "a")], "huge_text", "t.csv:101 (100,001 characters)"),
        ([("many words in this one text", "a")], "truncated", "1 texts (1.0%)"),
        ([(f"more {n}", "a") for n in range(900)], "lopsided", "95.0%"),
    ],
)
def test_each_trouble_is_found_and_has_a_fix(
    write_csv: Writer, tmp_path: Path, extra: list[tuple[str, str]], kind: str, told: str
) -> None:
    write_csv([*plain_rows(), *extra])
    found = [finding for finding in audited(tmp_path).findings if finding.kind == kind]
    assert len(found) == 1
    assert told in found[0].message
    assert found[0].fix


def test_what_cannot_be_trained_on_is_an_error_finding(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([(f"text {n}", "only") for n in range(60)])
    errors = [finding for finding in audited(tmp_path).findings if finding.level == "error"]
    assert [finding.kind for finding in errors] == ["one_class"]
    write_csv([(f"text {n}", str(n / 7)) for n in range(60)])
    assert "class_per_row" in kinds(audited(tmp_path))
    write_csv([("", "a"), ("", "b")])
    assert {"one_class", "empty_side"} <= kinds(audited(tmp_path))


def test_a_class_of_the_test_alone_is_found(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(plain_rows())
    write_csv([("new", "a"), ("other", "zebra"), ("text number 3", "b")], "test.csv")
    result = audited(tmp_path, test="test.csv")
    assert any("'zebra' has no training rows" in finding.message for finding in result.findings)
    assert {"leakage", "empty_class"} <= kinds(result)
    assert result.leakage.count == 1


def test_a_column_of_numbers_is_found(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([(str(n / 8), "ab"[n % 2]) for n in range(100)])
    assert "numbers" in kinds(audited(tmp_path))


def test_what_was_guessed_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n".join(["text;label", *(f"{t};{c}" for t, c in plain_rows())]))
    found = [finding for finding in audited(tmp_path).findings if finding.kind == "guessed"]
    assert len(found) == 1
    assert "';'" in found[0].message


def test_the_table_is_plain_json(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([*plain_rows(), ("", "a"), ("sp\u200bam", "a"), ("text number 1", "b")])
    table = json.loads(json.dumps(audited(tmp_path).as_json(), allow_nan=False))
    assert table["missing_text"] == {"count": 1, "rows": ["t.csv:101"]}
    assert table["cleaned"]["characters_removed"] == 1
    assert table["classes"]["a"]["rows"] == 51
