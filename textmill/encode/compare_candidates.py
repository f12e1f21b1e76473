"""What can be compared: tokenizers of checkpoints, tokenizer files, and ones trained on the spot.

Promises: a candidate's own files are only read; what is trained here is trained on the texts that are
passed in and written into a folder that can be kept.
What is not covered: tokenizers in a form that only their own library reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from textmill.core.errors import ModelError
from textmill.core.files import write_atomic
from textmill.encode.source import find_source
from textmill.encode.tokenizer import Tokenizer, load_tokenizer
from textmill.encode.train_tokenizer import KINDS, train_tokenizer

Origin: TypeAlias = Literal["checkpoint", "file", "trained here"]
"""Whether weights belong to it (checkpoint), or none do."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One tokenizer to compare."""

    name: str
    """As the user wrote it."""
    tokenizer: Tokenizer
    folder: Path
    origin: Origin

    @property
    def is_pretrained(self) -> bool:
        """Whether an encoder's weights belong to it."""
        return self.origin == "checkpoint"


def load_candidate(name: str, max_length: int, texts: Sequence[str], work: Path) -> Candidate:
    """Find a tokenizer, or train it.

    Args:
        name: a folder, `package:<package>/<path>`, `converted:<name>`, a hub name, a tokenizer.json, or
            `bpe:8000`, `wordpiece:8000`, `unigram:8000`, to be trained on `texts`.
        max_length: longest row wanted, in tokens.
        texts: what a new tokenizer learns from.
        work: a folder for what is trained here, in a subfolder of its own (`bpe-8000`).

    Raises:
        ModelError: nothing is there, or a size that is none.
        DataError: a text that has nothing to learn from.
    """
    kind, colon, size = name.partition(":")
    known = next((each for each in KINDS if each == kind), None)
    if known is not None and colon:
        if not size.isdecimal():
            raise ModelError(
                "A tokenizer to be trained must be named with its vocabulary's size",
                got=repr(name),
                fix=f"Write for example {kind}:8000.",
            )
        folder = train_tokenizer(known, int(size), texts, work / f"{kind}-{int(size)}")
        return Candidate(name, Tokenizer.from_file(folder, max_length), folder, "trained here")
    file = Path(name).expanduser()
    if file.suffix == ".json" and file.is_file():
        folder = work / f"file-{file.stem}"
        write_atomic(folder / "tokenizer.json", file.read_bytes())
        return Candidate(name, Tokenizer.from_file(folder, max_length), folder, "file")
    folder = find_source(name, with_weights=not file.is_dir())
    has_weights = any(any(folder.glob(form)) for form in ("model*.safetensors", "pytorch_model*.bin"))
    tokenizer = load_tokenizer(folder, max_length)
    return Candidate(name, tokenizer, folder, "checkpoint" if has_weights else "file")
