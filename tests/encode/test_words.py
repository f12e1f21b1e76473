from __future__ import annotations

import pytest

from textmill.encode.words import chinese_segmenter, han_share, is_chinese, split_words


def words(text: str, segment=None) -> list[str]:
    return [text[word.begin : word.end] for word in split_words(text, segment)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a well-known film, 2nd part.", ["It's", "a", "well-known", "film", "2nd", "part"]),
        ("这部iPhone很好", ["这", "部", "iPhone", "很", "好"]),
        ("фильм — отличный!", ["фильм", "отличный"]),
        ("snake_case", ["snake", "case"]),
        ("... !?", []),
    ],
)
def test_words_are_cut_by_script(text: str, expected: list[str]):
    assert words(text) == expected


def test_chinese_words_are_those_of_the_segmenter_and_places_stay_right():
    pytest.importorskip("rjieba", reason="the extra zh")
    assert words("酒店的服务太差了，OK？", chinese_segmenter()) == ["酒店", "的", "服务", "太差", "了", "OK"]


def test_the_share_of_han_tells_chinese_text():
    assert han_share(["好 a"]) == 0.5
    assert is_chinese(["这部 iPhone 手机很好用"])
    assert not is_chinese(["The film 卧虎藏龙 is fine. " + "And seen three times since. " * 3])
    assert not is_chinese([])
