import numpy as np
import onnx
import pytest
import torch

from tests.toy import toy_classifier
from textmill.core.errors import ModelError, StoreError
from textmill.core.types import Example
from textmill.data.config import CleanConfig
from textmill.model.config import ArchitectureConfig
from textmill.runtime.assemble import prepare_bundle
from textmill.runtime.export import check_parity, export_onnx
from textmill.runtime.open import open as open_bundle


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last", "flatten"])
def test_no_axis_freezes_whatever_the_pooling(tmp_path, pooling):
    classifier, tokenizer = toy_classifier(pooling=pooling, max_length=16)
    exported = export_onnx(classifier, tokenizer, tmp_path / "model.onnx")
    assert exported.exporter == "trace"
    assert exported.opset == 17
    assert exported.worst < 1e-4
    graph = onnx.load(tmp_path / "model.onnx").graph
    for each in graph.input:
        assert [axis.dim_param for axis in each.type.tensor_type.shape.dim] == ["batch", "length"]
    assert {node.domain for node in graph.node} == {""}


@pytest.mark.parametrize(
    ("task", "pooling"),
    [
        ("classification", "mean"),
        *(("multilabel", pooling) for pooling in ("mean", "max", "last", "flatten")),
    ],
)
def test_one_class_and_many_answer_alike_on_every_batch_and_length(tmp_path, task, pooling):
    labels = ("only",) if task == "multilabel" else ("a", "b", "c")
    classifier, tokenizer = toy_classifier(labels, task=task, pooling=pooling, max_length=16)
    prepare_bundle(
        tmp_path / "bundle",
        classifier,
        tokenizer,
        clean=CleanConfig(),
        golden_texts=["a"],
        gate_rows=[Example("1", "a", labels[:1])],
        metrics={},
    )
    runtimes = [open_bundle(tmp_path / "bundle", runtime) for runtime in ("onnx", "torch")]
    for num_rows in (1, 2, 7, 33):
        for num_words in (0, 1, 40):
            texts = [" ".join(["film", "story"][row % 2 :][:1] * num_words) for row in range(num_rows)]
            cut = [predictor.cut(texts).rows for predictor in runtimes]
            onnx_scores, torch_scores = (
                predictor.scores_encoded(rows) for predictor, rows in zip(runtimes, cut, strict=True)
            )
            assert onnx_scores.shape == (num_rows, len(labels))
            np.testing.assert_allclose(onnx_scores, torch_scores, atol=1e-4)


def test_a_sigmoid_that_is_off_is_refused_though_the_logits_are_near(tmp_path):
    classifier, tokenizer = toy_classifier(("a", "b"), task="multilabel", max_length=12)
    *_, bias = classifier.head.parameters()
    with torch.no_grad():
        bias[0] = 400.0  # so that logits may be off by 0.04
    export_onnx(classifier, tokenizer, tmp_path / "model.onnx")
    with torch.no_grad():
        bias[1] += 0.02
    with pytest.raises(StoreError, match="torch's probabilities"):
        check_parity(classifier.eval(), tokenizer, tmp_path / "model.onnx")


@pytest.mark.parametrize("model_type", ["roberta", "distilbert", "electra", "xlnet"])
def test_other_encoders_export_as_well(tmp_path, model_type):
    extra = {"n_layer": 1} if model_type == "xlnet" else {}
    architecture = ArchitectureConfig(
        model_type=model_type, layers=1, hidden_size=32, heads=2, max_positions=64, extra=extra
    )
    classifier, tokenizer = toy_classifier(architecture=architecture, max_length=12)
    assert export_onnx(classifier, tokenizer, tmp_path / "model.onnx").worst < 1e-4


def test_no_file_is_left_of_a_graph_with_other_weights(tmp_path):
    classifier, tokenizer = toy_classifier(max_length=12)
    export_onnx(classifier, tokenizer, tmp_path / "model.onnx")
    with torch.no_grad():
        classifier.head.load_state_dict({k: v + 0.1 for k, v in classifier.head.state_dict().items()})
    with pytest.raises(StoreError, match="torch's logits"):
        check_parity(classifier.eval(), tokenizer, tmp_path / "model.onnx")


def test_a_graph_with_a_frozen_batch_is_refused(tmp_path):
    classifier, tokenizer = toy_classifier(max_length=12)
    path = tmp_path / "model.onnx"
    export_onnx(classifier, tokenizer, path)
    model = onnx.load(path)
    for each in model.graph.input:
        each.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, path)
    with pytest.raises(StoreError, match="every batch and length"):
        check_parity(classifier.eval(), tokenizer, path)


def test_the_model_is_left_as_it_was(tmp_path):
    classifier, tokenizer = toy_classifier(max_length=12)
    classifier.train()
    attention = classifier.encoder.config._attn_implementation
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    export_onnx(classifier, tokenizer, tmp_path / "model.onnx")
    assert classifier.training
    assert classifier.encoder.config._attn_implementation == attention
    for name, value in classifier.state_dict().items():
        assert torch.equal(before[name], value)
    loss = classifier(torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int64)).sum()
    loss.backward()


def test_weights_that_are_no_numbers_are_told(tmp_path):
    classifier, tokenizer = toy_classifier(max_length=12)
    with torch.no_grad():
        next(classifier.head.parameters()).fill_(np.nan)
    with pytest.raises(ModelError, match="finite"):
        export_onnx(classifier, tokenizer, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.slow
def test_the_other_exporter_gives_the_same_answers(tmp_path):
    from textmill.runtime import export

    classifier, tokenizer = toy_classifier(max_length=16)
    with export._frozen(classifier), export._quiet():
        export._export_captured(classifier, export._example(classifier, tokenizer), tmp_path / "model.onnx")
        assert check_parity(classifier, tokenizer, tmp_path / "model.onnx") < 1e-4
