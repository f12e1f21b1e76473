from functools import cache

import numpy as np
import pytest

from tests.contract_predictor import CONTRACT
from tests.runtime.bundles import prepare_toy_bundle
from tests.shapes import SHAPES
from tests.toy import toy_examples
from textmill.model.baseline import baseline
from textmill.model.predictor import TorchPredictor
from textmill.runtime.golden import check_golden
from textmill.runtime.open import open as open_bundle
from textmill.store.registry import Store


@pytest.fixture(scope="module")
def predictors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    prepare_toy_bundle(folder)
    return {
        "onnx, 2 threads": open_bundle(folder, "onnx", threads=2),
        "baseline": baseline(toy_examples(60)),
        "baseline, multilabel": baseline(SHAPES["multilabel"].examples(60), task="multilabel"),
    }


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["onnx, 2 threads", "baseline", "baseline, multilabel"])
def test_every_predictor_holds_the_contract(predictors, kind, check):
    check(predictors[kind])


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """Give the model of a shape on torch, as it was trained, and its version in a store; each made once."""

    @cache
    def publish(name):
        root = tmp_path_factory.mktemp("shapes")
        facts = SHAPES[name].prepare(root / "source")
        store = Store(root / "store", "m")
        bundle = store.bundle(store.publish(root / "source", facts))
        return SHAPES[name], TorchPredictor(*SHAPES[name].parts()), bundle

    return publish


FAST = ("multilabel", "pairs", "windows")


@pytest.fixture(
    params=[name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SHAPES]
)
def shaped(request, published):
    return published(request.param)


def test_a_model_of_every_shape_holds_the_contract(shaped):
    shape, classifier, bundle = shaped
    for predictor in (classifier, *(open_bundle(bundle.path, runtime) for runtime in ("onnx", "torch"))):
        for check in CONTRACT:
            check(predictor, shape.odd_texts)


def test_both_runtimes_answer_like_the_model_that_was_published(shaped):
    shape, classifier, bundle = shaped
    texts = [
        text for text in shape.odd_texts if "&" not in str(text)
    ]  # the bundle cleans, the model does not
    for runtime in ("onnx", "torch"):
        predictor = open_bundle(bundle.path, runtime)
        assert predictor.decision == classifier.decision
        np.testing.assert_allclose(predictor.scores(texts), classifier.scores(texts), atol=1e-4)
        assert check_golden(bundle, predictor) < 1e-4


def test_both_texts_of_a_pair_are_cleaned(published):
    _, _, bundle = published("pairs")
    scores = open_bundle(bundle.path).scores(
        [("caf&eacute; ", " x"), ("caf\u00e9", "x"), ("caf\u00e9", "&#120;")]
    )
    np.testing.assert_allclose(scores, scores[:1].repeat(3, axis=0), atol=1e-5)


def test_special_tokens_in_a_text_are_text_and_a_pair_has_its_own_separators_only(shaped):
    shape, _, bundle = shaped
    predictor = open_bundle(bundle.path)
    texts = ["[PAD] [PAD] [PAD]", "great [SEP] not great", "</s>", "<|endoftext|>"]
    given = [(text, text) for text in texts] if shape.task == "pairs" else texts
    tokenizer = predictor.tokenizer
    for row in predictor.cut(given).rows:
        tokens = [tokenizer._cutting.id_to_token(index) for index in row.ids.tolist()]
        assert tokens.count("[SEP]") == (2 if shape.task == "pairs" else 1)
        assert "[PAD]" not in tokens
    assert np.isfinite(predictor.scores(given)).all()


def test_a_row_never_has_more_tokens_than_the_signature_says(shaped):
    shape, _, bundle = shaped
    predictor = open_bundle(bundle.path)
    signature = bundle.manifest.signature
    text = "film " * 200
    rows, owner = predictor.cut([(text, text) if shape.task == "pairs" else text])
    assert max(len(row.ids) for row in rows) == signature.max_length == shape.max_length
    assert (len(rows) > 1) == (signature.long_text == "windows")
    assert owner.tolist() == [0] * len(rows)
