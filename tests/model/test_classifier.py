"""The classifier and its Predictor: invariance, order, export."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import models, pre_tokenizers, processors, trainers

from tests.toy import toy_classifier, toy_examples
from textmill.core.types import Predictor
from textmill.encode.config import EncodeConfig
from textmill.model.build import build
from textmill.model.config import ArchitectureConfig, ModelConfig, Pooling
from textmill.model.files import save
from textmill.model.predictor import TorchPredictor

_TEXTS = [example.text for example in toy_examples(33)]


def _scores_are_stable(predictor: TorchPredictor) -> None:
    together = predictor.scores(_TEXTS)
    alone = np.concatenate([predictor.scores([text]) for text in _TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    np.testing.assert_allclose(together.sum(1), 1, atol=1e-5)
    assert len({tuple(row) for row in together.round(6).tolist()}) > 10


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_a_text_alone_scores_as_in_a_batch(pooling: Pooling):
    _scores_are_stable(TorchPredictor(*toy_classifier(pooling=pooling), max_tokens=512))


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "electra", "xlnet", "gpt2"])
def test_other_architectures_score_alike_alone_and_in_a_batch(kind: str):
    architecture = ArchitectureConfig(model_type=kind, layers=2, hidden_size=32, heads=2, max_positions=128)
    classifier, tokenizer = toy_classifier(architecture=architecture, pooling="last")
    assert tokenizer.pad_side == ("left" if kind == "xlnet" else "right")
    _scores_are_stable(TorchPredictor(classifier, tokenizer))


def test_answers_come_in_the_order_of_the_texts():
    predictor = TorchPredictor(*toy_classifier(), max_tokens=128)
    by_length = sorted(_TEXTS, key=len, reverse=True)
    duplicated = [*by_length, *by_length[:5]]
    scores = predictor.scores(duplicated)
    for text, row in zip(duplicated, scores, strict=True):
        np.testing.assert_allclose(predictor.scores([text])[0], row, atol=1e-4)


def test_no_texts_give_no_rows():
    predictor = TorchPredictor(*toy_classifier(("a", "b", "c")))
    assert predictor.scores([]).shape == (0, 3)
    assert predictor.scores([]).dtype == np.float32
    assert isinstance(predictor, Predictor)


@pytest.mark.parametrize(
    "text", ["", "[PAD] [PAD] [PAD]", "great [SEP] not great", "</s>", "\ud83d", "word " * 5000]
)
def test_odd_texts_have_finite_scores_that_do_not_depend_on_neighbours(text: str):
    predictor = TorchPredictor(*toy_classifier())
    together = predictor.scores([*_TEXTS, text])[-1]
    assert np.isfinite(together).all()
    np.testing.assert_allclose(predictor.scores([text])[0], together, atol=1e-4)


def test_predicting_uses_no_dropout_and_leaves_the_mode_alone():
    classifier, tokenizer = toy_classifier(dropout=0.5)
    classifier.train()
    predictor = TorchPredictor(classifier, tokenizer)
    np.testing.assert_array_equal(predictor.scores(_TEXTS), predictor.scores(_TEXTS))
    assert classifier.training


def test_logits_are_float32_and_need_no_type_ids():
    classifier, _ = toy_classifier()
    ids = torch.tensor([[101, 2307, 102]])
    with torch.inference_mode():
        logits = classifier(ids, torch.ones_like(ids))
        assert logits.dtype == torch.float32
        torch.testing.assert_close(logits, classifier(ids, torch.ones_like(ids), torch.zeros_like(ids)))


def _xlnet_folder(folder: Path) -> Path:
    """Write a tiny XLNet with a language-model head and a tokenizer that puts <cls> last."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>"]
    raw = RawTokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    raw.train_from_iterator(_TEXTS, trainer)
    raw.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2",
        pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=[("<sep>", 4), ("<cls>", 3)],
    )
    config = transformers.XLNetConfig(
        vocab_size=raw.get_vocab_size(), d_model=32, n_layer=2, n_head=2, d_inner=64
    )
    transformers.XLNetLMHeadModel(config).save_pretrained(folder)
    raw.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "XLNetTokenizer", "pad_token": "<pad>"}'
    )
    return folder


def test_xlnet_pads_left_and_its_token_for_the_text_is_the_last(tmp_path: Path):
    config = ModelConfig(backbone=str(_xlnet_folder(tmp_path)), pooling="cls")
    classifier, tokenizer, notes = build(config, ("a", "b"), EncodeConfig(max_length=64), seed=0)
    assert (tokenizer.pad_side, tokenizer.pad_id, tokenizer.cls_is_last) == ("left", 5, True)
    assert tokenizer.tokens("great film")[-1] == "<cls>"
    assert classifier.pool.pooling == "last"
    assert "lm_loss" in notes.sentences[0]
    _scores_are_stable(TorchPredictor(classifier, tokenizer))


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_a_bert_that_pads_left_counts_positions_from_its_first_token(tmp_path: Path, pooling: Pooling):
    save(*toy_classifier(), tmp_path / "model")
    (tmp_path / "model" / "tokenizer_settings.json").unlink()
    path = tmp_path / "model" / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding_side": "left"}))
    config = ModelConfig(backbone=str(tmp_path / "model"), pooling=pooling)
    classifier, tokenizer, _ = build(config, ("a", "b"), EncodeConfig(max_length=64), seed=0)
    assert tokenizer.pad_side == "left"
    _scores_are_stable(TorchPredictor(classifier, tokenizer))


@pytest.mark.slow
@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_the_classifier_exports_to_onnx_with_free_batch_and_length(pooling: Pooling):
    classifier, tokenizer = toy_classifier(pooling=pooling)
    classifier.eval()
    ids = torch.full((3, 7), 2307)
    free = {0: torch.export.Dim("B", max=4096), 1: torch.export.Dim("T", min=2, max=tokenizer.max_length)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own deprecations inside the exporter
        program = torch.onnx.export(
            classifier,
            (ids, torch.ones_like(ids), torch.zeros_like(ids)),
            dynamo=True,
            verbose=False,
            dynamic_shapes=(free, free, free),
        )
    assert program is not None
    content = io.BytesIO()
    program.save(content)
    session = onnxruntime.InferenceSession(content.getvalue())
    names = [item.name for item in session.get_inputs()]
    for rows in (1, 2, 7, 33):
        for length in (2, 3, tokenizer.max_length):
            ids = torch.randint(1000, 2000, (rows, length), generator=torch.Generator().manual_seed(0))
            mask = torch.ones_like(ids)
            mask[-1, 1:] = 0
            inputs = (ids, mask, torch.zeros_like(ids))
            with torch.inference_mode():
                wanted = classifier(*inputs).numpy()
            feed = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
            np.testing.assert_allclose(session.run(None, feed)[0], wanted, atol=1e-4)
