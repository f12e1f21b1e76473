"""A model as a folder."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.toy import toy_classifier, toy_examples
from textmill.core.errors import ModelError, StoreError
from textmill.model.files import load, read_facts, read_labels, save
from textmill.model.predictor import TorchPredictor

_TEXTS = [example.text for example in toy_examples(9)]


@pytest.mark.parametrize(
    "changes", [{}, {"pooling": "flatten"}, {"head": "linear", "pooling": "max"}, {"head_sizes": (9, 7)}]
)
def test_a_loaded_model_scores_like_the_saved_one(tmp_path: Path, changes: dict[str, object]):
    classifier, tokenizer = toy_classifier(("no", "yes", "电影"), **changes)
    save(classifier, tokenizer, tmp_path / "model", {"clean": {"unicode": True}})
    again, tokenizer_again = load(tmp_path / "model")
    assert again.labels == ("no", "yes", "电影")
    assert again.config == classifier.config
    assert not again.training
    ours, theirs = TorchPredictor(classifier, tokenizer), TorchPredictor(again, tokenizer_again)
    np.testing.assert_array_equal(ours.scores(_TEXTS), theirs.scores(_TEXTS))
    assert read_facts(tmp_path / "model") == {"clean": {"unicode": True}}
    assert read_labels(tmp_path / "model") == ("no", "yes", "电影")


def test_transformers_loads_encoder_and_tokenizer_without_textmill(tmp_path: Path):
    classifier, tokenizer = toy_classifier()
    save(classifier, tokenizer, tmp_path / "model")
    encoder = transformers.AutoModel.from_pretrained(tmp_path / "model").eval()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    inputs = theirs(_TEXTS, truncation=True, max_length=64, padding=True, return_tensors="pt")
    with torch.inference_mode():
        wanted = classifier.encoder(**inputs).last_hidden_state
        found = encoder(**inputs).last_hidden_state
    torch.testing.assert_close(found, wanted)
    for ids, mask, row in zip(
        inputs["input_ids"], inputs["attention_mask"], tokenizer.encode(_TEXTS), strict=True
    ):
        assert ids[mask == 1].tolist() == row.ids.tolist()
    assert encoder.config.id2label == {0: "class0", 1: "class1"}


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_all_files_have_the_mode_that_the_umask_allows(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        save(*toy_classifier(), tmp_path / "model")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert modes == {0o666 & ~umask}


def test_saving_again_replaces_the_folder_and_leaves_nothing_else(tmp_path: Path):
    save(*toy_classifier(), tmp_path / "model")
    (tmp_path / "model" / "stray.txt").write_text("x")
    save(*toy_classifier(("x", "y", "z")), tmp_path / "model")
    assert read_labels(tmp_path / "model") == ("x", "y", "z")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not (tmp_path / "model" / "stray.txt").exists()


def test_a_folder_that_cannot_be_written_is_a_store_error(tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    classifier, tokenizer = toy_classifier()
    with pytest.raises((StoreError, NotADirectoryError)):
        save(classifier, tokenizer, tmp_path / "file" / "model")
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.parametrize("limit", [1_000, 1_000_000])
def test_a_full_disk_is_a_store_error_and_the_older_model_stays(tmp_path: Path, limit: int):
    save(*toy_classifier(), tmp_path / "model")
    classifier, tokenizer = toy_classifier(("x", "y"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(StoreError, match="File too large"):
            save(classifier, tokenizer, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_labels(tmp_path / "model") == ("class0", "class1")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_no_pickle_is_written(tmp_path: Path):
    save(*toy_classifier(), tmp_path / "model")
    kinds = {path.suffix for path in (tmp_path / "model").iterdir()}
    assert kinds == {".json", ".safetensors"}


@pytest.mark.parametrize(
    "name", ["head.safetensors", "model.safetensors", "tokenizer.json", "config.json", "textmill.json"]
)
def test_a_missing_or_cut_file_is_a_clear_error(tmp_path: Path, name: str):
    save(*toy_classifier(), tmp_path / "model")
    path = tmp_path / "model" / name
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ModelError):
        load(tmp_path / "model")
    path.unlink()
    with pytest.raises(ModelError):
        load(tmp_path / "model")


def test_a_newer_format_is_refused(tmp_path: Path):
    save(*toy_classifier(), tmp_path / "model")
    path = tmp_path / "model" / "textmill.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(ModelError, match="format 2"):
        load(tmp_path / "model")


def test_a_missing_weight_of_the_encoder_is_refused(tmp_path: Path):
    from safetensors.torch import load_file, save_file

    save(*toy_classifier(), tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    weights = load_file(path)
    del weights["encoder.layer.0.output.dense.bias"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ModelError, match="every weight"):
        load(tmp_path / "model")


def test_a_cut_encoder_loads_back_with_its_layers(tmp_path: Path):
    from tests.toy import BACKBONE
    from textmill.encode.config import EncodeConfig
    from textmill.model.build import build
    from textmill.model.config import ModelConfig

    save(*toy_classifier(), tmp_path / "whole")
    config = ModelConfig(backbone=str(tmp_path / "whole"), keep_layers=1)
    assert config.backbone != BACKBONE
    classifier, tokenizer, _ = build(config, ("a", "b"), EncodeConfig(max_length=64), seed=0)
    save(classifier, tokenizer, tmp_path / "cut")
    again, _ = load(tmp_path / "cut")
    assert again.encoder.config.num_hidden_layers == 1
