"""Generated text: up to 20 classes, each shown by a few words of its own among filler."""

from __future__ import annotations

from textmill.core.seeds import numpy_generator

_FILLER_WORDS = (
    "the a of film story with and it was very some people house day time this music light long water "
    "road hand letter morning door table voice year place under again before"
)
_SIGN_WORDS = (
    "awful boring terrible great lovely wonderful ship ocean sailor bread kitchen pepper doctor "
    "hospital nurse horse saddle stable piano violin concert winter snow ice king crown castle train "
    "station ticket money bank coin farmer wheat tractor teacher school pupil soldier army battle "
    "planet moon rocket garden flower rose judge court lawyer fish river boat engine wheel driver "
    "forest wolf bear"
)
_FILLER, _SIGNS = _FILLER_WORDS.split(), _SIGN_WORDS.split()
WORDS_PER_CLASS = 3
MAX_CLASSES = len(_SIGNS) // WORDS_PER_CLASS


def generate(
    num: int, classes: int, seed: int, *, signs: int = 2, longest: int = 20
) -> list[tuple[str, int]]:
    """Return texts with their classes, which take turns.

    Args:
        num: how many.
        classes: C.
        seed: of the words.
        signs: most words of its class that a text shows; at least one.
        longest: most words of filler.
    """
    assert 2 <= classes <= MAX_CLASSES
    rng = numpy_generator(seed, "generated text")
    rows = []
    for row in range(num):
        kind = row % classes
        own = _SIGNS[kind * WORDS_PER_CLASS : (kind + 1) * WORDS_PER_CLASS]
        words = [str(word) for word in rng.choice(_FILLER, size=int(rng.integers(4, longest)))]
        for sign in rng.choice(own, size=int(rng.integers(1, signs + 1)), replace=False):
            words.insert(int(rng.integers(len(words) + 1)), str(sign))
        rows.append((" ".join(words), kind))
    return rows
