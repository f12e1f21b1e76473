from __future__ import annotations

from tests.data.findings.rows import examples
from tests.toy import BACKBONE
from textmill.data.findings.unknown import find_unknown, sum_up_unknown
from textmill.encode.tokenizer import load_tokenizer
from textmill.encode.unknown import unknown_counter


def test_unknown_tokens_are_counted_with_the_words_behind_them():
    tokenizer = load_tokenizer(BACKBONE, 64)
    before = tokenizer.json_bytes
    texts = ["a plain text", "twice 🦖 and 🦖", ("a pair", "with \U00012000")]
    count = unknown_counter(tokenizer)(texts)
    assert count.unknown.tolist() == [0, 2, 1]
    assert count.tokens.tolist() == [3, 4, 4]
    assert dict(count.pieces) == {"🦖": 2, "\U00012000": 1}
    assert tokenizer.json_bytes == before
    unknown = sum_up_unknown(examples(texts), count)
    assert (unknown.token_share, unknown.row_share) == (3 / 11, 2 / 3)
    assert unknown.worst_rows == ("r1", "r2")
    found = next(find_unknown(unknown))
    assert found.level == "warning"
    assert "'🦖' (2)" in found.message


def test_a_known_text_and_half_a_surrogate_break_nothing():
    count_unknown = unknown_counter(load_tokenizer(BACKBONE, 64))
    assert count_unknown(["plain", "half \ud83d"]).unknown[0] == 0
    known = sum_up_unknown(examples(["plain"]), count_unknown(["plain"]))
    assert list(find_unknown(known)) == []
