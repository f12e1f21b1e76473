"""Which scripts and languages the texts are in, and which of them the tokenizer does not know.

Scripts come from Unicode character names, exactly. Languages come from py3langid (naive Bayes over byte
n-grams: Lui and Baldwin 2012; 139 languages, BSD, 4.6 MB, offline, NumPy alone) on a sample; texts below
20 letters (6 for Chinese, Japanese, Korean) and unsure answers count as `unclear`, since such guesses are
often wrong. Chinese languages count as zh. Mixed text within a row counts under its main language.
"""

from __future__ import annotations

import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from textmill.core.files import disk_faults
from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example
from textmill.data.findings.finding import Finding, ids_of, named, plain
from textmill.data.findings.unknown import UnknownCount

UNCLEAR = "unclear"
_MAX_CHARS = 400
_MIN_LETTERS, _MIN_LETTERS_CJK = 20, 6
_SURE = 0.8
_SMALL = 0.02  # a language below this share is chance or noise
_MUCH_UNKNOWN = 0.1  # of the tokens of rows in one script
_CHINESE = ("zh", "wuu", "yue", "gan", "hak", "nan")  # one script; the guess among them means little
_CJK = ("Han", "Hiragana", "Katakana", "Hangul")
_NAMES = {"CJK": "Han", "LATIN": "Latin", "HANGUL": "Hangul"}


@dataclass(frozen=True)
class ScriptShare:
    """One script among all letters."""

    share: float
    """Of all letters, 0 to 1."""
    rows: int
    """Rows in which it prevails."""
    unknown_share: float | None
    """UNK among the tokens of these rows; None without a tokenizer."""


@dataclass(frozen=True)
class Languages:
    """Scripts and languages of a sample of rows."""

    rows: int
    """Rows looked at."""
    scripts: dict[str, ScriptShare]
    languages: dict[str, float]
    """ISO 639-1 code, or `unclear` -> share of the rows, the largest first."""
    examples: dict[str, tuple[str, ...]]
    """Language -> ids of its first rows."""


def find_languages(
    examples: Sequence[Example], count: UnknownCount | None, progress: Progress = SILENT
) -> Languages:
    """Return scripts and languages.

    Args:
        examples: N rows, at least one.
        count: what the tokenizer made of the same N rows; None without a tokenizer.
        progress: who watches.
    """
    identify = _identifier()
    letters: Counter[str] = Counter()
    main: list[str] = []
    languages: Counter[str] = Counter()
    firsts: dict[str, list[Example]] = {}
    with progress.task("tell languages", len(examples)) as task:
        for example in examples:
            text = plain(example.text)[:_MAX_CHARS]
            own = Counter(script_of(char) for char in text if char.isalpha())
            letters.update(own)
            main.append(own.most_common(1)[0][0] if own else "none")
            language = _language(text, own, identify)
            languages[language] += 1
            firsts.setdefault(language, []).append(example)
            task.advance()
    total = max(1, sum(letters.values()))
    by_row = np.array(main)
    scripts = {}
    for script, num in letters.most_common():
        chosen = by_row == script
        unknown = None
        if count is not None:
            unknown = float(count.unknown[chosen].sum()) / max(1, int(count.tokens[chosen].sum()))
        scripts[script] = ScriptShare(num / total, int(chosen.sum()), unknown)
    return Languages(
        rows=len(examples),
        scripts=scripts,
        languages={name: num / len(examples) for name, num in languages.most_common()},
        examples={name: ids_of(rows) for name, rows in firsts.items()},
    )


def find_in_languages(found: Languages) -> Iterator[Finding]:
    """Yield a mix of languages, and scripts that the tokenizer does not know."""
    for script, share in found.scripts.items():
        if share.unknown_share is not None and share.unknown_share > _MUCH_UNKNOWN and share.rows:
            message = (
                f"the tokenizer does not know the {script} script: {share.unknown_share:.0%} of the tokens "
                f"of {share.rows} rows in it are unknown"
            )
            fix = "Choose a backbone of that language or a multilingual one (model.backbone)."
            yield Finding("unknown_language", "warning", message, fix)
    mixed = {name: share for name, share in found.languages.items() if name != UNCLEAR and share >= _SMALL}
    if len(mixed) > 1:
        shown = ", ".join(f"{name} {share:.0%}" for name, share in mixed.items())
        rare = min(mixed, key=lambda name: mixed[name])
        message = f"texts in several languages: {shown} (the first in {rare}: {named(found.examples[rare])})"
        fix = "See that the backbone knows them all, and that each class has rows in each of them."
        yield Finding("languages", "note", message, fix, found.examples[rare])


@lru_cache(maxsize=65536)
def script_of(char: str) -> str:
    """Return the script of a letter by its Unicode name: `Latin`, `Han`, `Cyrillic`, ..."""
    words = unicodedata.name(char, "UNKNOWN").split()
    name = words[1] if words[0] in ("FULLWIDTH", "HALFWIDTH", "MODIFIER") and len(words) > 1 else words[0]
    return _NAMES.get(name, name.capitalize())


def _language(text: str, letters: Counter[str], identify: Any) -> str:
    num = sum(letters.values())
    if num < (_MIN_LETTERS_CJK if any(letters[script] > num / 2 for script in _CJK) else _MIN_LETTERS):
        return UNCLEAR
    name, confidence = identify.classify(text)
    if name in _CHINESE:
        name, confidence = "zh", sum(sure for other, sure in identify.rank(text) if other in _CHINESE)
    return str(name) if confidence >= _SURE else UNCLEAR


@lru_cache(maxsize=1)
def _identifier() -> Any:
    """Load the model (half a second), once a process and never the library's own global one."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    with disk_faults(Path(tempfile.gettempdir())):  # the library unpacks the model there
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
