"""From configs to a classifier: what fits, what is said, what is refused."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from transformers.utils import logging as transformers_logging

from tests.toy import BACKBONE, toy_classifier, toy_model_config
from textmill.core.errors import ModelError
from textmill.encode.config import EncodeConfig
from textmill.encode.source import find_source
from textmill.model.build import BuildNotes, build
from textmill.model.classifier import Classifier
from textmill.model.config import ArchitectureConfig, ModelConfig
from textmill.model.dropout import ATTENTION

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}


@pytest.fixture
def masked_lm(tmp_path: Path) -> Path:
    """Return a folder with a tiny BertForMaskedLM and its tokenizer."""
    folder = tmp_path / "masked"
    transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=30522, **_SIZES)).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(find_source(BACKBONE, with_weights=False) / name, folder)
    return folder


def _build(folder: Path, **changes: object) -> tuple[Classifier, BuildNotes]:
    config = ModelConfig.model_validate({"backbone": str(folder), **changes})
    classifier, _, notes = build(config, ("a", "b"), EncodeConfig(), seed=0)
    return classifier, notes


def _change(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_language_model_head_is_dropped_and_that_is_said(masked_lm: Path):
    classifier, notes = _build(masked_lm)
    assert notes.report is not None
    assert len(notes.report.dropped) == 5
    assert notes.report.new == ()
    assert "head were dropped (cls)" in notes.sentences[0]
    whole = transformers.BertForMaskedLM.from_pretrained(masked_lm)
    ours, theirs = classifier.encoder.state_dict(), whole.bert.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_limit_of_the_backbone_is_said(masked_lm: Path):
    classifier, notes = _build(masked_lm)
    assert classifier.max_length == 128
    assert any("128" in sentence for sentence in notes.sentences)


def test_only_the_first_layers_are_kept(masked_lm: Path):
    whole, _ = _build(masked_lm)
    cut, notes = _build(masked_lm, keep_layers=1)
    assert len(cut.encoder.encoder.layer) == 1
    assert cut.encoder.config.num_hidden_layers == 1
    assert "only the first layer is kept" in " ".join(notes.sentences)
    assert not any("layer" in name for name in notes.report.dropped)  # type: ignore[union-attr]
    name = "encoder.layer.0.output.dense.weight"
    assert torch.equal(cut.encoder.state_dict()[name], whole.encoder.state_dict()[name])


def test_missing_weights_start_random_from_the_seed_and_are_said(masked_lm: Path):
    from safetensors.torch import load_file, save_file

    weights = load_file(masked_lm / "model.safetensors")
    weights.pop("bert.encoder.layer.1.output.dense.weight")
    save_file(weights, masked_lm / "model.safetensors", metadata={"format": "pt"})
    first, notes = _build(masked_lm)
    assert notes.report is not None
    assert notes.report.new == ("encoder.layer.1.output.dense.weight",)
    torch.manual_seed(99)
    second, _ = _build(masked_lm)
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)


def test_safetensors_without_metadata_load(masked_lm: Path):
    from safetensors.torch import load_file, save_file

    save_file(load_file(masked_lm / "model.safetensors"), masked_lm / "model.safetensors")
    _build(masked_lm)


def test_weights_of_another_shape_do_not_fit(masked_lm: Path):
    _change(masked_lm, hidden_size=64)
    with pytest.raises(ModelError, match=r"weights of a backbone must fit.*another shape"):
        _build(masked_lm)


def test_weights_of_another_architecture_do_not_fit(masked_lm: Path):
    _change(masked_lm, model_type="distilbert")
    with pytest.raises(ModelError, match="36 of 36 weights missing"):
        _build(masked_lm)


def test_a_vocabulary_larger_than_the_embedding_names_both_numbers(tmp_path: Path, masked_lm: Path):
    transformers.BertModel(transformers.BertConfig(vocab_size=1000, **_SIZES)).save_pretrained(masked_lm)
    with pytest.raises(ModelError, match="highest id 30521 and 1000 rows"):
        _build(masked_lm)


def test_half_a_weights_file_or_none_is_one_clear_error(masked_lm: Path):
    path = masked_lm / "model.safetensors"
    path.write_bytes(path.read_bytes()[:10_000])
    with pytest.raises(ModelError, match="transformers can load"):
        _build(masked_lm)
    path.unlink()
    with pytest.raises(ModelError, match=r"no file named model\.safetensors"):
        _build(masked_lm)


def test_a_folder_without_a_model_is_refused(tmp_path: Path):
    with pytest.raises(ModelError, match=r"config\.json"):
        _build(tmp_path)


def test_code_in_a_checkpoint_is_never_run(masked_lm: Path):
    (masked_lm / "mine.py").write_text("raise SystemExit('code ran')\n")
    _change(masked_lm, model_type="mine", auto_map={"AutoConfig": "mine.C", "AutoModel": "mine.M"})
    with pytest.raises(ModelError):
        _build(masked_lm)


def test_keep_layers_beyond_the_backbone_is_refused(masked_lm: Path):
    with pytest.raises(ModelError, match="Use 1 to 2"):
        _build(masked_lm, keep_layers=3)
    with pytest.raises(ModelError, match=r"architecture\.layers"):
        toy_classifier(keep_layers=1)


@pytest.mark.parametrize(
    ("architecture", "hint"),
    [
        (ArchitectureConfig(model_type="brt"), "Did you mean 'bert'"),
        (ArchitectureConfig(hidden_size=32, heads=5), "must fit each other"),
        (ArchitectureConfig(model_type="t5", hidden_size=32), "encoder-decoder"),
        (ArchitectureConfig(model_type="fnet", hidden_size=32), "attention mask"),
        (ArchitectureConfig(extra={"layer_norm_esp": 1.0}), "Did you mean 'layer_norm_eps'"),
    ],
)
def test_an_architecture_that_cannot_be_is_refused(architecture: ArchitectureConfig, hint: str):
    with pytest.raises(ModelError, match=hint):
        toy_classifier(architecture=architecture)


def test_an_architecture_gets_the_numbers_asked_for():
    wide = ArchitectureConfig(
        layers=3, hidden_size=48, heads=4, max_positions=100, extra={"layer_norm_eps": 1e-5}
    )
    classifier, tokenizer = toy_classifier(architecture=wide, max_length=256)
    config = classifier.encoder.config
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == (3, 48, 4)
    assert (config.intermediate_size, config.layer_norm_eps) == (192, 1e-5)
    assert tokenizer.max_length == 100


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "distilbert"])
def test_from_scratch_there_is_room_for_every_position(kind: str):
    small = ArchitectureConfig(model_type=kind, layers=1, hidden_size=32, heads=2, max_positions=40)
    classifier, tokenizer = toy_classifier(architecture=small)
    assert tokenizer.max_length == 40
    row = tokenizer.encode(["word " * 100])[0]
    ids = torch.from_numpy(row.ids).long()[None]
    assert classifier(ids, torch.ones_like(ids)).shape == (1, 2)


def test_building_is_a_function_of_the_seed_and_leaves_global_state_alone():
    before = torch.get_rng_state()
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    first, _ = toy_classifier(seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert (transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()) == (
        verbosity,
        bars,
    )
    second, _ = toy_classifier(seed=1)
    other, _ = toy_classifier(seed=2)
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(first.head.layers[1].weight, other.head.layers[1].weight)
    assert not torch.equal(next(first.encoder.parameters()), next(other.encoder.parameters()))


def test_heads_have_the_sizes_asked_for():
    classifier, _ = toy_classifier(("a", "b", "c"), head_sizes=(20, 10))
    shapes = [
        tuple(layer.weight.shape) for layer in classifier.head.layers if isinstance(layer, torch.nn.Linear)
    ]
    assert shapes == [(20, 32), (10, 20), (3, 10)]
    plain, _ = toy_classifier()
    assert [tuple(p.shape) for p in plain.head.parameters() if p.ndim == 2] == [(32, 32), (32, 32), (2, 32)]


def test_attention_is_the_one_with_quick_dropout():
    classifier, _ = toy_classifier()
    assert classifier.encoder.config._attn_implementation == ATTENTION


def test_loading_a_checkpoint_reports_nothing_by_itself(
    masked_lm: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    capfd.readouterr()
    with caplog.at_level(logging.WARNING):
        _build(masked_lm)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_unknown_keys_of_the_model_table_are_refused():
    with pytest.raises(ValueError, match="Extra inputs"):
        toy_model_config(poling="mean")


@pytest.mark.parametrize("sizes", [(), (0,), (8, -1)])
def test_a_head_without_width_is_refused(sizes):
    with pytest.raises(ValueError, match="head_sizes"):
        toy_model_config(head_sizes=sizes)


@pytest.mark.slow
def test_the_packaged_encoder_builds_whole():
    classifier, tokenizer, notes = build(ModelConfig(), ("a", "b"), EncodeConfig(), seed=0)
    assert notes.sentences == ()
    assert (tokenizer.max_length, tokenizer.pad_side) == (512, "right")
    assert len(classifier.encoder.encoder.layer) == 6
