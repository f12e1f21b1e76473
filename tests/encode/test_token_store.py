"""Tokens in flat files against rows as arrays of their own."""

from __future__ import annotations

import csv
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.conftest import Listener
from tests.toy import BACKBONE, toy_examples
from textmill.core.types import Example
from textmill.data.config import DataConfig
from textmill.data.mapped import MappedExamples
from textmill.data.prepare import prepare
from textmill.encode import token_store
from textmill.encode.config import LongText
from textmill.encode.padding import pad
from textmill.encode.token_store import TokenStore, store_tokens
from textmill.encode.tokenizer import FlatTokens, Tokenizer, load_tokenizer


def tokenizer_with(long_text: LongText = "head", max_length: int = 24) -> Tokenizer:
    return load_tokenizer(BACKBONE, max_length).with_long_text(long_text, 0.25, "mean")


def mapped_rows(folder: Path, pairs: bool = False) -> MappedExamples:
    with open(folder / "t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "other", "label"])
        writer.writerows([(e.text, f"second of {e.id}", e.labels[0]) for e in toy_examples(90)])
    config = DataConfig(train="t.csv", text_pair="other" if pairs else None)
    task = "pairs" if pairs else "classification"
    train = prepare(config, folder, cache=folder / "cache", task=task).train  # type: ignore[arg-type]
    assert isinstance(train, MappedExamples)
    return train


def check_equal(store: TokenStore, examples: list[Example], tokenizer: Tokenizer) -> None:
    rows, owner = tokenizer.cut([example.text for example in examples])
    assert len(store) == len(rows)
    np.testing.assert_array_equal(store.owner, owner)
    np.testing.assert_array_equal(store.lengths, [len(row.ids) for row in rows])
    chosen = np.random.default_rng(0).permutation(len(rows))[:17]
    expected = pad(
        [rows[row] for row in chosen], tokenizer.pad_id, tokenizer.pad_side, tokenizer.has_type_ids
    )
    found = store.padded(chosen.astype(np.int64))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == np.int64
    for place in (0, -1):
        np.testing.assert_array_equal(store[place].ids, rows[place].ids)


@pytest.mark.parametrize("long_text", ["head", "tail", "head-tail", "windows"])
@pytest.mark.parametrize("pairs", [False, True], ids=["one text", "pairs"])
def test_tokens_are_those_of_the_tokenizer(tmp_path: Path, long_text: LongText, pairs: bool) -> None:
    tokenizer = tokenizer_with(long_text)
    train = mapped_rows(tmp_path, pairs)
    for _ in range(2):  # built, then opened
        check_equal(store_tokens(train, tokenizer), list(train), tokenizer)
    check_equal(store_tokens(list(train), tokenizer), list(train), tokenizer)


def test_ids_take_two_bytes_where_the_vocabulary_allows(tmp_path: Path) -> None:
    store = store_tokens(mapped_rows(tmp_path), tokenizer_with())
    assert store.ids.dtype == np.uint16
    assert store.type_ids is None


def test_they_are_cut_once_for_each_tokenizer_and_setting(tmp_path: Path) -> None:
    train = mapped_rows(tmp_path)
    for length in (24, 24, 16):
        store_tokens(train, tokenizer_with(max_length=length))
    listener = Listener()
    store_tokens(train, tokenizer_with(), listener)
    assert len(list((tmp_path / "cache").glob("tokens-*"))) == 2
    assert "used again" in listener.said[0]


def test_a_store_that_lost_bytes_is_built_again(tmp_path: Path) -> None:
    train = mapped_rows(tmp_path)
    store_tokens(train, tokenizer_with())
    file = next((tmp_path / "cache").rglob("ids.bin"))
    os.truncate(file, file.stat().st_size - 2)
    check_equal(store_tokens(train, tokenizer_with()), list(train), tokenizer_with())


def test_no_rows_are_no_tokens(tmp_path: Path) -> None:
    train = mapped_rows(tmp_path)
    for examples in (train[:0], []):
        assert len(store_tokens(examples, tokenizer_with())) == 0


def test_tokens_that_are_written_are_not_held_in_memory(tmp_path: Path) -> None:
    tokenizer = tokenizer_with()
    ids: list[weakref.ref[Any]] = []

    def blocks() -> Iterator[FlatTokens]:
        for _ in range(4):
            block = tokenizer.cut_flat(["a film", "another film"])
            ids.append(weakref.ref(block.ids))
            yield block
            del block
            assert all(held() is None for held in ids[:-1])

    token_store._write(tmp_path, tokenizer, blocks())
    assert len(ids) == 4
