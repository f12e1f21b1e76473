"""Repair text: entities, mojibake, control characters, Unicode form, white space.

Promises: the same function serves training and prediction, on one text, in time linear in its
length; every repair can be switched off and is counted; half surrogate pairs always become U+FFFD
(they cannot be written to any file). Joiners (U+200C, U+200D) stay wherever a script or an emoji
needs them; they and U+200B go between Latin, Greek and Cyrillic letters, where they only hide a word.

What is not covered: removing HTML tags, language detection, spelling.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import ftfy
from ftfy.badness import is_bad

from textmill.data.config import CleanConfig

_SURROGATE = re.compile("[\ud800-\udfff]")
_ENTITY = re.compile(r"&#?[0-9A-Za-z]{1,24};")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+"
)
# Scripts written without blanks use U+200B to mark words: Thai to Myanmar, Khmer, Tai Tham and neighbours.
_ZERO_SPACE = re.compile(
    "(?<![\u0e00-\u109f\u1780-\u17ff\u1950-\u1aad])\u200b(?![\u0e00-\u109f\u1780-\u17ff])"
)
# Below U+0590 lie Latin, Greek, Cyrillic and Armenian: no joiner has a meaning between their letters.
_IDLE_JOINER = re.compile("(?<![\u0590-\u200b\u2010-\U0010ffff])[\u200c\u200d]+(?![\u0590-\U0010ffff])")
_ODD_BLANKS = re.compile(r"\s{2,}|[^\S \n]")
_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x85\u2028\u2029]")
_MAX_MARKS = 30  # Unicode's stream-safe limit (UAX 15, D4); real text stays far below it
_LONG_TEXT = 2_000
_ENTITY_PASSES = 3
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_MAX_RUNS = 64  # of other letters in a text: beyond that ftfy looks at all of it in no more time
_CONTEXT = 8  # the longest sequence that ftfy 6 looks for has six characters
_PIECE = 20_000

Step = tuple[str, Callable[[str], str]]


def clean_text(text: str, config: CleanConfig) -> str:
    """Return the text with the repairs that `config` asks for."""
    for _, repair in _steps(config):
        text = repair(text)
    return text


def clean_texts(texts: Iterable[str], config: CleanConfig, counts: Counter[str]) -> Iterator[str]:
    """Yield cleaned texts and count, for each repair, the texts that it changed.

    Args:
        texts: any number of texts.
        config: which repairs to make.
        counts: is added to: the name of a repair (`entities`, ...) for texts changed, and
            `characters_removed` for control characters taken out.
    """
    steps = _steps(config)
    for given in texts:
        text = given
        for name, repair in steps:
            repaired = repair(text)
            if repaired != text:
                counts[name] += 1
                if name == "control":
                    counts["characters_removed"] += len(text) - len(repaired)
                text = repaired
        yield text


def _steps(config: CleanConfig) -> list[Step]:
    """Return the repairs in their order: later ones see what earlier ones brought to light."""
    steps: list[tuple[bool, Step]] = [
        (True, ("surrogates", join_surrogates)),
        (config.entities, ("entities", _unescape)),
        (config.mojibake, ("mojibake", _fix_mojibake)),
        (config.control, ("control", _remove_control)),
        (config.unicode, ("unicode", _compose)),
        (config.blanks, ("blanks", _even_blanks)),
    ]
    return [step for wanted, step in steps if wanted]


def join_surrogates(text: str) -> str:
    """Return the text with half surrogate pairs, which no file can hold, as U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape(text: str) -> str:
    # Scraped text is often escaped twice; more than a few passes would only serve an attacker.
    for _ in range(_ENTITY_PASSES):
        if "&" not in text:
            return text
        unescaped = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
        if unescaped == text:
            return text
        text = unescaped
    return text


def _fix_mojibake(text: str) -> str:
    if text.isascii() or not _looks_garbled(text):
        return text
    if len(text) <= _PIECE:
        return str(ftfy.fix_encoding(text))
    return "".join(ftfy.fix_encoding(piece) for piece in _pieces(text))


def _looks_garbled(text: str) -> bool:
    """Return False only where ftfy would find nothing: it looks for short sequences, none all ASCII."""
    runs = [run.span() for run in islice(_BEYOND_ASCII.finditer(text), _MAX_RUNS + 1)]
    if len(runs) > _MAX_RUNS or len(text) > _PIECE:
        return True
    return any(is_bad(text[max(0, start - _CONTEXT) : end + _CONTEXT]) for start, end in runs)


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text behind line breaks or blanks where there are any."""
    start = 0
    while start < len(text):
        end = min(start + _PIECE, len(text))
        if end < len(text):
            cut = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            end = cut + 1 if cut > start else end
        yield text[start:end]
        start = end


def _remove_control(text: str) -> str:
    # What Python calls printable has no control or format characters.
    if text.replace("\n", "").isprintable():
        return text
    text = _INVISIBLE.sub("", text)
    if text.isascii():
        return text
    return _IDLE_JOINER.sub("", _ZERO_SPACE.sub("", text))


def _compose(text: str) -> str:
    if text.isascii() or (len(text) > _LONG_TEXT and _piles_marks(text)):
        return text
    return unicodedata.normalize("NFC", text)


def _piles_marks(text: str) -> bool:
    """Tell whether a letter carries so many marks that ordering them would take quadratic time."""
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run > _MAX_MARKS:
            return True
    return False


def _even_blanks(text: str) -> str:
    # Of all white space only the blank is printable, so that a run can only be one of blanks.
    if text.isprintable() and "  " not in text:
        return text.strip()
    return _ODD_BLANKS.sub(lambda run: "\n" if _LINE_BREAK.search(run.group()) else " ", text).strip()
