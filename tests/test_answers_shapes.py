"""`predict` for every shape, and that it says what a server says."""

from __future__ import annotations

import csv
import json
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.conftest import write_toy_project
from tests.serve.clients import predict
from tests.shapes import SHAPES
from textmill.answers import evaluate_model, find_model, predict_texts
from textmill.core.errors import DataError
from textmill.data.load import load_labelled
from textmill.project import load_project
from textmill.serve.server import start_server
from textmill.store.registry import Store


@pytest.fixture(scope="session")
def project_of(tmp_path_factory):
    """Give a project with one live version of a shape; each made once."""

    @cache
    def make(name):
        folder = tmp_path_factory.mktemp("answers")
        facts = SHAPES[name].prepare(folder / "source")
        project = load_project(write_toy_project(folder, num_rows=0))
        task = SHAPES[name].task
        pair = {"text_pair": "second"} if task == "pairs" else {}
        project = project.with_values(task=task, data={"id": "key", **pair})
        store = Store(project.store_root, project.config.name)
        store.set_live(store.publish(folder / "source", facts), "for a test")
        return project

    return make


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def test_sets_of_labels_are_written_so_that_they_can_be_read_as_data(project_of, tmp_path):
    project = project_of("multilabel")
    texts = SHAPES["multilabel"].odd_texts
    rows = [{"key": f"k{place}", "text": text} for place, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = str(tmp_path / "in.jsonl")
    for ending in ("csv", "jsonl", "parquet"):
        answers = predict_texts(project, source=source, output=tmp_path / f"out.{ending}")
    sets = [list(labels) for labels in answers.chosen]
    assert len(set(map(tuple, sets))) > 2
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["labels"] for row in written] == [",".join(labels) for labels in sets]
    assert [row["id"] for row in written] == [row["key"] for row in rows]
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["labels"] for line in lines] == sets
    assert pq.read_table(tmp_path / "out.parquet")["labels"].to_pylist() == sets
    columns = project.config.data.model_copy(update={"text": "id", "label": "labels", "id": None})
    for ending in ("csv", "jsonl", "parquet"):
        examples = load_labelled(f"out.{ending}", columns, tmp_path, task="multilabel")
        assert [list(example.labels) for example in examples] == sets


def test_a_separator_that_stands_in_a_name_is_not_used(project_of, tmp_path):
    project = project_of("multilabel").with_values(data={"label_separator": "ss"})
    source = write_csv(tmp_path / "in.csv", [["key", "text"], ["1", "a great film"], ["2", "x"]])
    predict_texts(project, source=source, output=tmp_path / "out.csv")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        assert all(isinstance(json.loads(row["labels"]), list) for row in csv.DictReader(file))


def test_pairs_come_from_two_columns_and_a_missing_one_keeps_its_place(project_of, tmp_path):
    project = project_of("pairs")
    table = [
        ["key", "text", "second"],
        ["9", "a film", "a story"],
        ["8", "alone", ""],
        ["9", "a film", "a story"],
    ]
    answers = predict_texts(project, source=write_csv(tmp_path / "in.csv", table))
    assert answers.ids == ("9", "8", "9")
    assert answers.chosen[1] is None
    assert answers.scores[0] == pytest.approx(answers.scores[2], abs=1e-4)
    alone = predict_texts(project, ["a film", "a story"])
    assert alone.scores[0] == pytest.approx(answers.scores[0], abs=1e-4)
    assert alone.as_lines()[0].endswith("a film | a story")
    with pytest.raises(DataError, match="two texts for each answer"):
        predict_texts(project, ["a film"])
    with pytest.raises(DataError, match="'second'"):
        predict_texts(project, source=write_csv(tmp_path / "one.csv", [["key", "text"], ["1", "a"]]))


def test_what_a_model_reads_is_its_own_and_not_the_projects(project_of, tmp_path):
    source = write_csv(tmp_path / "in.csv", [["key", "text", "second"], ["1", "a film", "a story"]])
    single = project_of("single").with_values(task="pairs", data={"text_pair": "second"})
    assert (
        predict_texts(single, source=source).scores
        == predict_texts(project_of("single"), source=source).scores
    )
    pairs = project_of("pairs")
    renamed = pairs.with_values(task="classification", data={"text_pair": None})
    with pytest.raises(DataError, match=r"no data\.text_pair"):
        predict_texts(renamed, source=source)
    assert predict_texts(renamed, ["a film", "a story"]).scores == predict_texts(pairs, source=source).scores
    with pytest.raises(DataError, match="rows of its own task"):
        evaluate_model(renamed, data=source)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single", "multilabel", "pairs", "windows"])
def test_predict_and_a_server_say_the_same_of_every_text_also_of_an_empty_one(project_of, tmp_path, name):
    project = project_of(name)
    texts = [*SHAPES[name].odd_texts]
    texts += [("", ""), (" ", "\u200b")] if name == "pairs" else [" ", "\u200b", "\n"]
    pairs = [text if isinstance(text, tuple) else (text, None) for text in texts]
    rows = [{"key": place, "text": first, "second": second} for place, (first, second) in enumerate(pairs)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = predict_texts(project, source=str(tmp_path / "in.jsonl"))
    assert None not in answers.scores
    given = [part for text in texts for part in (text if isinstance(text, tuple) else (text,))]
    np.testing.assert_allclose(predict_texts(project, given).scores, answers.scores, atol=1e-4)
    config = project.config.serve.model_copy(update={"threads": 1})
    with start_server(project.store_root, [project.config.name], config) as server:
        instances = [
            {"text": text[0], "text_pair": text[1]} if isinstance(text, tuple) else text for text in texts
        ]
        told = predict(server.url, instances, project.config.name).json["predictions"]
        missing = predict(server.url, [None], project.config.name)
    served = [list(row["scores"].values()) for row in told]
    np.testing.assert_allclose(served, answers.scores, atol=1e-4)
    chosen = [row["labels"] if answers.is_multilabel else [row["label"]] for row in told]
    assert chosen == [list(labels) for labels in answers.chosen]
    assert missing.status == 400


def test_only_a_missing_text_has_no_answer(project_of, tmp_path):
    project = project_of("single")
    (tmp_path / "in.jsonl").write_text(
        '{"key": 1, "text": ""}\n{"key": 2, "text": null}\n{"key": 3, "text": " "}\n'
    )
    answers = predict_texts(project, source=str(tmp_path / "in.jsonl"))
    assert [labels is None for labels in answers.chosen] == [False, True, False]
    cells = write_csv(tmp_path / "in.csv", [["key", "text"], ["1", ""], ["2", " "]])
    answers = predict_texts(project, source=cells)
    assert [labels is None for labels in answers.chosen] == [True, False]
    assert predict_texts(project, [""]).scores == answers.scores[1:]


def test_a_model_tells_its_task(project_of):
    for name in ("single", "multilabel", "pairs"):
        assert find_model(project_of(name)).task == SHAPES[name].task
