import json
import shutil

import pytest

from tests.conftest import write_toy_project
from textmill.answers import predict_texts
from textmill.core.errors import DataError, GateRefused, ProjectError, StoreError, TrainingGaveUp
from textmill.pipeline import check, promote_run, publish_run, run, train_run
from textmill.project import load_project
from textmill.run_folder import newest_unfinished
from textmill.store.registry import Store


def test_a_run_ends_with_a_live_version_that_has_learnt(toy_run):
    project, outcome = toy_run
    assert outcome.run.evaluation.metrics.accuracy > 0.9
    assert outcome.gate.verdict == "passed"
    assert Store(project.store_root, "toy").state().live == outcome.version == 1


def test_a_run_leaves_the_files_of_a_run(toy_run):
    _, outcome = toy_run
    names = {path.name for path in outcome.run.folder.iterdir()}
    assert {
        "project.toml",
        "events.jsonl",
        "checkpoints",
        "report.json",
        "report.html",
        "card.md",
        "predictions.parquet",
    } <= names
    assert not any(name.startswith(".bundle-") for name in names)


def test_a_bundle_says_what_it_was_made_from(toy_run):
    project, outcome = toy_run
    manifest = Store(project.store_root, "toy").bundle(1).manifest
    report = json.loads((outcome.run.folder / "report.json").read_text())
    assert manifest.data_fingerprint == report["data"]["fingerprint"]
    assert manifest.metrics["accuracy"] == outcome.run.evaluation.metrics.accuracy
    assert {"project.toml", "report.json", "card.md", "model.onnx", "golden.json"} <= set(manifest.files)


def test_the_outcome_is_plain_json(toy_run):
    _, outcome = toy_run
    facts = json.loads(json.dumps(outcome.as_json()))
    assert facts["version"] == 1
    assert facts["gate"]["verdict"] == "passed"
    assert outcome.as_lines()


def test_the_report_holds_the_findings_and_the_baseline(toy_run):
    _, outcome = toy_run
    report = json.loads((outcome.run.folder / "report.json").read_text())
    assert report["baseline"]["metrics"]["accuracy"] == outcome.run.baseline.metrics.accuracy
    assert "findings" in report["data"]


def test_a_run_can_be_published_after_its_data_has_gone(tmp_path):
    project = load_project(write_toy_project(tmp_path))
    trained = train_run(project)
    (tmp_path / "reviews.csv").unlink()
    assert publish_run(trained.folder) == 1


def test_a_worse_version_is_published_but_refused(tmp_path):
    path = write_toy_project(tmp_path)
    run(load_project(path))
    with pytest.raises(GateRefused):
        run(load_project(path, ["train.lr=1e-7", "train.epochs=1"]))
    store = Store(load_project(path).store_root, "toy")
    assert (store.versions(), store.state().live) == ([1, 2], 1)


def test_an_unfinished_run_is_not_published_but_resumed(tmp_path, toy_run):
    project = load_project(write_toy_project(tmp_path))
    _, done = toy_run
    trained = train_run(project)
    (trained.folder / "report.json").unlink()
    with pytest.raises(StoreError, match="resume"):
        publish_run(trained.folder)
    again = train_run(project, resume=True)
    assert again.folder == trained.folder
    assert again.evaluation.metrics == trained.evaluation.metrics
    assert done.run.evaluation.metrics == trained.evaluation.metrics, "same project, same numbers"


def test_more_epochs_let_a_finished_run_go_on(tmp_path):
    path = write_toy_project(tmp_path)
    first = train_run(load_project(path, ["train.epochs=1"]))
    again = train_run(load_project(path, ["train.epochs=2"]), resume=True)
    assert again.folder == first.folder
    assert again.training.new_steps == again.training.steps - first.training.steps > 0
    told = json.loads((again.folder / "report.json").read_text())
    assert told["project"]["train"]["epochs"] == 2
    with pytest.raises(ProjectError, match=r"raise train\.epochs"):
        train_run(load_project(path, ["train.epochs=2"]), resume=True)


def test_a_report_goes_when_its_run_goes_on(tmp_path):
    path = write_toy_project(tmp_path)
    first = train_run(load_project(path, ["train.epochs=1"]))
    with pytest.raises(ProjectError, match=r"train\.lr must not change"):
        train_run(load_project(path, ["train.epochs=2", "train.lr=0.5"]), resume=True)
    assert (first.folder / "report.json").exists(), "a resume that was refused changes nothing"
    project = load_project(path, ["train.epochs=2"])
    assert newest_unfinished(project) == first.folder
    (first.folder / "report.json").unlink()
    (first.folder / "training.json").unlink()
    again = train_run(project, resume=True)
    assert (again.folder, again.training.epochs) == (first.folder, 2)


def test_resuming_without_an_unfinished_run_is_refused(toy_run):
    project, _ = toy_run
    with pytest.raises(ProjectError, match="unfinished"):
        train_run(project, resume=True)


