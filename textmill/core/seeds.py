"""Random generators from one seed, one stream for each purpose.

Promise: the same seed and name give the same numbers in every process and on every machine, and
adding a new stream never changes an old one. No global generator is ever touched.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def stream_seed(seed: int, *name: object) -> int:
    """Return a 63-bit seed for the stream called `name` (for example `"order", epoch`)."""
    key = repr((int(seed), *(str(part) for part in name))).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1


def numpy_generator(seed: int, *name: object) -> np.random.Generator:
    """Return a NumPy generator for the stream called `name`."""
    import numpy as np

    return np.random.default_rng(stream_seed(seed, *name))


def torch_generator(seed: int, *name: object) -> torch.Generator:
    """Return a CPU torch generator for the stream called `name`."""
    import torch

    return torch.Generator().manual_seed(stream_seed(seed, *name))
