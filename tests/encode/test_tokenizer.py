"""The tokenizer door."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.toy import BACKBONE
from textmill.core.errors import DataError, ModelError
from textmill.encode.source import find_source
from textmill.encode.tokenizer import Tokenizer, load_tokenizer


@pytest.fixture(scope="module")
def source() -> Path:
    return find_source(BACKBONE, with_weights=False)


@pytest.fixture(scope="module")
def tokenizer(source: Path) -> Tokenizer:
    return load_tokenizer(source, 32)


def test_the_files_own_truncation_and_padding_have_no_effect(tokenizer: Tokenizer):
    assert json.loads(tokenizer.json_bytes)["truncation"]["max_length"] == 128
    assert tokenizer.count_tokens(["word " * 300, "word"]).tolist() == [302, 3]
    assert [len(row.ids) for row in tokenizer.encode(["word " * 300, "word"])] == [32, 3]


@pytest.mark.parametrize(
    "text", ["[PAD] [PAD] [PAD]", "great [SEP] not great", "</s>", "<|endoftext|>", "[CLS]"]
)
def test_special_tokens_in_a_text_are_plain_text(tokenizer: Tokenizer, text: str):
    ids = tokenizer.encode([text])[0].ids
    special = {0, 101, 102, 103}
    assert special.isdisjoint(ids[1:-1].tolist())
    assert ids[0] == 101
    assert ids[-1] == 102


def test_a_pair_keeps_exactly_its_own_separators(tokenizer: Tokenizer):
    row = tokenizer.encode([("a [SEP] b", "c [SEP]")])[0]
    assert (row.ids == 102).sum() == 2
    assert row.type_ids is not None
    assert set(row.type_ids.tolist()) == {0, 1}


def test_a_long_pair_loses_from_its_longer_part(tokenizer: Tokenizer):
    row = tokenizer.encode([("short one", "word " * 100)])[0]
    assert len(row.ids) == 32
    assert row.ids[:4].tolist() == tokenizer.encode(["short one"])[0].ids.tolist()


def test_a_long_text_equals_its_first_word_pieces(tokenizer: Tokenizer):
    long, short = tokenizer.encode(["word " * 200, "word " * 30])
    assert np.array_equal(long.ids, short.ids)


def test_saved_json_is_byte_equal_after_any_use(tokenizer: Tokenizer, source: Path, tmp_path: Path):
    tokenizer.encode(["some text"])
    tokenizer.count_tokens(["some text " * 100])
    tokenizer.save(tmp_path)
    assert (tmp_path / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()
    again = Tokenizer.from_file(tmp_path)
    assert again.settings == tokenizer.settings
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "tokenizer.json").read_bytes() == tokenizer.json_bytes


def test_saved_settings_bound_a_later_limit(tokenizer: Tokenizer, tmp_path: Path):
    tokenizer.save(tmp_path)
    assert Tokenizer.from_file(tmp_path, 512).max_length == 32
    assert Tokenizer.from_file(tmp_path, 16).max_length == 16


def test_half_a_surrogate_pair_becomes_the_replacement_character(tokenizer: Tokenizer):
    broken, replaced = tokenizer.encode(["film \ud83d great", "film � great"])
    assert np.array_equal(broken.ids, replaced.ids)
    whole, joined = tokenizer.encode(["\ud83d\ude00 fine", "\U0001f600 fine"])
    assert np.array_equal(whole.ids, joined.ids)
    assert len(tokenizer.encode([("\udc00", "\ud83d")])) == 1


@pytest.mark.parametrize("text", [None, 5, ["a", "b", "c"], ("a", 1), ("a",)])
def test_what_is_no_text_is_refused_with_its_position(tokenizer: Tokenizer, text: object):
    with pytest.raises(DataError, match="position 1"):
        tokenizer.encode(["fine", text])  # type: ignore[list-item]


def test_empty_texts_still_have_tokens(tokenizer: Tokenizer):
    assert [len(row.ids) for row in tokenizer.encode(["", " \n "])] == [2, 2]
    assert tokenizer.encode([]) == []
    assert tokenizer.count_tokens([]).shape == (0,)


def test_truncated_says_which_texts_lose_something(tokenizer: Tokenizer):
    assert tokenizer.truncated(["word " * 30, "word " * 31]).tolist() == [False, True]


def test_the_limit_of_the_model_wins_and_is_said(source: Path):
    tokenizer = load_tokenizer(source, 1024)
    assert tokenizer.max_length == 512
    assert "512" in tokenizer.notes[0]
    assert load_tokenizer(source, 128).notes == ()


def _copy(
    source: Path, target: Path, *, config: dict[str, object], tokenizer_config: dict[str, object]
) -> Path:
    target.mkdir()
    shutil.copy(source / "tokenizer.json", target)
    (target / "config.json").write_text(json.dumps(config))
    (target / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return target


def test_no_limit_written_as_1e30_leaves_the_positions_of_the_model(source: Path, tmp_path: Path):
    folder = _copy(
        source,
        tmp_path / "bert",
        config={"model_type": "bert", "max_position_embeddings": 128},
        tokenizer_config={"model_max_length": 1e30},
    )
    tokenizer = load_tokenizer(folder, 512)
    assert tokenizer.max_length == 128
    assert len(tokenizer.encode(["word " * 2000])[0].ids) == 128


def test_roberta_positions_lose_the_padding_offset(source: Path, tmp_path: Path):
    config = {
        "model_type": "roberta",
        "max_position_embeddings": 514,
        "pad_token_id": 1,
        "type_vocab_size": 1,
    }
    folder = _copy(source, tmp_path / "roberta", config=config, tokenizer_config={})
    tokenizer = load_tokenizer(folder, 600)
    assert tokenizer.max_length == 512
    assert not tokenizer.has_type_ids


def test_a_pad_token_in_table_form_and_the_side_are_read(source: Path, tmp_path: Path):
    settings = {"pad_token": {"content": "[MASK]"}, "padding_side": "left"}
    folder = _copy(source, tmp_path / "t", config={"model_type": "bert"}, tokenizer_config=settings)
    tokenizer = load_tokenizer(folder, 64)
    assert (tokenizer.pad_id, tokenizer.pad_side) == (103, "left")


def test_a_vocabulary_file_alone_is_turned_into_tokenizer_json(source: Path, tmp_path: Path):
    words = (source / "vocab.txt").read_bytes()
    (tmp_path / "vocab.txt").write_bytes(words.replace(b"\n", b"\r\n"))
    (tmp_path / "config.json").write_text('{"model_type": "bert", "max_position_embeddings": 512}')
    tokenizer = load_tokenizer(tmp_path, 32)
    text = "Unaffable critics [SEP] loved it"
    assert np.array_equal(tokenizer.encode([text])[0].ids, load_tokenizer(source, 32).encode([text])[0].ids)
    assert not (tmp_path / "tokenizer.json").exists()


def test_a_folder_without_a_vocabulary_is_refused(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match=r"vocab\.txt"):
        load_tokenizer(tmp_path)
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        Tokenizer.from_file(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 5}'])
def test_a_damaged_tokenizer_json_is_one_clear_error(tmp_path: Path, content: str):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_ids_equal_those_of_transformers_where_a_text_has_no_special_tokens(
    tokenizer: Tokenizer, source: Path
):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(source))
    texts = ["A film, unaffable & long!", "电影 很好", "naïve café", "x" * 300, "\U0001f600"]
    for text, row in zip(texts, tokenizer.encode(texts), strict=True):
        assert theirs(text, truncation=True, max_length=32, padding=False)["input_ids"] == row.ids.tolist()


def test_special_tokens_that_the_file_lists_as_ordinary_are_text_too(source: Path, tmp_path: Path):
    table = json.loads((source / "tokenizer.json").read_bytes())
    for token in table["added_tokens"]:
        token["special"] = False
    (tmp_path / "tokenizer.json").write_text(json.dumps(table))
    shutil.copy(source / "tokenizer_config.json", tmp_path)
    row = load_tokenizer(tmp_path, 32).encode(["great [SEP] not [PAD] [MASK]"])[0]
    assert {0, 102, 103}.isdisjoint(row.ids[1:-1].tolist())


def test_a_tokenizer_that_crossed_a_process_border_reads_special_tokens_as_text(tokenizer: Tokenizer):
    text = "great [SEP] not " + "long " * 50
    again = pickle.loads(pickle.dumps(tokenizer))
    assert np.array_equal(again.encode([text])[0].ids, tokenizer.encode([text])[0].ids)
    assert again.json_bytes == tokenizer.json_bytes


def test_serving_processes_load_neither_torch_nor_transformers(tokenizer: Tokenizer, tmp_path: Path):
    tokenizer.save(tmp_path)
    program = (
        "import sys, pathlib, textmill.encode.padding, textmill.encode.budget, textmill.encode.lengths\n"
        "from textmill.encode.tokenizer import Tokenizer\n"
        "Tokenizer.from_file(pathlib.Path(sys.argv[1])).encode(['hello'])\n"
        "assert not {'torch', 'transformers', 'datasets', 'pandas'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
