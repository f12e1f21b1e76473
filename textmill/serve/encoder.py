"""Text to token ids in the front, the version's own way.

The front tokenizes, since batches are formed by length; it loads no runtime for that.
"""

from __future__ import annotations

from pathlib import Path

from textmill.encode.tokenizer import Tokenizer


def open_encoder(bundle: Path) -> Tokenizer:
    """Return the tokenizer of a bundle.

    Raises:
        ModelError: the bundle's tokenizer cannot be read.
    """
    return Tokenizer.from_file(bundle / "model")
