import numpy as np
from torch.utils.data import DataLoader

from textmill.integrations.sampler import OrderedSampler
from textmill.order.config import OrderConfig


def data(num=120):
    labels = [row % 2 for row in range(num)]
    texts = [
        ("lovely film " if label else "awful film ") + "and so on " * (row % 9)
        for row, label in enumerate(labels)
    ]
    return texts, labels


def test_every_epoch_holds_every_row_once():
    sampler = OrderedSampler(*data())
    for _ in range(3):
        assert sorted(sampler) == list(range(120))
    assert len(sampler) == 120


def test_the_first_batches_are_short_and_balanced_and_later_epochs_shuffled():
    texts, labels = data()
    sampler = OrderedSampler(texts, labels, seed=3)
    first, second = list(sampler), list(sampler)
    head = first[:36]  # 30 % of the rows
    assert all(abs(sum(labels[row] for row in head[at : at + 4]) - 2) <= 1 for at in range(0, 36, 4))
    lengths = np.array([len(text) for text in texts])
    assert lengths[head].mean() < 0.7 * lengths[first[36:]].mean()
    assert abs(lengths[second[:36]].mean() / lengths.mean() - 1) < 0.35


def test_an_epoch_is_a_function_of_seed_and_number():
    sampler = OrderedSampler(*data(), seed=5)
    epochs = [list(sampler) for _ in range(3)]
    sampler.set_epoch(1)
    assert list(sampler) == epochs[1]
    assert list(OrderedSampler(*data(), seed=5)) == epochs[0]
    assert list(OrderedSampler(*data(), seed=6)) != epochs[0]


def test_it_works_in_a_loader_with_any_strategy():
    texts, labels = data()
    for strategy in ("shuffle", "length-only", "label-sorted"):
        sampler = OrderedSampler(texts, labels, config=OrderConfig(strategy=strategy))
        batches = list(DataLoader(list(range(120)), batch_size=16, sampler=sampler))
        assert sum(len(batch) for batch in batches) == 120
