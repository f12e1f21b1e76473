from __future__ import annotations

import pytest

from textmill.data.labels import survey_labels, tidy_label


@pytest.mark.parametrize(
    "spelling", ["spam", "spam ", " spam", "spam\u00a0", "spam\u200b", "\ufeffspam", "spam\t"]
)
def test_blanks_and_invisible_characters_make_no_class(spelling: str) -> None:
    assert tidy_label(spelling) == "spam"


@pytest.mark.parametrize("label", ["NA", "None", "null", "nan", "0", "very good", "好评", "C++"])
def test_a_clean_label_stays(label: str) -> None:
    assert tidy_label(label) == label


def test_composed_and_decomposed_letters_are_one_class() -> None:
    assert tidy_label("cafe\u0301") == tidy_label("caf\u00e9")


def test_spellings_are_counted_and_grouped() -> None:
    names = survey_labels(["spam"] * 4 + ["spam "] * 2 + ["Spam", "ham"])
    assert names.merged == {"spam": {"spam": 4, "spam ": 2}}
    assert names.look_alikes == [{"Spam": 1, "spam": 4, "spam ": 2}]


def test_different_classes_are_not_grouped() -> None:
    assert survey_labels(["a", "b", "b"]).look_alikes == []
