"""The order of training data as a torch sampler, for any DataLoader.

    sampler = OrderedSampler(texts, labels, lengths, seed=0)
    loader = DataLoader(rows, batch_size=16, sampler=sampler)

    class OrderedTrainer(Trainer):                      # transformers.Trainer
        def _get_train_sampler(self, train_dataset=None):
            return sampler

Trainer and accelerate tell the sampler the epoch (`set_epoch`); in a plain loop every pass is the next epoch.
The sequence is a pure function of (seed, epoch): a resumed training that skips the batches it has made goes
on exactly. Trainer gives batch k to process k modulo their number, so every process gets balanced batches.
What is not covered: `order.dynamic`, which needs the loop's own losses; rows of like length in a batch, which
a sampler of single rows cannot bring together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler

from textmill.core.seeds import numpy_generator
from textmill.core.types import Example, Text
from textmill.order.config import OrderConfig
from textmill.order.make import difficulty_for
from textmill.order.schedule import schedule_for


class OrderedSampler(Sampler[int]):
    """Gives positions: short and clear texts first, class-balanced; later epochs are shuffled."""

    def __init__(
        self,
        texts: Sequence[Text],
        labels: Sequence[int | str],
        lengths: Sequence[int] | None = None,
        *,
        config: OrderConfig | None = None,
        seed: int = 0,
    ) -> None:
        """Judge how hard each row is: by its length, and by a teacher that has not seen it.

        Args:
            texts: N texts, in the order of the data set.
            labels: N classes, by number or name.
            lengths: N numbers of tokens; None counts characters.
            config: the `[order]` table; None for `strategy = "ordered"`.
            seed: of the order.
        """
        assert len(texts) == len(labels), "a label for each text"
        self._config = config or OrderConfig(strategy="ordered")
        assert not self._config.dynamic, "order.dynamic needs the losses of textmill's own loop"
        self._seed = seed
        self._num_rows = len(texts)
        self._epoch = 0
        names = sorted({str(label) for label in labels})
        places = {name: index for index, name in enumerate(names)}
        classes = np.array([places[str(label)] for label in labels], dtype=np.int64)
        counted = [_characters(text) for text in texts] if lengths is None else list(lengths)
        examples = [
            Example(id=str(row), text=text, labels=(str(label),))
            for row, (text, label) in enumerate(zip(texts, labels, strict=True))
        ]
        difficulty = difficulty_for(self._config, examples, np.asarray(counted, dtype=np.int64), seed)
        self._schedule = schedule_for(
            self._config, difficulty=difficulty, class_index=classes, labels=names, seed=seed
        )

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch, from 0, the next pass is."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        """Yield the positions of the epoch; the next pass is the next one, unless told otherwise."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        order = self._schedule.order(epoch, self._num_rows, numpy_generator(self._seed, "order", epoch))
        yield from order.rows.tolist()

    def __len__(self) -> int:
        if self._schedule.reaches_all:
            return self._num_rows
        rng = numpy_generator(self._seed, "order", self._epoch)
        return len(self._schedule.order(self._epoch, self._num_rows, rng).rows)


def _characters(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(len(part) for part in text)
