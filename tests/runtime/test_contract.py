import pytest

from tests.contract_predictor import CONTRACT
from tests.runtime.bundles import prepare_toy_bundle
from tests.toy import toy_classifier, toy_examples
from textmill.model.baseline import baseline
from textmill.model.predictor import TorchPredictor
from textmill.runtime.open import open as open_bundle


@pytest.fixture(scope="module")
def predictors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    prepare_toy_bundle(folder)
    return {
        "onnx": open_bundle(folder, "onnx"),
        "onnx, 2 threads": open_bundle(folder, "onnx", threads=2),
        "torch": open_bundle(folder, "torch"),
        "classifier": TorchPredictor(*toy_classifier()),
        "baseline": baseline(toy_examples(60)),
    }


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["onnx", "onnx, 2 threads", "torch", "classifier", "baseline"])
def test_every_predictor_holds_the_contract(predictors, kind, check):
    check(predictors[kind])
