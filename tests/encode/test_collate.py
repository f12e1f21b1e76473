"""Rows to batches of tensors, also inside other people's loaders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from tests.toy import toy_classifier, toy_examples, toy_labels
from textmill.core.errors import DataError
from textmill.core.types import Example
from textmill.encode.collate import Collator
from textmill.encode.padding import lengths_of
from textmill.model.classifier import Classifier


@pytest.fixture(scope="module")
def parts():
    return toy_classifier()


def test_it_is_a_collate_fn_of_a_data_loader(parts):
    _, tokenizer = parts
    examples = toy_examples(10)
    loader = DataLoader(examples, batch_size=4, collate_fn=Collator(tokenizer, toy_labels()))
    batches = list(loader)
    assert [len(batch["labels"]) for batch in batches] == [4, 4, 2]
    for batch in batches:
        assert set(batch) == {"input_ids", "attention_mask", "token_type_ids", "labels"}
        assert all(tensor.is_contiguous() and tensor.dtype == torch.int64 for tensor in batch.values())
    assert batches[0]["labels"].tolist() == [0, 1, 0, 1]


def test_rows_of_a_hugging_face_data_set_give_the_same_tensors(parts):
    _, tokenizer = parts
    examples = toy_examples(4)
    encoded = tokenizer.encode([example.text for example in examples])
    rows = [
        {"input_ids": row.ids.tolist(), "token_type_ids": row.type_ids.tolist(), "label": index % 2}
        for index, row in enumerate(encoded)
    ]
    collator = Collator(tokenizer, toy_labels())
    ours, theirs = collator(examples), collator(rows)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_unlabelled_rows_have_no_labels(parts):
    _, tokenizer = parts
    assert "labels" not in Collator(tokenizer)([Example("1", "a text")])


def test_a_batch_knows_ids_and_lengths(parts):
    _, tokenizer = parts
    encoded = tokenizer.encode(["short", "a longer text"])
    batch = Collator(tokenizer).batch(encoded, torch.tensor([1, 0]), ["x", "y"])
    assert batch.ids == ("x", "y")
    assert batch.lengths.tolist() == lengths_of(encoded).tolist()
    assert torch.equal(batch.attention_mask.sum(1), batch.lengths)


@pytest.mark.parametrize(
    ("labels", "hint"), [(("clas0",), "class0"), ((), "0 labels"), (("a", "b"), "2 labels")]
)
def test_a_label_that_does_not_fit_names_the_example(parts, labels: tuple[str, ...], hint: str):
    _, tokenizer = parts
    with pytest.raises(DataError, match=hint) as caught:
        Collator(tokenizer, toy_labels())([Example("good", "x", ("class0",)), Example("row7", "x", labels)])
    assert "row7" in str(caught.value)


class _WithLoss(nn.Module):
    """A model as Trainer wants it: it returns its own loss."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        logits = self.classifier(input_ids, attention_mask, token_type_ids)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


def test_it_is_a_data_collator_of_transformers_trainer(tmp_path: Path):
    from transformers import Trainer, TrainingArguments

    classifier, tokenizer = toy_classifier()
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    before = classifier.head.layers[-1].weight.detach().clone()
    trainer = Trainer(
        model=_WithLoss(classifier),
        args=arguments,
        train_dataset=toy_examples(8),
        data_collator=Collator(tokenizer, toy_labels()),
    )
    result = trainer.train()
    assert result.global_step == 2
    assert np.isfinite(result.training_loss)
    assert not torch.equal(before, classifier.head.layers[-1].weight)
