import hashlib

import pytest
import torch

from tests.runtime.bundles import prepare_toy_bundle
from tests.toy import toy_classifier
from textmill.core.errors import ModelError
from textmill.core.types import Example
from textmill.data.config import CleanConfig
from textmill.model.files import load
from textmill.runtime.assemble import prepare_bundle
from textmill.runtime.encoder import TextEncoder
from textmill.runtime.gate_rows import read_gate_rows, write_gate_rows
from textmill.store.registry import Store


def test_a_prepared_folder_publishes_and_opens(tmp_path):
    facts = prepare_toy_bundle(tmp_path / "source", num_gate_rows=7)
    store = Store(tmp_path / "store", "m")
    bundle = store.bundle(store.publish(tmp_path / "source", facts))
    bundle.verify()
    assert {"model.onnx", "golden.json", "gate.parquet", "model/textmill.json"} <= set(bundle.manifest.files)
    classifier, tokenizer = load(bundle.path / "model")
    signature = bundle.manifest.signature
    assert classifier.labels == signature.labels
    assert signature.tokenizer == hashlib.sha256(tokenizer.json_bytes).hexdigest()
    assert signature.tokenizer == bundle.manifest.files["model/tokenizer.json"].sha256
    assert signature.max_length == 64


def test_extra_files_and_cleaning_rules_are_kept(tmp_path):
    (tmp_path / "card.md").write_text("# card")
    classifier, tokenizer = toy_classifier(max_length=12)
    prepare_bundle(
        tmp_path / "source",
        classifier,
        tokenizer,
        clean=CleanConfig(entities=False),
        golden_texts=["a &amp; b"],
        gate_rows=[],
        metrics={},
        extra=[tmp_path / "card.md"],
    )
    assert (tmp_path / "source" / "card.md").read_text() == "# card"
    assert TextEncoder.open(tmp_path / "source").clean == CleanConfig(entities=False)


def test_nothing_is_left_when_the_model_is_broken(tmp_path):
    classifier, tokenizer = toy_classifier(max_length=12)
    with torch.no_grad():
        next(classifier.head.parameters()).fill_(float("inf"))
    with pytest.raises(ModelError, match="finite"):
        prepare_bundle(
            tmp_path / "source",
            classifier,
            tokenizer,
            clean=CleanConfig(),
            golden_texts=[],
            gate_rows=[],
            metrics={},
        )
    assert list(tmp_path.iterdir()) == []


def test_gate_rows_are_read_back_as_they_were(tmp_path):
    examples = [
        Example(id="1", text="null", labels=("NA",)),
        Example(id="2", text=("one", "two"), labels=("None",)),
        Example(id="3", text="", labels=("",)),
    ]
    write_gate_rows(tmp_path / "gate.parquet", examples)
    assert read_gate_rows(tmp_path / "gate.parquet") == examples
    write_gate_rows(tmp_path / "gate.parquet", [])
    assert read_gate_rows(tmp_path / "gate.parquet") == []
