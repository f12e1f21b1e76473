from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from textmill.data.clean import clean_texts
from textmill.data.clean_column import clean_column
from textmill.data.config import CleanConfig

PIECES = st.sampled_from([
    *"abc .,;&<>#\t\n\r\x0b\x0c\x1c\x1f\x7f\x00", "  ", "&amp;", "&#39;", "Ã©", "é", "e\u0301",
    "\u200d", "\u00a0", "\u2028", "\ud83d", "好", "word",
])  # fmt: skip
CONFIGS = st.builds(
    CleanConfig,
    entities=st.booleans(),
    mojibake=st.booleans(),
    control=st.booleans(),
    unicode=st.booleans(),
    blanks=st.booleans(),
)


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=12), CONFIGS)
@settings(max_examples=300, deadline=None)
def test_a_column_is_cleaned_as_its_texts_are(texts: list[str], config: CleanConfig) -> None:
    counts: Counter[str] = Counter()
    expected_counts: Counter[str] = Counter()
    expected = list(clean_texts(texts, config, expected_counts))
    assert clean_column(texts, config, counts) == expected
    assert counts == expected_counts
