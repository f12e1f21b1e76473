from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.evaluate.toys import simulate, simulated
from textmill.core.errors import DataError, StoreError
from textmill.core.types import Example
from textmill.evaluate.compare import compare
from textmill.evaluate.evaluate import Evaluation, evaluate, from_scores
from textmill.evaluate.report import ReportPaths, list_confusions, list_errors, write_report

PROJECT = {"name": "reviews", "model": {"backbone": "some/encoder"}, "train": {"lr": 5e-5, "epochs": 2}}
EVENTS = [
    {"event": "step", "step": 1, "epoch": 1, "loss": 0.70, "rows": 32, "seconds": 0.5},
    {"event": "step", "step": 2, "epoch": 1, "loss": 0.52, "rows": 32, "seconds": 0.5},
    {
        "event": "evaluation",
        "step": 2,
        "epoch": 1,
        "valid_loss": 0.5,
        "accuracy": 0.8,
        "f1_macro": 0.79,
        "is_best": True,
    },
]


class _Tags(HTMLParser):
    """Collects tags and everything that would fetch something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "xlink:href")]
        assert not any(name.startswith("on") for name, _ in attrs)


def _data(labels) -> dict:
    nothing = {"count": 0, "rows": []}
    return {
        "sources": {
            "train": {
                "path": "reviews.csv",
                "rows": 120,
                "notes": ["separator guessed"],
                "cleaned": {},
                "missing_text": nothing,
                "missing_label": {"count": 3, "rows": ["reviews.csv:7"]},
                "duplicates": nothing,
                "conflicts": nothing,
            }
        },
        "labels": {"merged": {}, "look_alikes": []},
        "sides": {"train": dict.fromkeys(labels, 30), "test": dict.fromkeys(labels, 20)},
        "fingerprint": "ab" * 32,
        "findings": [{"level": "note", "message": "3 rows have no label", "fix": "Label them."}],
    }


def _report(folder: Path, labels=("neg", "pos"), num_rows: int = 60, **changes) -> ReportPaths:
    predictor, examples = simulated(num_rows, labels, seed=0)
    weaker, _ = simulated(num_rows, labels, seed=0, skill=0.5)
    events = folder / "events.jsonl"
    events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    values = {
        "project": PROJECT,
        "data": _data(labels),
        "evaluation": evaluate(predictor, examples),
        "baseline": evaluate(weaker, examples),
        "events": events,
        "lengths": np.arange(1, 80),
        "max_length": 64,
        "examples": examples,
    }
    return write_report(folder, **(values | changes))


def test_the_page_is_whole_in_itself(tmp_path):
    paths = _report(tmp_path)
    page = paths.html.read_text()
    tags = _Tags(page)
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(tags.tags)
    assert all(link.startswith("#") for link in tags.links)
    assert "http" not in page
    assert "url(" not in re.sub(r"clip-path=\"url\(#", "", page)
    assert tags.tags.count("svg") == 5


def test_every_picture_is_well_formed_and_shows_its_facts(tmp_path):
    page = _report(tmp_path).html.read_text()
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    words = ["".join(picture.itertext()) for picture in pictures]
    assert any("ln 2 = 0.693" in text for text in words)
    assert any("limit 64" in text for text in words)
    assert any("true class" in text and "neg" in text for text in words)
    assert any("confidence" in text for text in words)
    assert "#01f00" not in page  # every colour of the private palette became one of the page


def test_markup_in_labels_and_texts_and_settings_is_shown_not_run(tmp_path):
    evil = "<script>alert('x')</script>"
    labels = (evil, '"><img src=x onerror=alert(1)>')
    predictor, examples = simulated(60, labels, seed=0)
    evaluation = evaluate(predictor, examples)
    shown = [Example(example.id, f"{evil} & more", example.labels) for example in examples]
    paths = _report(
        tmp_path,
        labels,
        evaluation=evaluation,
        baseline=None,
        examples=shown,
        project={"name": evil, "train": {"note": evil}},
        data=_data(labels) | {"findings": [{"level": '"><img>', "message": evil, "fix": evil}]},
        attempts=[{"cure": evil, "verdict": "ok"}],
    )
    page = paths.html.read_text()
    tags = _Tags(page)
    assert "script" not in tags.tags
    assert "img" not in tags.tags
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; more" in page
    card = paths.card.read_text()
    assert "<script" not in card
    assert "<img" not in card
    assert json.loads(paths.json.read_text())["evaluation"]["labels"] == list(labels)


@pytest.mark.parametrize(
    "labels",
    [
        ("差评", "好评"),
        ("差评", "好评", "与主题无关的很长的类别名称"),
        ("$x^2$", "@0@", "#01f001", "नमस्ते", "🙂"),
    ],
)
def test_names_of_any_script_show_in_the_pictures(tmp_path, labels):
    page = _report(tmp_path, labels).html.read_text()
    drawn = next(svg for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if "true class" in svg)
    words = "".join(ElementTree.fromstring(drawn).itertext())
    for label in labels:
        assert label[:5] in words


def test_two_languages_are_on_the_page(tmp_path):
    page = _report(tmp_path).html.read_text()
    assert page.count('lang="zh"') == page.count('lang="en"') - 1  # the page itself is marked as English
    assert '<tspan lang="zh">' in page
    assert "混淆矩阵" in page


def test_findings_of_the_data_are_shown(tmp_path):
    assert "3 rows have no label" in _report(tmp_path).html.read_text()
    bare = _data(("neg", "pos")) | {
        "findings": [],
        "labels": {"look_alikes": [{"spam": 40, "spam\u00a0": 3}]},
    }
    paths = _report(tmp_path, data=bare)
    assert "spam\\xa0" in paths.html.read_text()
    assert "spam\u00a0" in paths.json.read_text()


def test_the_json_holds_all_numbers(tmp_path):
    report = json.loads(_report(tmp_path).json.read_text())
    assert report["evaluation"]["metrics"]["rows"] == 60
    assert report["comparison"]["metric"] == "f1_macro"
    assert report["data"]["fingerprint"] == "ab" * 32
    assert report["training"]["best_step"] == 2
    assert report["lengths"]["truncated_share"] == pytest.approx(15 / 79)
    assert report["project"] == PROJECT


def test_the_page_says_whether_the_model_beats_the_baseline(tmp_path):
    predictor, examples = simulated(400, ("neg", "pos"), seed=0, skill=3.0)
    weak, _ = simulated(400, ("neg", "pos"), seed=0, skill=0.2)
    strong, other = evaluate(predictor, examples), evaluate(weak, examples)
    better = _report(tmp_path, evaluation=strong, baseline=other).html.read_text()
    assert "That is better than the baseline" in better
    worse = _report(tmp_path, evaluation=other, baseline=strong).html.read_text()
    assert "worse than the baseline" in worse
    same = _report(tmp_path, evaluation=other, baseline=other).html.read_text()
    assert "cannot tell" in same
    given = _report(
        tmp_path, evaluation=strong, baseline=other, comparison=compare(other, strong, "accuracy")
    )
    assert "points</strong> of accuracy" in given.html.read_text()


def test_a_baseline_on_other_rows_is_refused_before_anything_is_written(tmp_path):
    predictor, examples = simulated(30, ("neg", "pos"), seed=1)
    with pytest.raises(DataError, match="same rows"):
        _report(tmp_path, baseline=evaluate(predictor, examples))
    assert not (tmp_path / "report.json").exists()


def test_a_report_needs_no_more_than_an_evaluation(tmp_path):
    predictor, examples = simulated(1, ("neg", "pos"), seed=0)
    evaluation = evaluate(predictor, examples)
    paths = write_report(tmp_path, project={}, data={}, evaluation=evaluation)
    assert "by Wilson" in paths.html.read_text()
    assert json.loads(paths.json.read_text())["baseline"] is None
    assert "# model" in paths.card.read_text()


def test_more_classes_than_fit_a_picture_are_reported(tmp_path):
    labels = [f"intent {i}" for i in range(31)]
    page = _report(tmp_path, labels, num_rows=300).html.read_text()
    assert "Only the 20 classes with most mistakes" in page
    assert all(f"<td>{label}</td>" in page for label in labels)


def test_errors_come_surest_first_and_shortened(tmp_path):
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7]], dtype=np.float32)
    evaluation = from_scores(("neg", "pos"), ["a", "b", "c", "d"], np.array([1, 0, 0, 1]), scores)
    examples = [Example(row_id, "word " * 200 + "half \ud83d", ("neg",)) for row_id in "abcd"]
    errors = list_errors(evaluation, examples)
    assert [(error["id"], error["truth"], error["label"]) for error in errors] == [
        ("a", "pos", "neg"),
        ("b", "neg", "pos"),
        ("c", "neg", "pos"),
    ]
    assert len(errors[0]["text"]) < 300
    assert errors[0]["text"].endswith("…")
    assert list_errors(evaluation, None)[0]["text"] is None
    _report(tmp_path, evaluation=evaluation, baseline=None, examples=[Example("a", "\ud83d", ())])
    assert "?" in (tmp_path / "report.html").read_text()


def test_frequent_confusions_are_counted_like_a_loop_counts():
    truth, scores = simulate(300, 4, seed=3)
    evaluation = from_scores("abcd", [str(i) for i in range(300)], truth, scores)
    first = list_confusions(evaluation)[0]
    predicted = scores.argmax(axis=1)
    counts = {
        (t, p): sum(1 for a, b in zip(truth, predicted, strict=True) if (a, b) == (t, p))
        for t in range(4)
        for p in range(4)
        if t != p
    }
    assert first["rows"] == max(counts.values())
    assert counts["abcd".index(first["truth"]), "abcd".index(first["label"])] == first["rows"]


def test_the_card_says_what_it_is_how_good_and_where_it_ends(tmp_path):
    card = _report(tmp_path, ("neg|a", "pos")).card.read_text()
    for fact in (
        "some/encoder",
        "ab" * 32,
        "## Limits",
        "first 64 tokens",
        "neg\\|a",
        "v1/models/reviews:predict",
    ):
        assert fact in card
    assert re.search(r"\| accuracy \| 0\.\d{3} \| 0\.\d{3} – 0\.\d{3} \| 0\.\d{3} \|\n", card)
    assert "Fewer than 30 test rows" in _report(tmp_path, num_rows=20).card.read_text()


def _one(row_id: str) -> Evaluation:
    return from_scores(("a", "b"), [row_id], np.array([0]), np.array([[0.9, 0.1]], dtype=np.float32))


def test_a_model_without_mistakes_has_no_list_of_them(tmp_path):
    assert list_errors(_one("x"), None) == []
    page = _report(tmp_path, ("a", "b"), evaluation=_one("x"), baseline=None).html.read_text()
    assert "Wrong, and sure of it" not in page


def test_the_report_that_marks_a_run_as_finished_is_written_last(tmp_path):
    (tmp_path / "card.md").mkdir()  # the card cannot be written
    with pytest.raises(StoreError):
        write_report(
            tmp_path, project=PROJECT, data={}, evaluation=evaluate(*simulated(40, ("a", "b"), seed=0))
        )
    assert not (tmp_path / "report.json").exists()


def test_the_report_does_not_grow_with_the_square_of_the_classes(tmp_path):
    labels = [f"topic {number}" for number in range(2_000)]
    predictor, examples = simulated(50, labels, seed=0)
    evaluation = evaluate(predictor, examples, num_resamples=10)
    paths = write_report(tmp_path, project=PROJECT, data={}, evaluation=evaluation)
    assert paths.json.stat().st_size < 2_000_000
