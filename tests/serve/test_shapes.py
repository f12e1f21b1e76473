"""Models of every shape behind a server: what they answer, what they refuse, and swaps under load."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

from tests.serve.bundles import MODEL
from tests.serve.clients import ask, predict, wait_until
from tests.shapes import SHAPES, Shape
from textmill.core.types import Text
from textmill.runtime.open import open as open_bundle
from textmill.serve.load import BackgroundLoad, Expected, run_load
from textmill.serve.server import start_server
from textmill.store.registry import Store

PATH = f"/v1/models/{MODEL}:predict"
PAIR = {"text": "good film", "text_pair": "a great film"}
LONG = " ".join(f"word{number}" for number in range(10_000))


@pytest.fixture(scope="session")
def source_of(tmp_path_factory):
    """Give the folder of a version of a shape and what its manifest will say; each made once."""

    @cache
    def make(name: str, seed: int):
        folder = tmp_path_factory.mktemp("shapes") / "source"
        return folder, SHAPES[name].prepare(folder, seed=seed)

    return make


@pytest.fixture(scope="session")
def served(source_of, tmp_path_factory, config):
    """Start a server with one version of each shape, named by the shape's place."""
    root = tmp_path_factory.mktemp("served") / "store"
    names = {}
    for place, name in enumerate(("single", "multilabel", "pairs", "windows", "windows of pairs")):
        names[name] = f"m{place}"
        store = Store(root, names[name])
        store.set_live(store.publish(*source_of(name, 0)), "for a test")
    with start_server(root, list(names.values()), config) as server:
        yield server, {name: (model, Store(root, model).bundle(1)) for name, model in names.items()}


def as_instance(text: Text) -> object:
    return text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}


def expected_of(bundle, texts) -> Expected:
    predictor = open_bundle(bundle.path, "onnx")
    scores = np.concatenate([predictor.scores([text]) for text in texts])
    return Expected(predictor.labels, scores, predictor.decision)


@pytest.mark.parametrize("name", ["single", "multilabel", "pairs", "windows", "windows of pairs"])
def test_a_server_answers_like_the_version_itself(served, name):
    server, models = served
    model, bundle = models[name]
    texts = SHAPES[name].odd_texts
    right = expected_of(bundle, texts)
    answer = predict(server.url, [as_instance(text) for text in texts], model)
    assert answer.status == 200
    rows = answer.json["predictions"]
    given = [[row["scores"][label] for label in right.labels] for row in rows]
    np.testing.assert_allclose(given, right.scores, atol=1e-4)
    chosen = right.decision.names(np.array(given, np.float32), right.labels)
    if right.decision.is_multilabel:
        assert [list(row) for row in rows] == [["labels", "scores"]] * len(texts)
        assert [tuple(row["labels"]) for row in rows] == chosen
        assert len(set(chosen)) > 1
    else:
        assert [list(row) for row in rows] == [["label", "scores"]] * len(texts)
        assert [(row["label"],) for row in rows] == chosen


def test_the_bytes_of_an_answer_with_one_label_are_fixed(served):
    server, models = served
    model, _ = models["single"]
    rows = [
        f'{{"label": "{max(row["scores"], key=row["scores"].get)}", "scores": {{'
        f'"class0": {row["scores"]["class0"]:.9g}, "class1": {row["scores"]["class1"]:.9g}}}}}'
        for row in predict(server.url, ["good", ""], model).json["predictions"]
    ]
    assert predict(server.url, ["good", ""], model).body.decode() == f'{{"predictions": [{", ".join(rows)}]}}'


@pytest.mark.parametrize("name", ["multilabel", "pairs", "windows"])
def test_a_load_checks_the_answers_of_every_shape(served, name):
    server, models = served
    model, bundle = models[name]
    texts = SHAPES[name].odd_texts
    right = expected_of(bundle, texts)
    receipt = run_load(server.url, model, texts, clients=3, duration_s=0.3, expected={1: right})
    assert receipt.is_clean, receipt.as_json()
    assert receipt.checked == receipt.answered > 5
    moved = Expected(right.labels, right.scores + 0.01, right.decision)
    assert run_load(server.url, model, texts, clients=1, duration_s=0.1, expected={1: moved}).wrong > 0


