"""Each shape of labels from a file to a published version, by the project files of docs/label-shapes.md."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.toy import BACKBONE
from textmill.answers import evaluate_model, find_model, predict_texts
from textmill.core.seeds import numpy_generator
from textmill.pipeline import run
from textmill.project import load_project
from textmill.runtime.open import open as open_bundle
from textmill.store.registry import Store

PAGE = (Path(__file__).parent.parent / "docs" / "label-shapes.md").read_text(encoding="utf-8")
FILLER = (
    *("the", "a", "of", "film", "story", "with", "and", "it", "was", "very"),
    *("some", "people", "house", "day", "time", "this", "music", "light", "long"),
)
SIGNS = {"food": ("bread", "soup"), "sea": ("ship", "ocean"), "war": ("tank", "siege")}


def words(rng, low, high):
    return [str(word) for word in rng.choice(FILLER, size=int(rng.integers(low, high)))]


def project_of(name, folder, *overrides):
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if f'name = "{name}"' in block]
    (folder / "project.toml").write_text(found, encoding="utf-8")
    toy = (
        f"model.backbone={BACKBONE}",
        "model.architecture.layers=2",
        "model.architecture.hidden_size=32",
        "model.architecture.heads=2",
        "model.architecture.intermediate_size=64",
        "model.architecture.max_positions=64",
        "model.architecture.dropout=0.0",
        "train.lr=4e-3",
        "train.batch_size=16",
        "train.threads=1",
    )
    return load_project(folder / "project.toml", [*toy, *overrides])


def check_runtimes_agree(project, texts):
    bundle = Store(project.store_root, project.config.name).bundle(1).path
    onnx, torch = open_bundle(bundle, "onnx"), open_bundle(bundle, "torch")
    assert onnx.decision == torch.decision
    np.testing.assert_allclose(onnx.scores(texts), torch.scores(texts), atol=1e-4)
    alone = np.concatenate([onnx.scores([text]) for text in texts])
    np.testing.assert_allclose(onnx.scores(texts), alone, atol=1e-4)
    return onnx


@pytest.mark.slow
def test_several_labels_a_text_are_learnt_published_and_answered(tmp_path):
    rng = numpy_generator(0, "topics")
    lines = []
    for number in range(700):
        labels = [name for name, share in zip(SIGNS, (0.4, 0.3, 0.2), strict=True) if rng.random() < share]
        text = [*words(rng, 3, 14), *(sign for name in labels for sign in SIGNS[name]), str(number)]
        lines.append(json.dumps({"text": " ".join(text), "label": labels}))
    (tmp_path / "topics.jsonl").write_text("\n".join(lines) + "\n")
    project = project_of("topics", tmp_path, "encode.max_length=32", "train.epochs=4")
    outcome = run(project)
    metrics = outcome.run.evaluation.metrics
    assert metrics.f1_macro > 0.9
    assert metrics.accuracy > 0.8
    predictor = check_runtimes_agree(project, ["soup on a ship", "", "the film"])
    assert predictor.decision.thresholds is not None
    assert evaluate_model(project).metrics.f1_macro == pytest.approx(metrics.f1_macro)
    answers = predict_texts(project, ["bread and soup of the ship on the ocean", "the film was long"])
    assert answers.chosen == (("food", "sea"), ())
    table = json.loads((outcome.run.folder / "model" / "textmill.json").read_text())
    assert (table["task"], len(table["thresholds"])) == ("multilabel", 3)
    assert run(project).gate.verdict == "passed"  # the second version is compared with the first


@pytest.mark.slow
def test_pairs_are_learnt_from_both_texts_and_predicted_from_a_file(tmp_path):
    rng = numpy_generator(0, "entailment")
    things = ("ship", "bread", "doctor")
    lines = ["premise,hypothesis,label"]
    for number in range(1600):
        first, other = rng.choice(3, size=2, replace=False)
        second = first if rng.random() < 0.5 else other
        lines.append(
            f"the {things[first]} was here {number},about the {things[second]},{int(first == second)}"
        )
    (tmp_path / "entailment.csv").write_text("\n".join(lines) + "\n")
    wide = ("model.architecture.hidden_size=64", "train.lr=2e-3", "train.epochs=8")
    project = project_of("entailment", tmp_path, "encode.max_length=24", *wide)
    outcome = run(project)
    assert outcome.run.evaluation.metrics.accuracy > 0.9
    assert "about the" in (outcome.run.folder / "report.html").read_text(encoding="utf-8") or (
        outcome.run.evaluation.metrics.accuracy == 1.0
    )
    check_runtimes_agree(
        project, [("the ship was here 7", "about the ship"), ("", "x"), ("a " * 99, "b " * 99)]
    )
    (tmp_path / "in.csv").write_text("\n".join([lines[0], *lines[1:4], "alone,,1"]) + "\n")
    answers = predict_texts(project, source=str(tmp_path / "in.csv"), output=tmp_path / "out.jsonl")
    assert len(answers.ids) == 4
    assert answers.chosen[3] is None
    predictor = find_model(project).predictor
    texts = [tuple(line.split(",")[:2]) for line in lines[1:4]]
    np.testing.assert_allclose(list(answers.scores[:3]), predictor.scores(texts), atol=1e-4)


@pytest.mark.slow
def test_windows_find_what_stands_at_the_end_and_the_head_does_not(tmp_path):
    rng = numpy_generator(0, "articles")
    lines = ["text,label"]
    for number in range(400):
        kind = number % 2
        sign = ("awful", "great")[kind]
        lines.append(f"{number} {' '.join(words(rng, 40, 90))} {sign} {sign},{('bad', 'good')[kind]}")
    (tmp_path / "articles.csv").write_text("\n".join(lines) + "\n")
    short = ("encode.max_length=32", "train.epochs=4")
    windows = project_of("articles", tmp_path, *short)
    found = run(windows)
    head = run(project_of("articles", tmp_path, *short, "encode.long_text=head", "name=head"))
    assert found.run.evaluation.metrics.accuracy > 0.95
    assert head.run.evaluation.metrics.accuracy < 0.8
    lengths = {
        name: json.loads((each.run.folder / "report.json").read_text())["lengths"]
        for name, each in {"windows": found, "head": head}.items()
    }
    assert lengths["windows"]["lost_share"] == 0
    assert lengths["head"]["lost_share"] > 0.3
    check_runtimes_agree(windows, [lines[1].split(",")[0], "", "short and great"])
