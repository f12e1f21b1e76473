import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.contract_predictor import TEXTS
from tests.runtime.bundles import prepare_toy_bundle
from textmill.core.errors import DataError, ModelError, StoreError
from textmill.runtime.encoder import TextEncoder
from textmill.runtime.open import open as open_bundle
from textmill.runtime.predictor import BundlePredictor

ANSWER = """
import json, sys
from pathlib import Path
from textmill.runtime.open import open as open_bundle
predictor = open_bundle(Path(sys.argv[1]), "onnx")
scores = predictor.scores(["a great film", "boring"])
heavy = {"torch", "transformers", "datasets", "pandas", "pyarrow", "sklearn", "scipy", "onnx"}
print(json.dumps({"scores": scores.tolist(), "heavy": sorted(heavy & set(sys.modules))}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    prepare_toy_bundle(folder)
    return folder


def test_the_onnx_runtime_loads_neither_torch_nor_transformers(folder):
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    answer = json.loads(done.stdout)
    assert answer["heavy"] == []
    assert done.stderr == ""
    expected = open_bundle(folder, "torch").scores(["a great film", "boring"])
    np.testing.assert_allclose(answer["scores"], expected, atol=1e-4)


def test_both_runtimes_give_the_same_answers(folder):
    first, second = open_bundle(folder, "onnx"), open_bundle(folder, "torch")
    assert isinstance(first, BundlePredictor)
    assert isinstance(second, BundlePredictor)
    assert first.labels == second.labels
    np.testing.assert_allclose(first.scores(TEXTS), second.scores(TEXTS), atol=1e-4)


def test_text_is_cleaned_as_in_training(folder):
    encoder = TextEncoder.open(folder)
    assert (
        encoder.cut(["  caf&eacute; "]).rows[0].ids.tolist()
        == encoder.cut(["caf\u00e9"]).rows[0].ids.tolist()
    )
    pair = encoder.cut([("caf&eacute;", " x ")]).rows[0].ids.tolist()
    assert pair == encoder.cut([("caf\u00e9", "x")]).rows[0].ids.tolist()


def test_a_long_text_is_cut_at_the_length_of_the_bundle(folder):
    predictor = open_bundle(folder, "onnx")
    words = ["film"] * 200
    assert len(predictor.cut([" ".join(words)]).rows[0].ids) == 64
    scores = predictor.scores([" ".join(words), " ".join(words[:62])])
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_something_that_is_no_text_is_told_with_its_position(folder):
    with pytest.raises(DataError, match="at position 1"):
        open_bundle(folder, "onnx").scores(["good", 5])


def test_an_unknown_runtime_is_told_with_the_known_ones(folder):
    with pytest.raises(StoreError, match="Did you mean 'torch'"):
        open_bundle(folder, "pytorch")


def test_a_folder_without_a_model_is_told(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(StoreError, match="graph"):
        open_bundle(tmp_path, "onnx")
    with pytest.raises(ModelError, match=r"textmill\.json"):
        open_bundle(tmp_path, "torch")


@pytest.mark.parametrize("length", [0, 1000, 4_000_000])
def test_a_graph_cut_short_is_a_store_error(folder, tmp_path, length):
    content = (folder / "model.onnx").read_bytes()
    (tmp_path / "model.onnx").write_bytes(content[: min(length, len(content) - 1)])
    with pytest.raises(StoreError, match=r"model\.onnx must be a graph"):
        open_bundle(tmp_path, "onnx")


def test_what_happens_to_the_files_later_does_not_reach_an_open_bundle(tmp_path):
    prepare_toy_bundle(tmp_path / "bundle")
    predictors = [open_bundle(tmp_path / "bundle", runtime) for runtime in ("onnx", "torch")]
    before = [predictor.scores(TEXTS) for predictor in predictors]
    for path in (tmp_path / "bundle").rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(path.stat().st_size))
    for predictor, scores in zip(predictors, before, strict=True):
        np.testing.assert_array_equal(predictor.scores(TEXTS), scores)