def test_the_metadata_tell_the_shape_of_a_model(served):
    server, models = served

    def told(name: str) -> dict[str, object]:
        return ask(server.url, "GET", f"/v1/models/{models[name][0]}/metadata").json["metadata"]

    assert {"thresholds", "long_text", "window_pool"}.isdisjoint(told("single"))
    assert told("multilabel")["task"] == "multilabel"
    decision = open_bundle(models["multilabel"][1].path).decision
    assert told("multilabel")["thresholds"] == list(decision.thresholds)
    assert told("pairs")["task"] == "pairs"
    assert told("windows")["long_text"] == "windows"
    assert (told("windows")["window_overlap"], told("windows")["window_pool"]) == (0.25, "mean")
    status = ask(server.url, "GET", "/v1/models").json["models"]
    assert status[models["pairs"][0]]["versions"][0]["task"] == "pairs"


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        (["good film"], '"good film" in item 0'),
        ([PAIR, "good"], '"good" in item 1'),
        ([{"text": "good"}], 'no "text_pair" in item 0'),
        ([PAIR, {"text_pair": "good"}], 'no "text" in item 1'),
        ([["good", "film"]], "in item 0"),
        ([{**PAIR, "extra": 1}], "extra"),
        ([{"text": "good", "text_pair": 5}], "5 in item 0"),
        ([{"text": None, "text_pair": "good"}], "null in item 0"),
        ([{"text": "good", "text_pair": ["a", "b"]}], "in item 0"),
        ([5], "5 in item 0"),
        ([[]], "[] in item 0"),
        ([{}], 'no "text" in item 0'),
        (PAIR, "must be a list"),
        ("good film", "must be a list"),
    ],
)
def test_a_model_of_pairs_tells_what_is_missing(served, instances, said):
    server, models = served
    answer = predict(server.url, instances, models["pairs"][0])
    assert answer.status == 400
    assert said in answer.json["message"]
    assert '"text_pair"' in answer.json["error"]["fix"]
    assert predict(server.url, [PAIR], models["pairs"][0]).status == 200


@pytest.mark.parametrize("name", ["single", "multilabel", "windows"])
def test_a_pair_for_a_model_of_one_text_is_refused_with_its_reason(served, name):
    server, models = served
    for instances in ([PAIR], ["good", PAIR], [{"text_pair": "a"}]):
        answer = predict(server.url, instances, models[name][0])
        assert answer.status == 400
        assert "reads no pairs" in answer.json["message"]
    assert predict(server.url, [["good", "film"]], models[name][0]).status == 400
    assert predict(server.url, [{"text": "good"}, "film"], models[name][0]).status == 200


def test_no_instances_give_no_predictions_whatever_the_shape(served):
    server, models = served
    for model, _ in models.values():
        answer = predict(server.url, [], model)
        assert (answer.status, answer.json, answer.version) == (200, {"predictions": []}, 1)


def test_half_an_emoji_in_the_second_text_harms_neither_its_request_nor_the_others(served):
    server, models = served
    path = f"/v1/models/{models['pairs'][0]}:predict"
    odd = b'{"instances": [{"text": "ok", "text_pair": "\\ud83d"}, {"text": "\\udc00", "text_pair": "ok"}]}'
    bodies = [odd, *[json.dumps({"instances": [PAIR]}).encode()] * 20]
    with ThreadPoolExecutor(21) as pool:
        first, *others = pool.map(lambda body: ask(server.url, "POST", path, body), bodies)
    assert (first.status, len(first.json["predictions"])) == (200, 2)
    assert {other.status for other in others} == {200}
    whole = [{"text": "ok", "text_pair": "\ufffd"}, {"text": "\ufffd", "text_pair": "ok"}]
    same = predict(server.url, whole, models["pairs"][0]).json["predictions"]
    assert [row["label"] for row in same] == [row["label"] for row in first.json["predictions"]]
    key = b'{"instances": [{"text": "ok", "\\ud83d": "x"}]}'
    assert ask(server.url, "POST", path, key).status == 400


