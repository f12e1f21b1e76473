"""What a tokenizer does not know of texts: UNK tokens and the words behind them.

Promises: the tokenizer given is left alone (a working copy of its file is asked); special tokens that
frame a text are not counted. A tokenizer that falls back to bytes knows everything, in more tokens: its
count of unknown tokens is zero.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import tokenizers

from textmill.core.types import Text
from textmill.data.findings.unknown import CountUnknown, UnknownCount
from textmill.encode.tokenizer import Tokenizer

_CHUNK = 1000
_NUM_PIECES = 50


def unknown_counter(tokenizer: Tokenizer) -> CountUnknown:
    """Return the function that counts what `tokenizer` does not know."""
    working = tokenizers.Tokenizer.from_str(tokenizer.json_bytes.decode())
    working.no_truncation()
    working.no_padding()
    working.encode_special_tokens = True
    unknown_id = _unknown_id(tokenizer.json_bytes)

    def count(texts: Sequence[Text]) -> UnknownCount:
        unknown = np.zeros(len(texts), dtype=np.int64)
        tokens = np.zeros(len(texts), dtype=np.int64)
        pieces: Counter[str] = Counter()
        for start in range(0, len(texts), _CHUNK):
            chunk = [_readable(text) for text in texts[start : start + _CHUNK]]
            rows = working.encode_batch(chunk, add_special_tokens=False)
            for place, (text, row) in enumerate(zip(chunk, rows, strict=True), start):
                ids = np.array(row.ids, dtype=np.int64)
                tokens[place] = len(ids)
                found = np.flatnonzero(ids == unknown_id)
                unknown[place] = len(found)
                pieces.update(text[slice(*row.offsets[index])].strip() for index in found.tolist())
        return UnknownCount(unknown, tokens, tuple(pieces.most_common(_NUM_PIECES)))

    return count


def _unknown_id(content: bytes) -> int:
    """Return the id of the UNK token by tokenizer.json, -1 where there is none."""
    table = json.loads(content)
    model = table.get("model", {})
    if isinstance(model.get("unk_id"), int):  # Unigram
        return int(model["unk_id"])
    token = model.get("unk_token")
    vocabulary = model.get("vocab")
    if isinstance(token, str) and isinstance(vocabulary, dict) and token in vocabulary:
        return int(vocabulary[token])
    return -1


def _readable(text: Text) -> str:
    joined = text if isinstance(text, str) else "\n".join(text)
    return joined.encode("utf-8", "replace").decode("utf-8")
