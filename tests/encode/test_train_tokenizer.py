from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import toy_examples
from textmill.core.errors import DataError, ModelError
from textmill.encode.tokenizer import Tokenizer
from textmill.encode.train_tokenizer import KINDS, train_tokenizer

TEXTS = [str(example.text) for example in toy_examples(60)] + ["这本书很好看", "naïve café 😀"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_tokenizer_reads_its_text_and_frames_rows(tmp_path: Path, kind):
    tokenizer = Tokenizer.from_file(train_tokenizer(kind, 400, TEXTS, tmp_path / kind))
    begin, end = ("[CLS]", "[SEP]") if kind == "wordpiece" else ("<s>", "</s>")
    pieces = tokenizer.tokens("a lovely film")
    assert (pieces[0], pieces[-1]) == (begin, end)
    assert tokenizer.vocab_size <= 400
    assert tokenizer.pad_id == 0
    single, pair = tokenizer.encode(["a film", ("a film", "a story")])
    assert len(pair.ids) > len(single.ids)
    assert tokenizer.tokens(f"a {end} film").count(end) == 1  # a user's text cannot end the row


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_the_same_text_gives_the_same_file_in_every_process(tmp_path: Path, kind):
    ours = train_tokenizer(kind, 400, TEXTS, tmp_path / "a")
    code = (
        "import json, sys; from pathlib import Path\n"
        "from textmill.encode.train_tokenizer import train_tokenizer\n"
        f"train_tokenizer({kind!r}, 400, json.load(sys.stdin), Path({str(tmp_path / 'b')!r}))"
    )
    subprocess.run([sys.executable, "-c", code], input=json.dumps(TEXTS), text=True, check=True)
    assert (ours / "tokenizer.json").read_bytes() == (tmp_path / "b" / "tokenizer.json").read_bytes()


def test_what_cannot_be_trained_is_a_clear_error(tmp_path: Path):
    with pytest.raises(ModelError, match="at least 300"):
        train_tokenizer("bpe", 299, TEXTS, tmp_path)
    with pytest.raises(ModelError, match="Did you mean 'bpe'"):
        train_tokenizer("bpee", 400, TEXTS, tmp_path)  # type: ignore[arg-type]
    many = ["".join(chr(0x4E00 + place + offset) for offset in range(50)) for place in range(0, 500, 50)]
    with pytest.raises(DataError, match=r"400 tokens.*larger vocabulary"):
        train_tokenizer("unigram", 400, many, tmp_path)
