"""Each fault of the user's making gives one clear message and exit code 2, and loses nothing."""

import shutil
import socket

import pytest

from tests.conftest import write_toy_project
from tests.toy import toy_examples
from textmill.cli import main

ROWS = [(example.text, example.labels[0]) for example in toy_examples(60)]


def csv_of(rows, header="text,label"):
    return "\n".join([header, *(f"{text},{label}" for text, label in rows)]) + "\n"


def with_file(content, name="reviews.csv"):
    def spoil(folder):
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)

    return spoil


def with_settings(*settings):
    def spoil(folder):
        return [part for setting in settings for part in ("--set", setting)]

    return spoil


def in_jsonl(folder):
    (folder / "numbers.jsonl").write_text("\n".join(f'{{"text": {n}, "label": "a"}}' for n in range(20)))
    return ["--set", "data.train=numbers.jsonl"]


def nothing(folder):
    (folder / "reviews.csv").unlink()


TABLE = {
    # what is wrong: (how it is spoilt, parts of the message)
    "missing file": (nothing, ["reviews.csv"]),
    "missing text column": (with_settings("data.text=txet"), ["txet", "Did you mean 'text'"]),
    "missing label column": (with_settings("data.label=lable"), ["lable", "Did you mean 'label'"]),
    "one class": (with_file(csv_of([(text, "a") for text, _ in ROWS])), ["two classes"]),
    "no rows": (with_file("text,label\n"), ["row"]),
    "an empty file": (with_file(""), ["reviews.csv"]),
    "all texts empty": (with_file(csv_of([("", label) for _, label in ROWS])), ["row"]),
    "ids as labels": (with_file(csv_of([(text, n) for n, (text, _) in enumerate(ROWS)])), ["data.label"]),
    "numbers as texts": (in_jsonl, ["numbers.jsonl:1", "data.text"]),
    "a row with a column too many": (with_file(csv_of(ROWS) + "a,b,c\n"), ["reviews.csv", "61"]),
    "an encoding that is not": (with_settings("data.encoding=utf-9"), ["utf-9"]),
    "bytes that are no text": (with_file(bytes(range(256)) * 40), ["reviews.csv"]),
    "a backbone that is not there": (with_settings("model.backbone=package:nowhere/model"), ["nowhere"]),
    "a folder that is no backbone": (with_settings("model.backbone=./empty"), ["empty"]),
    "an unknown key": (with_settings("train.epoch=3"), ["epoch", "Did you mean 'epochs'"]),
    "a value out of range": (with_settings("train.lr=-1"), ["train.lr", "-1"]),
    "an unknown strategy": (with_settings("order.strategy=sorted"), ["order.strategy", "sorted"]),
    "a folder in place of the data": (with_settings("data.train=empty"), ["empty"]),
    "an unknown kind of file": (with_settings("data.train=project.toml"), [".csv"]),
}


@pytest.fixture
def call(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments)])
        return ended.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize("name", TABLE)
def test_a_fault_gives_one_clear_message_and_exit_code_2(name, tmp_path, call):
    spoil, parts = TABLE[name]
    path = write_toy_project(tmp_path, num_rows=60)
    (tmp_path / "empty").mkdir()
    settings = spoil(tmp_path) or []
    code, err = call("train", path, *settings)
    lines = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert code == 2, err
    assert len(lines) == 1, err
    assert "Traceback" not in err
    for part in parts:
        assert part in lines[0], lines[0]
    assert ", but got " in lines[0], "the rule and the value"


def test_texts_that_are_missing_empty_or_huge_train_and_are_counted(tmp_path, call):
    path = write_toy_project(tmp_path, num_rows=0)
    rows = [*ROWS, ("", "class0"), ("NaN", "class0"), ("word " * 200_000, "class1"), ("x", "")]
    (tmp_path / "reviews.csv").write_text(csv_of(rows))
    code, err = call("train", path, "--set", "train.epochs=1")
    assert code == 0, err
    assert "1 row" in err


def test_a_failed_run_leaves_earlier_runs_and_the_store_alone(tmp_path, call, toy_run):
    project, outcome = toy_run
    shutil.copytree(project.folder, tmp_path / "p")
    before = sorted(path.relative_to(tmp_path) for path in (tmp_path / "p" / "store").rglob("*"))
    code, _ = call("run", tmp_path / "p", "--set", "data.label=nothing")
    assert code == 2
    after = sorted(path.relative_to(tmp_path) for path in (tmp_path / "p" / "store").rglob("*"))
    assert before == after
    assert (tmp_path / "p" / "runs" / "toy" / outcome.run.folder.name / "report.json").exists()


@pytest.mark.parametrize("damage", ["cut", "missing", "extra"])
def test_a_damaged_bundle_is_refused_by_name(tmp_path, call, toy_run, damage):
    project, _ = toy_run
    shutil.copytree(project.folder, tmp_path / "p")
    bundle = tmp_path / "p" / "store" / "toy" / "versions" / "1"
    bundle.chmod(0o755)
    graph = bundle / "model.onnx"
    graph.chmod(0o644)
    if damage == "cut":
        graph.write_bytes(graph.read_bytes()[:1000])
    elif damage == "missing":
        graph.unlink()
    else:
        (bundle / "model.onnx.bak").write_text("x")
    code, err = call("predict", "-p", tmp_path / "p", "a text")
    assert code == 2, err
    assert "model.onnx" in err


def test_a_port_in_use_is_named_before_anything_starts(tmp_path, call, toy_run):
    project, _ = toy_run
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, err = call("serve", project.folder, "--set", f"serve.port={port}")
    assert code == 2
    assert str(port) in err
    assert "serve.port" in err


def test_a_server_that_is_not_there_is_a_clear_error(tmp_path, call, toy_run):
    project, _ = toy_run
    (tmp_path / "texts.txt").write_text("a text\n")
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
    code, err = call("server", "load", tmp_path / "texts.txt", "-p", project.folder, "--url", url)
    assert code == 2, err
    assert url.rsplit(":", 1)[1] in err
