"""Text to token ids the way a bundle was trained: cleaned by its rules, cut by its tokenizer.

Promises: the same text gives the same ids in training, in every runtime and in the serving front;
neither torch nor a runtime is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textmill.core.config import parse_config
from textmill.core.decision import SINGLE, Decision, decision_of
from textmill.core.errors import ModelError
from textmill.core.types import Scores, Task, Text
from textmill.data.clean import clean_text
from textmill.data.config import CleanConfig
from textmill.encode.long_text import Cut, pool_scores
from textmill.encode.settings import read_table
from textmill.encode.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CLEAN_FACT = "clean"
"""The key of the cleaning rules among the facts of a saved model."""
MODEL = "model"
"""The folder of a bundle with the saved model."""
_DESCRIPTION = "textmill.json"


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Cleans and tokenizes."""

    labels: tuple[str, ...]
    """The class names of the bundle, in the order of the columns of its scores."""
    tokenizer: Tokenizer
    """Cuts cleaned text."""
    clean: CleanConfig
    """The rules by which the training text was repaired."""
    task: Task = "classification"
    """What the bundle's model does; `pairs` reads pairs of texts."""
    decision: Decision = SINGLE
    """How its scores become classes."""

    @classmethod
    def open(cls, bundle: Path) -> TextEncoder:
        """Read the text side of a bundle.

        Raises:
            ModelError: the bundle holds no model, or its tokenizer cannot be read.
        """
        folder = bundle / MODEL
        table = read_table(folder / _DESCRIPTION)
        if not table:
            raise ModelError(
                f"A bundle must hold {MODEL}/{_DESCRIPTION}",
                got=f"{bundle} without it",
                fix="Publish it again.",
            )
        rules = table["facts"].get(CLEAN_FACT, {})
        return cls(
            labels=tuple(table["labels"]),
            tokenizer=Tokenizer.from_file(folder, table["max_length"]),
            clean=parse_config(CleanConfig, rules, str(folder / _DESCRIPTION)),
            task=table.get("task", "classification"),
            decision=decision_of(table.get("task", "classification"), table.get("thresholds")),
        )

    def cut(self, texts: Sequence[Text]) -> Cut:
        """Return the rows of each text after cleaning: several for a text that is cut to windows.

        Raises:
            DataError: an item is neither one string nor a pair of strings.
        """
        return self.tokenizer.cut([self._clean(text) for text in texts])

    def pool(self, scores: Scores, owner: NDArray[np.int64]) -> Scores:
        """Return (N, C) scores of texts from the (R, C) scores of the rows that `cut` gave."""
        return pool_scores(scores, owner, self.tokenizer.settings.window_pool, self.decision.is_multilabel)

    def _clean(self, text: Text) -> Text:
        match text:
            case str():
                return clean_text(text, self.clean)
            case (str() as first, str() as second):
                return clean_text(first, self.clean), clean_text(second, self.clean)
        return text  # the tokenizer says what is wrong with it, and at which position
