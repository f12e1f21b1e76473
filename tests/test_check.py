import hashlib
import json

import numpy as np
import pytest
import torch

from tests.conftest import write_toy_project
from textmill.check import check
from textmill.encode.source import find_source
from textmill.project import load_project


def kinds(found):
    return {finding.kind for finding in found.findings}


def test_a_sound_project_has_no_findings_and_its_numbers_are_told(tmp_path):
    found = check(load_project(write_toy_project(tmp_path)))
    assert found.findings == ()
    assert found.preflight is not None
    table = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert table["preflight"]["numbers"]["batch_loss_last"] < 0.3
    assert table["languages"]["scripts"]["Latin"]["share"] == 1.0
    assert table["unknown"]["token_share"] == 0.0
    titles = [shown.title for shown in found.as_tables()]
    assert titles[:3] == ["Rows", "Classes", "Length in tokens"]


def test_what_is_wrong_with_the_model_stands_among_the_findings(tmp_path):
    project = load_project(write_toy_project(tmp_path, 120), ["train.lr=0.3"])
    assert {"lr_high", "lr_too_large"} <= kinds(check(project))
    assert check(project, preflight=False).preflight is None


def test_nothing_is_written_and_no_random_state_is_touched(tmp_path):
    project = load_project(write_toy_project(tmp_path, 120))
    tokenizer = find_source(project.config.model.backbone, with_weights=False) / "tokenizer.json"

    def state():
        files = {
            path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in tmp_path.rglob("*")
            if path.is_file() and "cache" not in path.parts
        }
        numbers = hashlib.sha256(str(np.random.get_state()).encode()).hexdigest()
        return (
            files,
            hashlib.sha256(tokenizer.read_bytes()).hexdigest(),
            numbers,
            torch.get_rng_state().tolist(),
        )

    before = state()
    check(project)
    assert state() == before


def test_without_the_tokenizer_everything_about_the_data_is_told(tmp_path):
    path = write_toy_project(tmp_path, 120)
    with open(tmp_path / "reviews.csv", "a", encoding="utf-8") as file:
        file.write('"",class0\n')
    found = check(load_project(path, ["model.backbone=nobody/nothing-at-all", "model.architecture.layers=2"]))
    assert found.audit.lengths is None
    assert found.audit.unknown is None
    assert found.preflight is None
    assert {"no_tokenizer", "missing_text"} <= kinds(found)
    assert found.audit.classes["class0"].rows == 60
    note = next(finding for finding in found.findings if finding.kind == "no_tokenizer")
    assert "no lengths in tokens" in note.message
    assert "nobody/nothing-at-all" in note.message


def test_large_or_absent_weights_are_loaded_only_when_asked_for(tmp_path):
    path = write_toy_project(tmp_path, 120)
    text = path.read_text().splitlines()
    path.write_text("\n".join(line for line in text if not line.startswith("architecture")))
    folder = tmp_path / "backbone"
    folder.mkdir()
    source = find_source(load_project(path).config.model.backbone, with_weights=False)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    project = load_project(path, [f"model.backbone={folder}"])
    found = check(project)
    assert found.preflight is None
    assert [note.message for note in found.notes] == [
        "no preflight: the backbone's weights are not on this machine"
    ]
    asked = check(project, preflight=True)
    assert {finding.kind for finding in asked.findings if finding.level == "error"} == {"backbone"}
    with open(folder / "model.safetensors", "wb") as file:
        file.truncate(1_300_000_000)  # a hole: takes no room
    assert "1,300 MB" in check(project).notes[0].message


def test_data_of_one_class_is_looked_at_without_a_model(tmp_path):
    path = write_toy_project(tmp_path, 60)
    text = (tmp_path / "reviews.csv").read_text().replace("class1", "class0")
    (tmp_path / "reviews.csv").write_text(text)
    found = check(load_project(path))
    assert {"one_class", "no_preflight"} <= kinds(found)
    assert found.preflight is None


def test_a_class_of_one_row_and_of_two_is_named(tmp_path):
    path = write_toy_project(tmp_path, 200)
    with open(tmp_path / "reviews.csv", "a", encoding="utf-8") as file:
        file.write("one of c,c\none of d,d\ntwo of d,d\n")
    found = check(load_project(path), preflight=False)
    told = " ".join(
        finding.message for finding in found.findings if finding.kind in ("tiny_class", "empty_class")
    )
    assert "'c' has 1 rows" in told
    assert "'d' has 2 rows" in told


@pytest.mark.slow
def test_the_report_of_a_run_shows_the_audit(tmp_path):
    from textmill.pipeline import train_run

    path = write_toy_project(tmp_path, 200)
    lines = (tmp_path / "reviews.csv").read_text().splitlines()
    long = "the film was great and lovely and wonderful and all of the people in the house said so"
    with open(tmp_path / "reviews.csv", "a", encoding="utf-8") as file:
        file.write(f"{long},class1\n{long} today,class0\n")
    assert len(lines) == 201
    run = train_run(load_project(path, ["train.epochs=1"]))
    report = json.loads((run.folder / "report.json").read_text())
    assert report["data"]["audit"]["near"]["repeats"]["count"] == 1
    page = (run.folder / "report.html").read_text()
    assert "Near-duplicates" in page
    assert "What the texts are like" in page