def test_check_looks_at_data_that_cannot_be_trained_on(tmp_path):
    path = write_toy_project(tmp_path, num_rows=40)
    text = (tmp_path / "reviews.csv").read_text().replace("class1", "class0")
    (tmp_path / "reviews.csv").write_text(text)
    found = check(load_project(path))
    assert found.audit.rows == 40
    assert any(finding.level == "error" for finding in found.findings)
    assert found.as_tables()


def test_a_damaged_version_is_never_promoted(tmp_path, toy_run):
    project, _ = toy_run
    copy = load_project(write_toy_project(tmp_path))
    shutil.copytree(project.store_root, copy.store_root)
    store = Store(copy.store_root, "toy")
    graph = store.bundle(1).path / "model.onnx"
    graph.chmod(0o644)
    content = bytearray(graph.read_bytes())
    content[100] ^= 1
    graph.write_bytes(content)
    with pytest.raises((GateRefused, StoreError), match=r"model\.onnx"):
        promote_run(copy, 1)


def test_data_that_cannot_be_used_leaves_no_run_behind(tmp_path):
    project = load_project(write_toy_project(tmp_path), ["data.label=nothing"])
    with pytest.raises(DataError):
        train_run(project)
    assert not project.runs.exists()


def test_what_a_killed_publisher_left_in_the_run_goes_with_the_next(tmp_path, toy_run):
    project, outcome = toy_run
    copy = shutil.copytree(outcome.run.folder, tmp_path / "run")
    toml = (copy / "project.toml").read_text().replace(str(project.store_root), str(tmp_path / "store"))
    (copy / "project.toml").write_text(toml)
    (copy / ".bundle-left" / "bundle").mkdir(parents=True)
    (copy / ".bundle-left" / "bundle" / "model.onnx").write_bytes(b"half")
    assert publish_run(copy) == 1
    assert not list(copy.glob(".*"))


def test_look_alike_labels_are_named_by_check_and_in_the_report(tmp_path):
    path = write_toy_project(tmp_path, num_rows=120)
    text = (tmp_path / "reviews.csv").read_text().replace("class0", "spam").replace("class1", "ham")
    odd = [f"odd row {n},{label}" for n, label in enumerate(["spam ", "Spam", "spam\u00a0"] * 3)]
    (tmp_path / "reviews.csv").write_text(text + "\n".join(odd) + "\n", encoding="utf-8")
    project = load_project(path, ["train.epochs=1"])
    spellings = [repr(label) for label in ("spam", "spam ", "Spam", "spam\u00a0")]
    report = json.loads((train_run(project).folder / "report.json").read_text())
    for findings in (check(project).as_json()["findings"], report["data"]["findings"]):
        messages = [finding["message"] for finding in findings]
        assert any(all(spelling in message for spelling in spellings) for message in messages), messages


def test_the_tokenizer_of_a_bundle_does_not_depend_on_what_ran_before(tmp_path):
    project = load_project(
        write_toy_project(tmp_path, num_rows=120), ["train.epochs=1", "encode.max_length=32"]
    )
    trained = train_run(project)
    first = publish_run(trained.folder)
    check(load_project(tmp_path, ["encode.max_length=500"]))
    second = publish_run(trained.folder)
    store = Store(project.store_root, "toy")
    hashes = {
        store.bundle(number).manifest.files["model/tokenizer.json"].sha256 for number in (first, second)
    }
    assert len(hashes) == 1
    long_text = " ".join(["film"] * 200)
    whole, cut = predict_texts(project, [long_text, " ".join(["film"] * 30)], version=second).scores
    assert whole == pytest.approx(cut, abs=1e-6)


STUCK = [
    "train.lr=0.03",
    "train.batch_size=16",
    "train.epochs=2",
    "train.warmup_share=0.0",
    "rescue.ladder=[]",
]


@pytest.mark.slow
def test_a_run_that_is_given_up_is_reported_never_published_and_may_go_on(tmp_path):
    path = write_toy_project(tmp_path, 640)
    project = load_project(path, STUCK)
    with pytest.raises(TrainingGaveUp, match=r"never-left.*report\.html") as caught:
        train_run(project)
    assert caught.value.exit_code == 4
    folder = newest_unfinished(project)
    told = json.loads((folder / "gave-up.json").read_text())
    assert told["given_up"]["kind"] == told["attempts"][0]["verdict"] == "never-left"
    assert told["baseline"]["metrics"]["rows"] > 0
    assert "Given up" in (folder / "report.html").read_text()
    with pytest.raises(StoreError, match="given up"):
        publish_run(folder)
    with pytest.raises(StoreError, match="finished run"):
        predict_texts(project, ["a film"])
    cured = train_run(load_project(path, [*STUCK[:-1], 'rescue.ladder=["lower-lr"]']), resume=True)
    assert cured.folder == folder
    assert [attempt["status"] for attempt in cured.training.attempts] == ["alarm", "healthy"]
    assert not (folder / "gave-up.json").exists()
    assert "Given up" not in (folder / "report.html").read_text()
    assert publish_run(folder) == 1
