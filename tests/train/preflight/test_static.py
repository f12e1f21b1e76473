from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.toy import toy_classifier
from textmill.core.errors import ModelError
from textmill.encode.config import EncodeConfig
from textmill.model.backbone import save_encoder
from textmill.model.build import build
from textmill.model.config import ModelConfig
from textmill.train.config import TrainConfig
from textmill.train.preflight.static import find_before_steps, find_foreign_tokenizer, find_in_lr
from textmill.train.preflight.vocabulary import find_in_sizes


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A small pretrained model on disk."""
    folder = tmp_path_factory.mktemp("checkpoint")
    classifier, tokenizer = toy_classifier()
    save_encoder(classifier.encoder, folder)
    tokenizer.save(folder)
    return folder


def built_from(folder: Path, **model):
    return build(ModelConfig(backbone=str(folder), **model), ("a", "b"), EncodeConfig(max_length=64), 0)


def with_renamed(checkpoint: Path, folder: Path, old: str, new: str) -> Path:
    shutil.copytree(checkpoint, folder)
    weights = load_file(folder / "model.safetensors")
    renamed = {name.replace(old, new): weight for name, weight in weights.items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_weights_under_another_name_are_found(checkpoint, tmp_path):
    folder = with_renamed(checkpoint, tmp_path / "x", "encoder.layer.1.", "layers.1.")
    found = find_before_steps(*built_from(folder), TrainConfig())
    assert [finding.kind for finding in found] == ["weights_not_loaded"]
    assert found[0].level == "error"
    assert "encoder.layer.1." in found[0].message
    assert "layers.1." in found[0].message


def test_one_missing_weight_is_a_warning(checkpoint, tmp_path):
    folder = with_renamed(checkpoint, tmp_path / "x", "embeddings.LayerNorm.bias", "embeddings.norm.b")
    found = find_before_steps(*built_from(folder), TrainConfig())
    assert [(finding.kind, finding.level) for finding in found] == [("weights_not_loaded", "warning")]


def test_a_checkpoint_with_another_prefix_is_refused_at_once(checkpoint, tmp_path):
    folder = with_renamed(checkpoint, tmp_path / "x", "e", "model.e")
    with pytest.raises(ModelError, match="weights missing"):
        built_from(folder)


def test_a_sound_checkpoint_has_no_findings(checkpoint):
    assert find_before_steps(*built_from(checkpoint), TrainConfig()) == []


def test_cls_without_a_token_for_the_whole_text_is_found(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint, tmp_path / "x")
    table = json.loads((folder / "tokenizer.json").read_text())
    table["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(table))
    parts = built_from(folder, pooling="cls")
    assert [finding.kind for finding in find_before_steps(*parts, TrainConfig())] == ["pooling"]
    assert find_before_steps(*built_from(folder, pooling="mean"), TrainConfig()) == []


@pytest.mark.parametrize(
    ("lr", "is_pretrained", "num_weights", "kind"),
    [
        (2e-5, True, 22e6, None),
        (1e-3, True, 110e6, "lr_high"),
        (2e-4, True, 335e6, "lr_high"),
        (1e-8, True, 110e6, "lr_low"),
        (5e-3, False, 1e5, None),
        (1e-1, False, 1e5, "lr_high"),
    ],
)
def test_a_rate_far_outside_what_such_backbones_take_is_found(lr, is_pretrained, num_weights, kind):
    found = [finding.kind for finding in find_in_lr(lr, is_pretrained, int(num_weights))]
    assert found == ([kind] if kind else [])


def test_sizes_that_do_not_fit_are_found():
    assert [f.level for f in find_in_sizes(30_522, 30_000)] == ["error"]
    assert [f.level for f in find_in_sizes(30_522, 50_265)] == ["warning"]
    assert list(find_in_sizes(128_000, 128_100)) == []
    assert list(find_in_sizes(30_522, 30_522)) == []


def test_an_embedding_that_was_never_trained_looks_foreign_only_if_it_claims_to_be_pretrained(checkpoint):
    found = find_foreign_tokenizer(*built_from(checkpoint))  # the toy was saved untrained
    assert [finding.kind for finding in found] == ["foreign_tokenizer"]
    classifier, tokenizer, notes = built_from(checkpoint)
    scratch = type(notes)(notes.sentences, None)
    assert find_foreign_tokenizer(classifier, tokenizer, scratch) == []
