"""Whether tokenizer and embedding belong together.

A pretrained embedding places forms of one word near each other ("film" and "films", "film" and "##film",
"film" and "Film"). Where the tokenizer is another one of like size, the rows mean other words and such
pairs are no nearer than chance: the sizes fit, nothing fails, and the model learns little.

What is not covered: vocabularies with fewer than 100 such pairs; embeddings that were never trained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from textmill.core.seeds import numpy_generator
from textmill.data.findings.finding import Finding

_MIN_PAIRS = 100
_MAX_PAIRS = 4000
_MIN_ERRORS, _MIN_GAP = 5.0, 0.1
"""Standard errors and mean cosine by which related pairs must be nearer than chance. MiniLM (uncased BERT
vocabulary): 138 and 0.54; its rows permuted: below 2 and 0.01; shifted by one: 19 and 0.07 (neighbours in a
vocabulary are of one kind)."""
_MARKS = ("##", "Ġ", "▁")  # WordPiece's inside of a word; GPT-2's and SentencePiece's blank before it
_SPARE_SHARE, _SPARE_ROWS = 0.02, 1024  # rows of an embedding that padding to round sizes explains


@dataclass(frozen=True, slots=True)
class Kinship:
    """How near forms of one word are in an embedding."""

    num_pairs: int
    related: float
    """Mean cosine of related pairs."""
    chance: float
    """Mean cosine of random pairs of the same tokens."""
    num_errors: float
    """Their difference in standard errors."""


def read_vocabulary(tokenizer_json: bytes) -> dict[str, int]:
    """Return token -> id by tokenizer.json, without special and added tokens."""
    model = json.loads(tokenizer_json).get("model", {})
    vocabulary = model.get("vocab", {})
    if isinstance(vocabulary, list):  # Unigram: [[token, score], ...]
        return {str(entry[0]): index for index, entry in enumerate(vocabulary)}
    return {str(token): int(index) for token, index in vocabulary.items()}


def measure_kinship(vocabulary: Mapping[str, int], embedding: npt.NDArray[np.float32]) -> Kinship:
    """Compare pairs of related tokens with pairs by chance.

    Args:
        vocabulary: token -> id.
        embedding: (V, H) the rows that the ids pick.
    """
    pairs = [pair for pair in _related(vocabulary) if max(pair) < len(embedding)]
    rng = numpy_generator(0, "kinship")
    if len(pairs) > _MAX_PAIRS:
        chosen = rng.choice(len(pairs), _MAX_PAIRS, replace=False)
        pairs = [pairs[index] for index in np.sort(chosen).tolist()]
    if len(pairs) < 2:
        return Kinship(len(pairs), 0.0, 0.0, 0.0)
    one, other = np.array(pairs).T
    # Some embeddings (GPT-2's) all point one way; what is common to all says nothing.
    centre = embedding.mean(axis=0)
    mine, others = embedding[one] - centre, embedding[other] - centre
    related, chance = _cosines(mine, others), _cosines(mine, rng.permutation(others))
    error = float(np.sqrt(related.var() / len(pairs) + chance.var() / len(pairs)))
    gap = float(related.mean() - chance.mean())
    return Kinship(len(pairs), float(related.mean()), float(chance.mean()), gap / max(error, 1e-12))


def find_in_kinship(kinship: Kinship) -> Iterator[Finding]:
    """Yield that the ids pick the wrong rows."""
    gap = kinship.related - kinship.chance
    if kinship.num_pairs >= _MIN_PAIRS and (kinship.num_errors < _MIN_ERRORS or gap < _MIN_GAP):
        message = (
            f"forms of one word are no nearer in the backbone's embedding (mean cosine {kinship.related:.3f} "
            f"of {kinship.num_pairs} pairs) than any two words ({kinship.chance:.3f}): the tokenizer is not "
            f"the weights' own, or the embedding was never trained"
        )
        fix = "Use the tokenizer that came with the weights; load both from one folder."
        yield Finding("foreign_tokenizer", "error", message, fix)


def find_in_sizes(vocab_size: int, num_rows: int) -> Iterator[Finding]:
    """Yield sizes that do not fit: ids without a row, or many rows without an id."""
    if vocab_size > num_rows:
        message = f"the tokenizer has ids up to {vocab_size - 1:,}, the embedding only {num_rows:,} rows"
        yield Finding("vocabulary", "error", message, "Use the tokenizer that belongs to the weights.")
    elif num_rows - vocab_size > max(_SPARE_ROWS, _SPARE_SHARE * num_rows):
        message = f"the embedding has {num_rows:,} rows, the tokenizer only {vocab_size:,} ids"
        fix = "Check that both come from one model; added tokens of the checkpoint may be missing."
        yield Finding("vocabulary", "warning", message, fix)


def _related(vocabulary: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return ids of pairs of forms of one word of three letters or more (one for Chinese characters)."""
    pairs = []
    for token, index in vocabulary.items():
        bare = token.lstrip("Ġ▁")
        if token.startswith("##") or not bare.isalpha() or len(bare) < (3 if bare.isascii() else 1):
            continue
        lead = token[: len(token) - len(bare)]
        forms = [f"{lead}{bare}s", f"{lead}{bare.capitalize()}", *(f"{mark}{bare}" for mark in _MARKS)]
        pairs += [(index, vocabulary[form]) for form in forms if form in vocabulary and form != token]
    return pairs


def _cosines(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosines: npt.NDArray[np.float32] = (one * other).sum(axis=1) / np.maximum(lengths, 1e-12)
    return cosines
