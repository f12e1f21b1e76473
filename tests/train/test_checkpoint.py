import resource

import pytest
import torch

from tests.toy import toy_classifier
from tests.train.parts import toy_config
from textmill.core.errors import StoreError
from textmill.train.best import Best
from textmill.train.checkpoint import Counters, newest_checkpoint, save_checkpoint
from textmill.train.optim import build_optimizer


def stepped(optimizer_name="adamw"):
    """A classifier and an optimizer that has made one step."""
    classifier, _ = toy_classifier()
    optimizer = build_optimizer(classifier, toy_config(optimizer=optimizer_name))
    for parameter in classifier.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return classifier, optimizer


@pytest.mark.parametrize("name", ["adamw", "adam", "rmsprop"])
def test_what_is_saved_comes_back(tmp_path, name):
    classifier, optimizer = stepped(name)
    counters = Counters(
        step=7, epoch=1, position=2, best=Best(5, 1, 0.5, 1), rows=56, tokens=9, cells=10, seconds=0.5
    )
    with torch.random.fork_rng(devices=[]):
        save_checkpoint(tmp_path, classifier, optimizer, counters, {"data": [1]}, keep=2)
        drawn = torch.rand(3)
        found = newest_checkpoint(tmp_path)
        assert found is not None
        other, _ = toy_classifier(seed=9)
        again = build_optimizer(other, toy_config(optimizer=name))
        found.restore(other, again, torch.device("cpu"))
        assert torch.equal(torch.rand(3), drawn)
    assert (found.counters, found.identity) == (counters, {"data": [1]})
    for one, two in zip(classifier.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        for key, value in optimizer.state[one].items():
            assert torch.equal(value, again.state[two][key]), key


def test_a_full_disk_is_one_clear_error_and_the_earlier_checkpoint_stays(tmp_path):
    classifier, optimizer = stepped()
    save_checkpoint(tmp_path, classifier, optimizer, Counters(step=1), {}, keep=2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError, match=r"too large.*step-00000002"):
            save_checkpoint(tmp_path, classifier, optimizer, Counters(step=2), {}, keep=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.counters.step == 1
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]


def test_no_checkpoint_is_no_error(tmp_path):
    assert newest_checkpoint(tmp_path) is None
