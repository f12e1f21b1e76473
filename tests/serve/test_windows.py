from __future__ import annotations

import numpy as np
import pytest

from tests.shapes import SHAPES
from textmill.core.errors import RequestError
from textmill.data.config import CleanConfig
from textmill.encode.long_text import Cut
from textmill.encode.padding import Encoded
from textmill.runtime.encoder import TextEncoder
from textmill.serve.windows import check_windows, pooled

ROW = Encoded(np.array([1], np.int32), None)


def _cut(*owner: int) -> Cut:
    return Cut([ROW] * len(owner), np.array(owner))


def test_windows_are_bounded_but_as_many_texts_as_are_allowed_are_not():
    check_windows(_cut(*range(9)), 9, max_windows=4)
    check_windows(_cut(0, 1, 1, 2), 3, max_windows=4)
    with pytest.raises(RequestError, match="5, of which 3 in item 2") as caught:
        check_windows(_cut(0, 1, 2, 2, 2), 3, max_windows=4)
    assert caught.value.status == 413


@pytest.mark.parametrize("name", ["windows", "windows, max", "windows, multilabel"])
def test_rows_of_one_text_are_pooled_and_whole_texts_pass_to_the_bit(name):
    classifier, tokenizer = SHAPES[name].parts()
    encoder = TextEncoder(classifier.labels, tokenizer, CleanConfig(), classifier.task, classifier.decision)
    rows = [[0.1, 0.9], [0.3, 0.7], [0.8, 0.2]]
    assert pooled(encoder, rows, _cut(0, 1, 2), 3) is rows
    first, last = pooled(encoder, rows, _cut(0, 0, 1), 2)
    expected = {
        "windows": [0.2, 0.8],
        "windows, max": [0.25, 0.75],
        "windows, multilabel": [0.3, 0.9],
    }
    np.testing.assert_allclose(first, expected[name], atol=1e-6)
    np.testing.assert_allclose(last, rows[2], atol=1e-6)
