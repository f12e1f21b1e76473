"""Figures of a state: one row left over, several labels, windows."""

import numpy as np
import torch

from tests.toy import toy_classifier, toy_examples
from textmill.core.types import Example
from textmill.model.files import load, read_decision, save
from textmill.model.predictor import TorchPredictor
from textmill.train.config import TrainConfig
from textmill.train.device import choose_hardware
from textmill.train.rows import encode_rows
from textmill.train.validate import validate

HARDWARE = choose_hardware(TrainConfig(device="cpu", threads=1))


def figures(classifier, tokenizer, examples, is_multilabel=False):
    rows = encode_rows(examples, tokenizer, classifier.labels, is_multilabel=is_multilabel)
    return rows, validate(classifier, rows, HARDWARE, max_tokens=512, max_rows=32)


def test_the_loss_is_the_mean_over_33_rows_of_two_classes():
    classifier, tokenizer = toy_classifier()
    examples = toy_examples(33)
    _, found = figures(classifier, tokenizer, examples)
    scores = TorchPredictor(classifier, tokenizer).scores([example.text for example in examples])
    truth = [classifier.labels.index(example.labels[0]) for example in examples]
    assert np.isclose(found.loss, -np.log(scores[range(33), truth]).mean(), atol=1e-6)


def test_the_loss_is_the_mean_over_33_rows_of_one_class_that_applies_or_not():
    classifier, tokenizer = toy_classifier(("class0",), task="multilabel")
    examples = [
        Example(each.id, each.text, ("class0",) if place % 3 else ())
        for place, each in enumerate(toy_examples(33))
    ]
    _, found = figures(classifier, tokenizer, examples, is_multilabel=True)
    scores = TorchPredictor(classifier, tokenizer).scores([example.text for example in examples])
    right = np.where([bool(example.labels) for example in examples], scores[:, 0], 1 - scores[:, 0])
    assert scores.shape == (33, 1)
    assert np.isclose(found.loss, -np.log(right).mean(), atol=1e-6)
    assert found.decision.is_multilabel
    assert found.decision.thresholds is not None


def test_one_text_alone_has_the_scores_that_it_has_in_a_batch():
    classifier, tokenizer = toy_classifier(("class0",), task="multilabel")
    predictor = TorchPredictor(classifier, tokenizer)
    texts = [example.text for example in toy_examples(9)]
    np.testing.assert_allclose(
        predictor.scores(texts), np.concatenate([predictor.scores([text]) for text in texts]), atol=1e-5
    )


def test_windows_are_judged_by_their_pooled_scores():
    classifier, tokenizer = toy_classifier(max_length=12)
    windows = tokenizer.with_long_text("windows", 0.25, "mean")
    examples = toy_examples(20)
    rows, found = figures(classifier, windows, examples)
    assert rows.num_examples == 20 < len(rows)
    scores = TorchPredictor(classifier, windows).scores([example.text for example in examples])
    truth = [classifier.labels.index(example.labels[0]) for example in examples]
    assert np.isclose(found.loss, -np.log(scores[range(20), truth]).mean(), atol=1e-6)
    assert found.accuracy == (scores.argmax(axis=1) == truth).mean()
    batch = rows.batch(np.arange(len(rows)))
    assert batch.weights is not None
    assert torch.isclose(batch.weights.mean(), torch.tensor(1.0))


def test_a_saved_model_keeps_task_thresholds_and_rule(tmp_path):
    classifier, tokenizer = toy_classifier(task="multilabel")
    examples = [Example(each.id, each.text, each.labels) for each in toy_examples(40)]
    _, found = figures(classifier, tokenizer, examples, is_multilabel=True)
    classifier.decision = found.decision
    save(classifier, tokenizer.with_long_text("windows", 0.5, "max"), tmp_path / "model")
    again, cutting = load(tmp_path / "model")
    assert again.task == "multilabel"
    assert again.decision == found.decision == read_decision(tmp_path / "model")
    assert (cutting.settings.long_text, cutting.settings.window_pool) == ("windows", "max")
