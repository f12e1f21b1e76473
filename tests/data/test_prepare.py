from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.data.conftest import Listener
from textmill.core.errors import DataError
from textmill.core.types import Example
from textmill.data.config import CleanConfig, DataConfig
from textmill.data.fingerprint import what_differs
from textmill.data.prepare import Splits, prepare, subsample, survey

Writer = Callable[..., Path]


def fill(rows: list[tuple[str, str]], num: int = 40) -> list[tuple[str, str]]:
    """Repeat rows with a running number in the text until each class has `num` rows."""
    result = list(rows)
    for label in dict.fromkeys(label for _, label in rows):
        own = [text for text, name in rows if name == label]
        result += [(f"{own[n % len(own)]} {n}", label) for n in range(num - len(own))]
    return result


def everything(splits: Splits) -> list[Example]:
    return [*splits.train, *splits.valid, *splits.test]


def test_words_for_missing_are_classes_and_texts(
    write_csv: Writer, tmp_path: Path, listener: Listener
) -> None:
    rows = [
        ("from Windhoek", "NA"),
        ("plain tea", "None"),
        ("null", "null"),
        ("NaN is a bread here", "nan"),
        ("n/a", "ok"),
    ]
    write_csv([*fill(rows), ("no label here", "")])
    splits = prepare(DataConfig(train="t.csv"), tmp_path, listener)
    assert splits.labels == ("NA", "None", "nan", "null", "ok")
    assert {"null", "n/a"} <= {example.text for example in everything(splits)}
    missing = splits.report.sources["train"].missing_label
    assert (missing.count, missing.rows) == (1, ("t.csv:201",))
    assert any("1 rows without label" in line and "t.csv:201" in line for line in listener.said)


def test_labels_that_differ_by_blanks_are_merged_and_said(
    write_csv: Writer, tmp_path: Path, listener: Listener
) -> None:
    odd = [(f"odd {label!r} {n}", label) for label in ("spam ", "Spam", "spam\u00a0") for n in range(3)]
    write_csv([*fill([("buy now", "spam"), ("hello", "ham")]), *odd])
    splits = prepare(DataConfig(train="t.csv"), tmp_path, listener)
    assert splits.labels == ("Spam", "ham", "spam")
    assert splits.report.labels.look_alikes == [{"Spam": 3, "spam": 40, "spam ": 3, "spam\u00a0": 3}]
    assert any(repr("spam\u00a0") in line for line in listener.said)


def test_the_first_of_equal_rows_is_kept(write_csv: Writer, tmp_path: Path) -> None:
    rows = fill([("good", "a"), ("bad", "b")])
    write_csv([*rows, ("good", "a"), (" good  ", "a")])
    splits = prepare(DataConfig(train="t.csv"), tmp_path)
    assert splits.report.sources["train"].duplicates.count == 2
    assert [e.id for e in everything(splits) if e.text == "good"] == ["t.csv:1"]


@pytest.mark.parametrize(("policy", "left"), [("drop", 0), ("keep", 2)])
def test_a_text_with_two_labels_follows_the_policy(
    write_csv: Writer, tmp_path: Path, policy: str, left: int
) -> None:
    write_csv([*fill([("good", "a"), ("bad", "b")]), ("torn", "a"), ("torn", "b")])
    splits = prepare(DataConfig(train="t.csv", on_conflict=policy), tmp_path)  # type: ignore[arg-type]
    assert sum(example.text == "torn" for example in everything(splits)) == left
    assert splits.report.sources["train"].conflicts.rows == ("t.csv:81", "t.csv:82")


