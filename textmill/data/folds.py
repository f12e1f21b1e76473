"""Which rows learn together and which are judged: folds and stratified samples.

Promises: rows with one text are always in one fold; each class is dealt out evenly; a sample holds two
rows at least of each class that has two. Texts are read once, one at a time; only 8 bytes of each stay.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from textmill.core.seeds import numpy_generator
from textmill.core.types import Text

LabelSet = tuple[str, ...]


def label_sets(labels: Sequence[str] | Sequence[LabelSet]) -> list[LabelSet]:
    """Return the labels of N rows as sets of names; a plain name is a set of one."""
    return [(each,) if isinstance(each, str) else tuple(each) for each in labels]


def strata(sets: Sequence[LabelSet]) -> npt.NDArray[np.int64]:
    """Return (N,) the number of each row's class; of several the rarest one; rows of none together."""
    counts = Counter(name for names in sets for name in names)
    number = {name: index + 1 for index, name in enumerate(sorted(counts))}
    return np.array(
        [number[min(names, key=lambda name: (counts[name], name))] if names else 0 for names in sets],
        dtype=np.int64,
    )


def assign_folds(
    texts: Sequence[Text], labels: Sequence[str] | Sequence[LabelSet], folds: int, seed: int
) -> npt.NDArray[np.int64]:
    """Return (N,) fold numbers: each class dealt out evenly, rows with one text together.

    Args:
        texts: N texts.
        labels: N class names, or sets of them.
        folds: how many.
        seed: of the project.
    """
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    digests = np.array([_digest(text) for text in texts], dtype=np.uint64)
    _, first, same = np.unique(digests, return_index=True, return_inverse=True)
    stratum = strata(label_sets(labels))[first]
    shuffled = numpy_generator(seed, "folds").permutation(len(first))
    by_class = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    fold = np.empty(len(first), dtype=np.int64)
    fold[by_class] = np.arange(len(first)) % folds
    return fold[same]


def stratified_sample(stratum: npt.NDArray[np.int64], most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return ascending positions of about `most` rows with the mix of all, or of all rows if they are fewer.

    A class keeps two rows where it has them, so the sample can exceed `most` by two rows a class.

    Args:
        stratum: (N,) class of each row.
        most: rows wanted.
        seed: of the project.
    """
    num = len(stratum)
    if num <= most:
        return np.arange(num, dtype=np.int64)
    _, code, counts = np.unique(stratum, return_inverse=True, return_counts=True)
    quotas = np.maximum(np.minimum(counts, 2), counts * most // num)
    shuffled = numpy_generator(seed, "sample").permutation(num)
    by_class = shuffled[np.argsort(code[shuffled], kind="stable")]
    place = np.arange(num) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_class[place < quotas[code[by_class]]]).astype(np.int64)


def _digest(text: Text) -> int:
    joined = text if isinstance(text, str) else "\x1f".join(text)
    return int.from_bytes(hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=8).digest())
