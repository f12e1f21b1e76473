"""Which tokenizer fits a text: measures side by side, and a recommendation with its reason.

The rule: a tokenizer whose tokens are UNK to more than 0.5 %, or that cuts off more texts than allowed, is
refused; of the others the one with the cheapest predicted epoch is recommended, checkpoints first.
Compression alone does not say which model will be more accurate: that takes training.

Checkpoints come first because a tokenizer cannot be changed without the embeddings: whoever fine-tunes
chooses a checkpoint together with its tokenizer; one that was trained here means an encoder from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from textmill.core.errors import DataError, MissingExtra
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.encode.compare_candidates import Candidate, load_candidate
from textmill.encode.compare_measures import Measures, measure
from textmill.encode.words import Segmenter, chinese_segmenter, is_chinese

MAX_UNK_SHARE = 0.005
"""More UNK than this is refused: what is UNK cannot be told apart by any model."""

SecondsOfEpoch: TypeAlias = Callable[[Candidate, Sequence[str], int], float]
"""(candidate, sample of texts, rows in all) -> predicted seconds of a training epoch over all rows."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One candidate with its measures."""

    candidate: Candidate
    measures: Measures
    epoch_s: float | None
    """Predicted seconds of an epoch over all rows; None where nobody asked."""
    refused: str | None
    """Why it cannot be recommended, one clause; None where it can."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All candidates on one sample."""

    compared: tuple[Compared, ...]
    num_rows: int
    num_sampled: int
    max_length: int
    is_chinese: bool
    recommended: Compared | None
    reason: str
    """Why, in words; also why none."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "rows": self.num_rows,
            "sampled": self.num_sampled,
            "max_length": self.max_length,
            "recommended": None if self.recommended is None else self.recommended.candidate.name,
            "reason": self.reason,
            "notes": list(self.notes),
            "candidates": [
                {
                    "name": each.candidate.name,
                    "origin": each.candidate.origin,
                    "folder": str(each.candidate.folder),
                    "max_length": each.candidate.tokenizer.max_length,
                    "epoch_s": each.epoch_s,
                    "refused": each.refused,
                    **each.measures.as_json(),
                }
                for each in self.compared
            ],
        }


def compare(
    names: Sequence[str],
    texts: Sequence[str],
    work: Path,
    *,
    max_length: int = 512,
    max_truncated: float = 0.05,
    sample: int = 5000,
    seed: int = 0,
    seconds_of_epoch: SecondsOfEpoch | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Measure tokenizers on a sample of texts and recommend one.

    Args:
        names: candidates, as `load_candidate` reads them.
        texts: all N texts.
        work: a folder for tokenizers that are trained here.
        max_length: longest row wanted, in tokens.
        max_truncated: share of texts that may be cut off at most, 0 to 1.
        sample: texts to look at, at most.
        seed: of the sample.
        seconds_of_epoch: predicts the cost; None leaves it out, and tokens a word stand in for it.
        progress: who watches.

    Raises:
        DataError: no candidate, or no text with a word in it.
        ModelError: a candidate that is not there.
    """
    if not names:
        raise DataError("There must be a candidate", got="none", fix="Name one with --candidates.")
    chosen = sample_texts(texts, sample, seed)
    segment, notes = _segmenter_for(chosen)
    compared = []
    parts = 1 if seconds_of_epoch is None else 2  # to be measured, and to have its training steps timed
    with progress.task("compare tokenizers", parts * len(dict.fromkeys(names))) as task:
        for name in dict.fromkeys(names):
            candidate = load_candidate(name, max_length, chosen, work)
            measures = measure(candidate.tokenizer, chosen, segment)
            refused = _refusal(measures, max_truncated)
            task.advance()
            cost = None
            if seconds_of_epoch is not None:
                progress.say(f"{name}: training steps are timed, to predict an epoch")
                cost = seconds_of_epoch(candidate, chosen, len(texts))
                task.advance()
            compared.append(Compared(candidate, measures, cost, refused))
    if len(chosen) < len(texts):
        notes.append(f"Measured on {len(chosen)} of {len(texts)} texts, drawn with seed {seed}.")
    best, reason = choose(compared)
    return Comparison(
        compared=tuple(compared),
        num_rows=len(texts),
        num_sampled=len(chosen),
        max_length=max_length,
        is_chinese=is_chinese(chosen),
        recommended=best,
        reason=reason,
        notes=tuple(notes),
    )