def test_too_long_a_second_text_is_told_as_such(served):
    server, models = served
    answer = predict(server.url, [{"text": "a", "text_pair": "b" * 100_001}], models["pairs"][0])
    assert answer.status == 413
    assert '"text_pair" of item 0' in answer.json["message"]


def test_a_text_of_ten_thousand_words_is_bounded_and_the_others_are_answered(served):
    server, models = served
    model, bundle = models["windows"]
    answer = predict(server.url, ["good", LONG, "bad"], model)
    assert answer.status == 413
    assert "at most 512 windows" in answer.json["message"]
    assert "in item 1" in answer.json["message"]
    part = " ".join(LONG.split()[:500])
    texts = ["good", part, "a lovely story", part]
    rows = predict(server.url, texts, model).json["predictions"]
    right = expected_of(bundle, texts)
    given = [[row["scores"][label] for label in right.labels] for row in rows]
    np.testing.assert_allclose(given, right.scores, atol=1e-4)


def test_windows_are_answered_alike_alone_and_among_others(served):
    server, models = served
    model, _ = models["windows"]
    texts = [
        " ".join(["great", "film", "boring"][place % 3] for _ in range(7 * place)) for place in range(24)
    ]
    together = predict(server.url, texts, model).json["predictions"]
    with ThreadPoolExecutor(8) as pool:
        alone = list(pool.map(lambda text: predict(server.url, [text], model).json["predictions"][0], texts))
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(list(one["scores"].values()), list(other["scores"].values()), atol=1e-4)


@pytest.mark.slow
def test_what_waits_is_counted_in_windows(source_of, tmp_path, config):
    store = Store(tmp_path / "store", MODEL)
    store.set_live(store.publish(*source_of("windows", 0)), "for a test")
    small = config.model_copy(update={"max_queue_items": 8, "max_batch_rows": 1, "max_windows": 60})
    text = "film " * 300
    with start_server(store.path.parent, [MODEL], small) as server, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: predict(server.url, [text]), range(24)))
    assert {answer.status for answer in answers} == {200, 429}
    scores = [answer.json["predictions"] for answer in answers if answer.status == 200]
    assert all(each == scores[0] for each in scores)


SWAPS = [
    ("multilabel", "multilabel"),
    ("pairs", "pairs"),
    ("windows", "windows"),
    ("windows", "single"),
    ("head-tail", "windows, max"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), SWAPS)
def test_versions_of_one_task_are_swapped_under_load_without_a_fault(
    source_of, tmp_path, config, first, second
):
    store = Store(tmp_path / "store", MODEL)
    shape: Shape = SHAPES[first]
    texts = [*shape.odd_texts, *(row.text for row in shape.examples(16, seed=5))]
    store.set_live(store.publish(*source_of(first, 0)), "for a test")
    store.publish(*source_of(second, 1))
    expected = {number: expected_of(store.bundle(number), texts) for number in (1, 2)}
    with start_server(store.path.parent, [MODEL], config) as server:
        load = BackgroundLoad(server.url, MODEL, texts, clients=4, expected=expected)
        load.start()
        for version in (2, 1, 2):
            store.set_live(version, "for a test")
            wait_until(
                lambda version=version: predict(server.url, [as_instance(texts[0])]).version == version
            )
            time.sleep(0.1)
        receipt = load.end()
    assert receipt.is_clean, receipt.as_json()
    assert receipt.checked == receipt.answered > 0
    assert set(receipt.by_version) == {1, 2}
