from __future__ import annotations

import subprocess
import sys
import time
import unicodedata
from collections import Counter

import ftfy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textmill.data.clean import (
    _IDLE_JOINER,
    _INVISIBLE,
    _LINE_BREAK,
    _ODD_BLANKS,
    _ZERO_SPACE,
    clean_text,
    clean_texts,
)
from textmill.data.config import CleanConfig

DEFAULT = CleanConfig()
NONE = CleanConfig(entities=False, mojibake=False, control=False, unicode=False, blanks=False)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("plain text", "plain text"),
        ("caf\u0065\u0301", "café"),
        ("Ã©tÃ© Ã  la plage", "été à la plage"),
        ("Tom &amp; Jerry &#39;s &lt;3", "Tom & Jerry 's <3"),
        ("twice &amp;amp; escaped", "twice & escaped"),
        ("AT&T and ?a=1&lt=3 stay", "AT&T and ?a=1&lt=3 stay"),
        ("a\x00b\x07c\x1bd", "abcd"),
        ("soft\u00adhyphen \ufeffmark", "softhyphen mark"),
        ("  two\t\tblanks\u00a0here \u3000 ", "two blanks here"),
        ("line one \r\n\r\n  line two", "line one\nline two"),
        ("", ""),
        (" \n\t ", ""),
        ("half \ud83d emoji", "half \ufffd emoji"),
        ("two halves \ud83d\ude00", "two halves 😀"),
        ("这部电影很好看。", "这部电影很好看。"),
    ],
)
def test_text_is_repaired(given_text: str, expected: str) -> None:
    assert clean_text(given_text, DEFAULT) == expected


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "👨\u200d👩\u200d👧 trip",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "क्\u200dष",
        "ภาษา\u200bไทย",
        "❤\ufe0f\u200d🔥",
    ],
)
def test_joiners_stay_where_a_script_or_an_emoji_needs_them(text: str) -> None:
    assert clean_text(text, DEFAULT) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("mark", ["\u200b", "\u200c", "\u200d", "\u2060", "\u200b\u200d"])
def test_joiners_that_hide_a_latin_word_go(mark: str) -> None:
    assert clean_text(f"sp{mark}am", DEFAULT) == "spam"


def test_removed_characters_are_counted() -> None:
    counts: Counter[str] = Counter()
    texts = list(clean_texts(["sp\u200bam", "a\x00\x01b", "fine", "caf\u0065\u0301"], DEFAULT, counts))
    assert texts == ["spam", "ab", "fine", "café"]
    assert counts == {"control": 2, "characters_removed": 3, "unicode": 1}


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        ("entities", "a &amp; b"),
        ("mojibake", "Ã©tÃ©"),
        ("control", "a\x00b"),
        ("unicode", "caf\u0065\u0301"),
        ("blanks", " a  b "),
    ],
)
def test_each_repair_can_be_switched_off(switch: str, text: str) -> None:
    assert clean_text(text, DEFAULT) != text
    assert clean_text(text, DEFAULT.model_copy(update={switch: False})) == text


@settings(deadline=None)
@given(st.text())
def test_with_all_off_only_half_pairs_change(text: str) -> None:
    assert clean_text(text, NONE) == text


@settings(deadline=None)
@given(st.text(alphabet=st.characters(max_codepoint=0x2FFF), max_size=50))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    config = CleanConfig(mojibake=False, entities=False)
    once = clean_text(text, config)
    assert clean_text(once, config) == once


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_every_cleaned_text_can_be_written(text: str) -> None:
    clean_text(text, DEFAULT).encode("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "word " * 200_000,
        " " * 1_000_000,
        "é" * 500_000,
        "&amp;" * 200_000,
        "&" * 1_000_000,
        "a" + "\u0301\u0323" * 500_000,
        "\u200b\u200d" * 500_000,
        "Ã©" * 250_000,
        "很好" * 300_000,
        "\ud83d" * 500_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_a_megabyte_is_cleaned_in_linear_time(text: str) -> None:
    start = time.process_time()
    clean_text(text, DEFAULT)
    assert time.process_time() - start < 5, "quadratic work would take minutes"


def test_cleaning_loads_nothing_heavy() -> None:
    code = (
        "import sys, textmill.data.clean;"
        "assert not {'datasets', 'pyarrow', 'sklearn', 'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ODD = st.sampled_from([
    *"aE .,", "Ã", "Â", "©", "\u00a0", "®", "Ø", "Ù", "œ", "à", "²", "â€™", "é", "É", "€", "£", "вЂ", "Г",
    "ГўВЂВ", "√", "≈", "ā€", "¿", "°", "\x85", "好", "…", "’", "a long run of plain letters ", "\n",
])  # fmt: skip


@given(st.lists(ODD, max_size=14).map("".join))
@settings(max_examples=500, deadline=None)
def test_looking_around_odd_letters_finds_what_ftfy_finds(text: str) -> None:
    only = NONE.model_copy(update={"mojibake": True})
    assert clean_text(text, only) == ftfy.fix_encoding(text)


@given(
    st.lists(ODD | st.sampled_from(["  ", "\t", "\u200d", "\x1c", "\u3000", "\u00ad"]), max_size=8).map(
        "".join
    )
)
@settings(max_examples=300, deadline=None)
def test_blanks_and_control_characters_go_as_by_their_plain_rules(text: str) -> None:
    found = clean_text(text, NONE.model_copy(update={"control": True, "blanks": True}))
    slow = _INVISIBLE.sub("", text)
    slow = _IDLE_JOINER.sub("", _ZERO_SPACE.sub("", slow))
    slow = _ODD_BLANKS.sub(lambda run: "\n" if _LINE_BREAK.search(run.group()) else " ", slow).strip()
    assert found == slow
