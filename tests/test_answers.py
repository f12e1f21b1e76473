import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.conftest import write_toy_project
from tests.toy import toy_examples
from textmill.answers import evaluate_model, find_model, predict_texts
from textmill.core.errors import DataError, StoreError, UserError
from textmill.data.read import read_rows
from textmill.pipeline import check, train_run
from textmill.project import load_project

ROWS = sorted(toy_examples(50, seed=3), key=lambda example: -len(example.text))


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "number"], *rows])


@pytest.fixture
def source(tmp_path):
    """Rows from long to short, five of them twice, one without text."""
    rows = [[example.text, place] for place, example in enumerate(ROWS)]
    rows[7][0] = ""
    write_csv(tmp_path / "in.csv", [*rows, *rows[:5]])
    return str(tmp_path / "in.csv")


def test_a_file_is_answered_in_its_order_with_its_ids(toy_run, source, tmp_path):
    project, _ = toy_run
    named = project.with_values(data={"id": "number"})
    answers = predict_texts(named, source=source, output=tmp_path / "out.csv")
    assert answers.ids == (*map(str, range(50)), *map(str, range(5)))
    assert answers.chosen[7] is None
    assert answers.chosen[:5] == answers.chosen[50:]
    with open(tmp_path / "out.csv", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == list(answers.ids)
    assert written[7] == {"id": "7", "label": "", "score:class0": "", "score:class1": ""}


def test_a_text_alone_gets_the_answer_it_has_in_a_file(toy_run, source):
    project, _ = toy_run
    together = predict_texts(project, source=source)
    for place in (0, 20, 49):
        alone = predict_texts(project, [ROWS[place].text])
        assert np.allclose(alone.scores[0], together.scores[place], atol=1e-4)


def test_all_kinds_of_output_hold_the_same(toy_run, source, tmp_path):
    project, _ = toy_run
    for ending in ("csv", "jsonl", "parquet"):
        predict_texts(project, source=source, output=tmp_path / f"out.{ending}")
    with open(tmp_path / "out.csv", encoding="utf-8") as file:
        from_csv = [row["label"] or None for row in csv.DictReader(file)]
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    from_jsonl = [json.loads(line)["label"] for line in lines]
    assert from_csv == from_jsonl == pq.read_table(tmp_path / "out.parquet")["label"].to_pylist()


def test_a_run_and_its_version_answer_alike(toy_run):
    project, outcome = toy_run
    texts = [example.text for example in ROWS[:10]]
    by_run = predict_texts(project, texts, run_folder=outcome.run.folder)
    by_version = predict_texts(project, texts, version=1)
    assert by_run.model != by_version.model
    assert np.allclose(np.array(by_run.scores), np.array(by_version.scores), atol=1e-4)


def test_evaluating_again_gives_the_figures_of_the_run(toy_run):
    project, outcome = toy_run
    assert evaluate_model(project).metrics.accuracy == outcome.run.evaluation.metrics.accuracy


def test_a_labelled_file_is_measured_whole(toy_run, tmp_path):
    project, _ = toy_run
    rows = [[example.text, example.labels[0]] for example in toy_examples(30, seed=9)]
    with open(tmp_path / "more.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *rows])
    found = evaluate_model(project, data=str(tmp_path / "more.csv"))
    assert found.metrics.rows == 30
    assert found.as_lines()


def test_no_model_is_a_clear_error(toy_run, tmp_path):
    project, _ = toy_run
    empty = project.with_values(store=str(tmp_path / "s"), runs=str(tmp_path / "r"))
    with pytest.raises(StoreError, match="textmill run"):
        find_model(empty)


@pytest.mark.parametrize("given", [{}, {"texts": ["a"], "source": "b.csv"}])
def test_either_texts_or_a_file_are_needed(toy_run, given):
    with pytest.raises(DataError, match="either"):
        predict_texts(toy_run[0], **given)


def test_an_unknown_kind_of_output_is_refused_before_any_work(toy_run, tmp_path):
    with pytest.raises(UserError, match=r"\.parquet"):
        predict_texts(toy_run[0], ["a"], output=tmp_path / "out.xlsx")


def test_the_input_is_never_overwritten_by_the_output(toy_run, source):
    before = Path(source).read_bytes()
    with pytest.raises(DataError, match="another file than the input"):
        predict_texts(toy_run[0], source=source, output=Path(source))
    assert Path(source).read_bytes() == before


def test_classes_named_like_missing_values_are_written_by_their_names(tmp_path):
    kinds = {"NA": "from Windhoek", "None": "plain tea", "null": "null", "nan": "NaN is bread", "ok": "n/a"}
    rows = [[f"{text} {n}" if n else text, label] for label, text in kinds.items() for n in range(40)]
    path = write_toy_project(tmp_path, num_rows=0)
    with open(tmp_path / "reviews.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *rows, ["no label here", ""]])
    project = load_project(path)
    found = check(project).as_json()
    assert set(found["classes"]) == set(kinds)
    assert found["missing_label"]["rows"] == ("reviews.csv:201",)
    train_run(project)
    for ending in ("csv", "jsonl", "parquet"):
        predict_texts(project, source=str(tmp_path / "reviews.csv"), output=tmp_path / f"out.{ending}")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        from_csv = [row["label"] for row in csv.DictReader(file)]
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert from_csv == [json.loads(line)["label"] for line in lines]
    assert from_csv == pq.read_table(tmp_path / "out.parquet")["label"].to_pylist()
    right = [label == truth for label, (_, truth) in zip(from_csv, rows, strict=False)]
    assert sum(right) > 0.95 * len(rows)


def test_any_id_is_read_back_as_it_was(toy_run, tmp_path):
    ids = ["a\rb", 'q"u,o\nte', "😀\t", "=1+1", " ", "", "NA"]
    rows = [json.dumps({"key": key, "text": f"中文 great {key}"}) for key in ids]
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    named = toy_run[0].with_values(data={"id": "key"})
    for ending in ("csv", "parquet"):
        output = tmp_path / f"out.{ending}"
        predict_texts(named, source=str(tmp_path / "in.jsonl"), output=output)
        assert read_rows(output.name, tmp_path).columns["id"] == ids
