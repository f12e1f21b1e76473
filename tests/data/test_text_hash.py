from __future__ import annotations

import hashlib

import numpy as np

from textmill.data.text_hash import hash_label_sets, hash_names, hash_texts, positions


def test_a_text_has_the_head_of_its_salted_sha_256() -> None:
    expected = int.from_bytes(hashlib.sha256("textmill split 1\0好".encode()).digest()[:8], "big")
    assert hash_texts(["好"]).tolist() == [expected]
    assert float(positions(hash_texts(["好"]))[0]) == (expected >> 16) / 2**48


def test_moving_a_character_gives_another_number() -> None:
    texts = hash_texts([("ab", "c"), ("a", "bc"), "abc", ("", "abc"), ("abc", "")])
    labels = hash_label_sets([("a", "bc"), ("ab", "c"), ("abc",), ("bc", "a"), ()])
    assert len(set(texts.tolist())) == len(set(labels.tolist())) == 5


def test_nothing_has_no_numbers() -> None:
    for found in (hash_texts([]), hash_names([]), hash_label_sets([])):
        assert found.dtype == np.uint64
        assert found.shape == (0,)
