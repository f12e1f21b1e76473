from __future__ import annotations

import numpy as np
import pytest

from textmill.train.preflight.mix import find_in_mix, measure_mix


def test_sorted_labels_without_shuffle_give_batches_of_one_class():
    labels = np.repeat([0, 1], 200)
    batches = np.split(np.arange(400), 20)
    mix = measure_mix(batches, labels)
    assert (mix.single_share, mix.num_batches) == (1.0, 20)
    assert mix.changes_share < 0.02
    assert [finding.level for finding in find_in_mix(mix, "ordered-plain")] == ["error"]


def test_rows_by_chance_give_what_chance_gives():
    labels = np.random.default_rng(0).integers(0, 2, 4000)
    mix = measure_mix(np.split(np.random.default_rng(1).permutation(4000), 1000), labels)
    assert mix.single_share == pytest.approx(mix.expected_share, abs=0.08)
    assert mix.changes_share == pytest.approx(1.0, abs=0.1)
    assert list(find_in_mix(mix, "shuffle")) == []


def test_rare_classes_and_batches_of_one_row_are_no_fault():
    labels = np.zeros(100, dtype=np.int64)
    labels[:2] = 1
    assert list(find_in_mix(measure_mix(np.split(np.arange(100), 10), labels), "shuffle")) == []
    assert measure_mix([np.array([0]), np.array([1])], labels).num_batches == 0


def test_one_small_batch_of_one_class_is_not_reported():
    labels = np.array([0, 1] * 8 + [1, 1])
    batches = [np.arange(0, 6), np.arange(6, 11), np.arange(11, 16), np.arange(16, 18)]
    mix = measure_mix(batches, labels)
    assert mix.single_share == 0.25
    assert list(find_in_mix(mix, "shuffle")) == []


@pytest.mark.parametrize("strategy", ["shuffle", "ordered", "label-sorted"])
def test_the_next_step_names_another_strategy_than_the_one_in_use(strategy: str):
    mix = measure_mix(np.split(np.arange(400), 20), np.repeat([0, 1], 200))
    (finding,) = find_in_mix(mix, strategy)
    assert f'"{strategy}"' not in finding.fix
