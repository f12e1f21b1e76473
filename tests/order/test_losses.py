from __future__ import annotations

import json

import numpy as np

from textmill.order.losses import EpochLosses, pack, unpack


def test_a_row_that_comes_twice_has_the_mean_and_one_that_does_not_has_none():
    losses = EpochLosses(["a", "b", "c"])
    losses.add(["b", "a"], np.array([1.0, 0.5], np.float32))
    losses.add(["b", "b"], np.array([2.0, 3.0], np.float32))
    np.testing.assert_array_equal(losses.means(), [0.5, 2.0, np.nan])
    losses.clear()
    assert np.isnan(losses.means()).all()


def test_windows_of_one_text_share_their_mean():
    losses = EpochLosses(["a", "a", "b"])
    losses.add(["a", "b"], np.array([1.0, 4.0], np.float32))
    losses.add(["a"], np.array([2.0], np.float32))
    np.testing.assert_array_equal(losses.means(), [1.5, 1.5, 4.0])


def test_a_resume_inside_an_epoch_is_exact():
    whole, cut = EpochLosses(["a", "b"]), EpochLosses(["a", "b"])
    for each in (whole, cut):
        each.add(["a", "b"], np.array([0.1, 0.7], np.float32))
    again = EpochLosses(["a", "b"])
    again.restore(json.loads(json.dumps(cut.state())))
    for each in (whole, again):
        each.add(["a"], np.array([0.3], np.float32))
    np.testing.assert_array_equal(whole.means(), again.means())


def test_packed_values_are_exact():
    values = np.array([np.pi, -0.0, np.nan, 1e-300])
    np.testing.assert_array_equal(unpack(pack(values), 4), values)