def test_a_conflict_may_stop_everything(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([*fill([("good", "a"), ("bad", "b")]), ("torn", "a"), ("torn", "b")])
    with pytest.raises(DataError, match=r"torn.*t\.csv:81.*t\.csv:82.*on_conflict"):
        prepare(DataConfig(train="t.csv", on_conflict="fail"), tmp_path)


def test_every_row_is_accounted_for(write_csv: Writer, tmp_path: Path) -> None:
    rows = [*fill([("good", "a"), ("bad", "b")]), ("", "a"), ("x", ""), ("good", "a"), ("t", "a"), ("t", "b")]
    write_csv(rows)
    report = prepare(DataConfig(train="t.csv"), tmp_path).report
    source = report.sources["train"]
    gone = (source.missing_text, source.missing_label, source.duplicates, source.conflicts)
    kept = sum(sum(counts.values()) for counts in report.sides.values())
    assert kept + sum(left.count for left in gone) == source.rows == len(rows)
    json.dumps(report.as_json(), allow_nan=False)


def test_leaking_rows_leave_training_and_are_said(
    write_csv: Writer, tmp_path: Path, listener: Listener
) -> None:
    rows = fill([("good", "a"), ("bad", "b")])
    write_csv(rows)
    write_csv([("good 3", "a"), ("new", "b"), ("bad 4", "a")], "test.csv")
    splits = prepare(DataConfig(train="t.csv", test="test.csv"), tmp_path, listener)
    train = {example.text for example in splits.train} | {example.text for example in splits.valid}
    assert not train & {"good 3", "bad 4"}
    assert len(splits.test) == 3
    assert sum(left.count for left in splits.report.leakage.values()) == 2
    assert any("their text is also in" in line for line in listener.said)


def test_a_class_with_one_row_trains(write_csv: Writer, tmp_path: Path) -> None:
    rows = [(f"a {n}", "a") for n in range(200)] + [(f"b {n}", "b") for n in range(200)]
    write_csv([*rows, ("c 1", "c"), ("d 1", "d"), ("d 2", "d")])
    sides = prepare(DataConfig(train="t.csv"), tmp_path).report.sides
    assert all(sides["train"][label] >= 1 for label in "abcd")
    assert sum(side["c"] for side in sides.values()) == 1
    assert sum(side["d"] for side in sides.values()) == 2


def test_one_class_is_refused_but_can_be_surveyed(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([(f"text {n}", "only") for n in range(50)])
    with pytest.raises(DataError, match=r"at least two classes.*'only'"):
        prepare(DataConfig(train="t.csv"), tmp_path)
    assert survey(DataConfig(train="t.csv"), tmp_path).labels == ("only",)


def test_a_class_of_the_test_alone_is_refused(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(fill([("good", "a"), ("bad", "b")]))
    write_csv([("x", "a"), ("y", "zebra")], "test.csv")
    with pytest.raises(DataError, match="'zebra'"):
        prepare(DataConfig(train="t.csv", test="test.csv"), tmp_path)


def test_a_label_column_of_ids_is_refused(write_csv: Writer, tmp_path: Path) -> None:
    write_csv([(f"text {n}", f"{n / 7:.3f}") for n in range(100)])
    with pytest.raises(DataError, match="100 classes in 100 rows"):
        prepare(DataConfig(train="t.csv"), tmp_path)


def test_user_ids_are_kept_and_must_be_unique(tmp_path: Path) -> None:
    lines = [f"k{n},text {n},{'ab'[n % 2]}" for n in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["key,text,label", *lines]))
    splits = prepare(DataConfig(train="t.csv", id="key"), tmp_path)
    assert {example.id for example in everything(splits)} == {f"k{n}" for n in range(60)}
    (tmp_path / "t.csv").write_text("\n".join(["key,text,label", *lines, "k7,again,a"]))
    with pytest.raises(DataError, match=r"'k7' twice, in t\.csv:8 and t\.csv:61"):
        prepare(DataConfig(train="t.csv", id="key"), tmp_path)


def test_equal_file_names_give_different_ids(write_csv: Writer, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    write_csv(fill([("good", "a"), ("bad", "b")]))
    write_csv([("x", "a"), ("y", "b")], "more/t.csv")
    splits = prepare(DataConfig(train="t.csv", test="more/t.csv"), tmp_path)
    assert [example.id for example in splits.test] == ["test/t.csv:1", "test/t.csv:2"]


def test_the_same_files_give_the_same_fingerprint(write_csv: Writer, tmp_path: Path) -> None:
    rows = fill([("good", "a"), ("bad", "b")])
    write_csv(rows)
    config = DataConfig(train="t.csv")
    first = prepare(config, tmp_path)
    assert prepare(config, tmp_path).fingerprint == first.fingerprint
    write_csv([*rows, ("one more", "a")])
    assert prepare(config, tmp_path).fingerprint != first.fingerprint


def test_cleaning_is_switched_by_the_project(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(fill([("a &amp; b", "a"), ("bad", "b")]))
    config = DataConfig(train="t.csv", clean=CleanConfig(entities=False))
    assert any("&amp;" in str(example.text) for example in everything(prepare(config, tmp_path)))


def test_a_smaller_share_is_a_subset_and_keeps_classes() -> None:
    examples = [Example(str(n), f"text {n}", ("rare" if n % 50 == 0 else "often",)) for n in range(1_000)]
    small, large = subsample(examples, 0.1, 3), subsample(examples, 0.4, 3)
    assert {e.id for e in small} < {e.id for e in large}
    assert [sum(e.labels == ("rare",) for e in part) for part in (small, large)] == [2, 8]
    assert [e.id for e in small] == sorted((e.id for e in small), key=int)
    assert {e.id for e in subsample(examples, 0.1, 4)} != {e.id for e in small}
    assert len(subsample(examples, 0.0001, 3)) == 2
    assert subsample(examples, 1.0, 3) == examples


def test_own_ids_may_begin_again_in_the_test_file(tmp_path: Path) -> None:
    lines = [f"{n},text {n},{'ab'[n % 2]}" for n in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["key,text,label", *lines]))
    (tmp_path / "test.csv").write_text("key,text,label\n0,new,a\n1,other,b\n")
    splits = prepare(DataConfig(train="t.csv", test="test.csv", id="key"), tmp_path)
    assert [example.id for example in splits.test] == ["0", "1"]


def test_a_row_without_an_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,text,label\n0,new,a\n,other,b\n")
    with pytest.raises(DataError, match=r"none in t\.csv:2"):
        prepare(DataConfig(train="t.csv", id="key"), tmp_path)


def test_numbers_where_text_belongs_are_refused_with_their_row(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": 0}\n{"text": 1.5, "label": 1}\n')
    with pytest.raises(DataError, match=r"must hold text.*a number, 1\.5, in t\.jsonl:2.*label, text"):
        prepare(DataConfig(train="t.jsonl"), tmp_path)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ((0, 1), ("0", "1")),
        ((0.0, 1.0), ("0", "1")),
        ((True, False), ("false", "true")),
        (("x", 1), ("1", "x")),
    ],
)
def test_labels_may_be_whole_numbers(
    tmp_path: Path, values: tuple[object, object], names: tuple[str, str]
) -> None:
    rows = [json.dumps({"text": f"text {n}", "label": values[n % 2]}) for n in range(60)]
    rows += ['{"text": "no label", "label": null}', '{"text": "nor here", "label": NaN}']
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    splits = prepare(DataConfig(train="t.jsonl"), tmp_path)
    assert splits.labels == names
    assert splits.report.sources["train"].missing_label.rows == ("t.jsonl:61", "t.jsonl:62")


@pytest.mark.parametrize("value", [0.25, ["a", "b"], {"a": 1}])
def test_labels_that_are_no_class_are_refused(tmp_path: Path, value: object) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": "a", "label": value}))
    with pytest.raises(DataError, match=r"in t\.jsonl:1"):
        prepare(DataConfig(train="t.jsonl"), tmp_path)


def test_shares_that_leave_nothing_to_train_are_refused() -> None:
    with pytest.raises(ValidationError, match="below 1"):
        DataConfig(train="t.csv", valid_share=0.5, test_share=0.5)
    assert DataConfig(train="t.csv", valid="v.csv", valid_share=0.5, test_share=0.5).test is None


def test_the_training_file_given_as_test_is_refused(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(fill([("good", "a"), ("bad", "b")]))
    with pytest.raises(DataError, match=r"training rows|also in valid or test"):
        prepare(DataConfig(train="t.csv", test="t.csv"), tmp_path)


def test_what_changed_in_the_file_can_be_told(write_csv: Writer, tmp_path: Path) -> None:
    rows = fill([("good", "a"), ("bad", "b")], 100)
    write_csv(rows)
    before = prepare(DataConfig(train="t.csv"), tmp_path)
    changes = {
        "(-": rows[:-60],
        "(+": [*rows, *((f"new {n}", "a") for n in range(50))],
        "in another order": rows[::-1],
    }
    for told, changed in changes.items():
        write_csv(changed)
        now = prepare(DataConfig(train="t.csv"), tmp_path)
        assert now.fingerprint != before.fingerprint
        lines = what_differs(before.report.fingerprints, now.report.fingerprints)
        assert any(told in line or "under other ids" in line for line in lines), told


def test_chinese_reviews_go_the_whole_way(tmp_path: Path) -> None:
    lines = [f"第{n}部电影很好看，值得一看。\t好评\n第{n}部电影太难看了！\t差评" for n in range(60)]
    (tmp_path / "t.tsv").write_bytes("\n".join(["text\tlabel", *lines]).encode("gb18030"))
    splits = prepare(DataConfig(train="t.tsv"), tmp_path)
    assert splits.labels == ("好评", "差评")
    assert len(everything(splits)) == 120


def test_half_an_emoji_in_a_label_or_an_id_becomes_a_character_that_files_can_hold(tmp_path: Path) -> None:
    rows = [{"text": f"text {n}", "label": "ab"[n % 2] + "\ud83d", "key": f"{n}\ud83d"} for n in range(60)]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    splits = prepare(DataConfig(train="t.jsonl", id="key"), tmp_path)
    assert splits.labels == ("a\ufffd", "b\ufffd")
    assert {example.id for example in everything(splits)} == {f"{n}\ufffd" for n in range(60)}
    json.dumps(splits.report.as_json(), ensure_ascii=False).encode()


def test_one_file_as_training_and_validation_is_told_as_such(tmp_path: Path, write_csv: Writer) -> None:
    write_csv(fill([("good", "a"), ("bad", "b")]))
    with pytest.raises(DataError, match=r"none for train.*also in valid or test"):
        prepare(DataConfig(train="t.csv", valid="t.csv"), tmp_path)
