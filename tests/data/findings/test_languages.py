from __future__ import annotations

import numpy as np
import pytest

from tests.data.findings.rows import examples
from textmill.data.findings.languages import UNCLEAR, find_in_languages, find_languages, script_of
from textmill.data.findings.unknown import UnknownCount

ENGLISH = "The story is slow at first, but the last hour of it is worth the wait."
GERMAN = "Die Geschichte beginnt langsam, aber die letzte Stunde ist das Warten wert."
CHINESE = "故事开头有些慢，但是最后一个小时非常值得等待。"
RUSSIAN = "История начинается медленно, но последний час стоит ожидания."


@pytest.mark.parametrize(
    ("char", "script"),
    [("a", "Latin"), ("é", "Latin"), ("好", "Han"), ("я", "Cyrillic"), ("한", "Hangul"), ("ａ", "Latin")],
)
def test_a_letter_has_a_script(char, script):
    assert script_of(char) == script


def test_languages_and_scripts_are_told():
    found = find_languages(examples([ENGLISH] * 6 + [GERMAN] * 2 + [CHINESE, RUSSIAN]), None)
    assert found.languages == pytest.approx({"en": 0.6, "de": 0.2, "zh": 0.1, "ru": 0.1})
    assert {name: script.rows for name, script in found.scripts.items()} == {
        "Latin": 8,
        "Han": 1,
        "Cyrillic": 1,
    }
    assert found.examples["de"] == ("r6", "r7")
    messages = [finding.message for finding in find_in_languages(found)]
    assert any("en 60%" in message and "de 20%" in message for message in messages)


def test_short_texts_are_unclear_and_one_language_is_no_finding():
    found = find_languages(examples([ENGLISH, "ok", "12", "好", ENGLISH]), None)
    assert found.languages[UNCLEAR] == pytest.approx(0.6)
    assert list(find_in_languages(found)) == []


def test_a_script_that_the_tokenizer_does_not_know_is_found():
    rows = examples([ENGLISH, CHINESE, CHINESE])
    count = UnknownCount(np.array([0, 20, 22]), np.array([17, 22, 22]), (("故", 2),))
    found = [
        finding for finding in find_in_languages(find_languages(rows, count)) if finding.level == "warning"
    ]
    assert [finding.kind for finding in found] == ["unknown_language"]
    assert "the Han script: 95%" in found[0].message
