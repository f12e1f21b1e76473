from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.toy import BACKBONE, toy_examples
from textmill.core.files import sha256_file
from textmill.encode.compare_measures import measure, renyi_efficiency, working_copy
from textmill.encode.source import find_source
from textmill.encode.tokenizer import Tokenizer, load_tokenizer
from textmill.encode.train_tokenizer import train_tokenizer

TEXTS = [str(example.text) for example in toy_examples(40)]


def test_the_efficiency_agrees_with_the_formula_written_out():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 50, 200)
    seen = [int(count) for count in counts if count]
    total = sum(seen)
    summed = math.fsum((count / total) ** 2.5 for count in seen)
    entropy = math.log2(summed) / (1 - 2.5)  # in bits; the base cancels
    assert renyi_efficiency(counts) == pytest.approx(entropy / math.log2(len(seen)), rel=1e-12)


def test_even_use_is_fully_efficient_and_one_token_is_defined():
    assert renyi_efficiency(np.full(1000, 7)) == pytest.approx(1.0)
    assert renyi_efficiency(np.array([5, 0, 0])) == 1.0
    assert renyi_efficiency(np.array([1000, 1, 1])) < 0.01


def test_counts_agree_with_a_naive_count():
    tokenizer = load_tokenizer(BACKBONE, 512)
    texts = ["Unbelievably good film!", "a naïve story about hospitalization", "好 film 😀"]
    found = measure(tokenizer, texts)
    working = working_copy(tokenizer)
    rows = [working.encode(text, add_special_tokens=False) for text in texts]
    tokens = [token for row in rows for token in row.tokens]
    num_characters = sum(len(text.replace(" ", "")) for text in texts)
    assert found.characters_per_token == pytest.approx(num_characters / len(tokens))
    assert found.unk_share == pytest.approx(tokens.count("[UNK]") / len(tokens))
    assert found.unk_share > 0
    assert found.vocab_used_share == pytest.approx(len(Counter(tokens)) / tokenizer.vocab_size)
    pieces = {
        word: len(working.encode(word, add_special_tokens=False).ids)
        for text in texts
        for word in text.split()
    }
    pieces["film!"] -= 1  # the mark is no word
    del pieces["😀"]
    assert found.tokens_per_word == pytest.approx(sum(pieces.values()) / len(pieces))
    assert found.continued_share == pytest.approx(sum(num > 1 for num in pieces.values()) / len(pieces))


def test_bytes_lose_nothing_and_know_no_unk(tmp_path: Path):
    texts = ["好看 😀 naïve", *TEXTS]
    tokenizer = Tokenizer.from_file(train_tokenizer("bpe", 400, texts, tmp_path))
    found = measure(tokenizer, texts)
    assert found.unk_share == 0
    assert found.whole_share == 1
    assert set(found.losses.values()) == {"nothing"}
    assert found.tokens_per_word >= 1


def test_truncation_is_counted_with_the_framing_tokens():
    tokenizer = load_tokenizer(BACKBONE, 8)
    found = measure(tokenizer, ["a b c d e f", "a b c d e f g"])
    assert found.lengths.truncated_share == 0.5
    assert found.lengths.longest == 9


def test_measuring_changes_no_tokenizer(tmp_path: Path):
    source = find_source(BACKBONE, with_weights=False) / "tokenizer.json"
    before = sha256_file(source)
    tokenizer = load_tokenizer(BACKBONE, 16)
    rows = [row.ids.tolist() for row in tokenizer.encode(TEXTS)]
    measure(tokenizer, TEXTS)
    assert sha256_file(source) == before
    tokenizer.save(tmp_path)
    assert sha256_file(tmp_path / "tokenizer.json") == before
    assert [row.ids.tolist() for row in tokenizer.encode(TEXTS)] == rows
