from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.toy import BACKBONE
from textmill.core.seeds import numpy_generator
from textmill.encode.source import find_source
from textmill.train.preflight.vocabulary import find_in_kinship, measure_kinship, read_vocabulary


@pytest.fixture(scope="module")
def pretrained():
    folder = find_source(BACKBONE, with_weights=True)
    weights = load_file(next(folder.glob("*.safetensors")))
    embedding = next(weight for name, weight in weights.items() if "word_embeddings" in name)
    return read_vocabulary((folder / "tokenizer.json").read_bytes()), embedding.astype(np.float32)


def test_a_tokenizer_with_its_own_weights_is_kin(pretrained):
    kinship = measure_kinship(*pretrained)
    assert kinship.num_pairs == 4000
    assert kinship.related > kinship.chance + 0.3
    assert list(find_in_kinship(kinship)) == []


@pytest.mark.parametrize("fault", ["permuted", "shifted", "random"])
def test_a_tokenizer_of_another_model_of_like_size_is_found(pretrained, fault):
    vocabulary, embedding = pretrained
    rng = numpy_generator(0, "test")
    foreign = {
        "permuted": lambda: rng.permutation(embedding),
        "shifted": lambda: np.roll(embedding, 1, axis=0),
        "random": lambda: rng.normal(size=embedding.shape).astype(np.float32),
    }[fault]()
    assert [f.kind for f in find_in_kinship(measure_kinship(vocabulary, foreign))] == ["foreign_tokenizer"]


def test_a_vocabulary_without_related_words_says_nothing():
    vocabulary = {f"x{n}": n for n in range(500)}
    embedding = numpy_generator(0, "test").normal(size=(500, 8)).astype(np.float32)
    assert list(find_in_kinship(measure_kinship(vocabulary, embedding))) == []


def test_a_unigram_vocabulary_is_read():
    assert read_vocabulary(b'{"model": {"vocab": [["<unk>", 0.0], ["a", -1.5]]}}') == {"<unk>": 0, "a": 1}