def sample_texts(texts: Sequence[str], sample: int, seed: int) -> list[str]:
    """Return at most `sample` of the texts that are not blank, in their order.

    Raises:
        DataError: none has anything in it.
    """
    rng = numpy_generator(seed, "tokenizers")
    size = min(sample, len(texts))
    places = sorted(rng.choice(len(texts), size=size, replace=False).tolist()) if size else []
    chosen = [texts[place] for place in places]
    chosen = [text for text in chosen if text.strip()]
    if not chosen:
        raise DataError("There must be text to compare on", got="no text", fix="Name the column with --text.")
    return chosen


def choose(compared: Sequence[Compared]) -> tuple[Compared | None, str]:
    """Return the recommended candidate and the reason in words."""
    passing = [each for each in compared if each.refused is None]
    if not passing:
        return None, "None is recommended: " + "; ".join(
            f"{each.candidate.name} {each.refused}" for each in compared
        )
    pretrained = [each for each in passing if each.candidate.is_pretrained]
    ranked = sorted(pretrained or passing, key=_cost)
    best, others = ranked[0], ranked[1:]
    sentences = [f"{best.candidate.name}: {_what_it_costs(best)}" + (_next_best(others) + ".")]
    lengths = best.measures.lengths
    sentences.append(
        f"UNK {best.measures.unk_share:.2%} of its tokens, {lengths.truncated_share:.1%} of the texts are "
        f"longer than {lengths.max_length} tokens."
    )
    lost = [kind for kind, loss in best.measures.losses.items() if loss == "characters"]
    if lost:
        sentences.append(f"It loses {', '.join(lost)}: mind this if they carry meaning here.")
    scratch = [each for each in passing if not each.candidate.is_pretrained]
    if pretrained and scratch:
        sentences.append(
            f"{', '.join(each.candidate.name for each in scratch)} would need an encoder from scratch "
            "(model.architecture): no weights know its tokens."
        )
    elif not pretrained:
        sentences.append(
            "No weights know its tokens: it needs an encoder from scratch (model.architecture), which learns "
            "from your rows alone."
        )
    return best, " ".join(sentences)


def _cost(each: Compared) -> float:
    return each.measures.lengths.mean if each.epoch_s is None else each.epoch_s


def _what_it_costs(each: Compared) -> str:
    mean = f"{each.measures.lengths.mean:.0f} tokens a text"
    if each.epoch_s is None:
        return f"the shortest rows of those that pass, {mean}"
    return f"the cheapest epoch of those that pass, predicted {shown_seconds(each.epoch_s)} at {mean}"


def _next_best(others: Sequence[Compared]) -> str:
    if not others:
        return ""
    second = others[0]
    if second.epoch_s is None:
        return f" (next: {second.candidate.name}, {second.measures.lengths.mean:.0f})"
    return f" (next: {second.candidate.name}, {shown_seconds(second.epoch_s)})"


def shown_seconds(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def _refusal(measures: Measures, max_truncated: float) -> str | None:
    if measures.unk_share > MAX_UNK_SHARE:
        return f"has {measures.unk_share:.1%} UNK, more than {MAX_UNK_SHARE:.1%}"
    lengths = measures.lengths
    if lengths.truncated_share > max_truncated:
        return f"cuts off {lengths.truncated_share:.1%} of the texts at {lengths.max_length} tokens"
    return None


def _segmenter_for(texts: Sequence[str]) -> tuple[Segmenter | None, list[str]]:
    if not is_chinese(texts):
        return None, []
    try:
        return chinese_segmenter(), ["Chinese words are those of rjieba."]
    except MissingExtra as err:
        return None, [f"Each Chinese character counts as one word. {err.fix}"]
