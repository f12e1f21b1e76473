"""The batches of each epoch, as a pure function of (seed, epoch, difficulties).

Promises: the same arguments give the same batches in every process, so that a position in a
training is (epoch, number of batches done) and nothing else has to be saved beside the difficulties;
the token budget holds for every strategy; where the schedule leaves the order free, rows of like
length meet in a batch (little padding), which rows meet differs from epoch to epoch, and the
batches come in random order.

The way of grouping is that of "sortish" sampling (shuffle, sort large pools by length, cut,
shuffle the batches), with the sort keys jittered so that equal lengths do not always meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.core.seeds import numpy_generator
from textmill.encode.budget import token_batches
from textmill.order.epoch import Schedule
from textmill.order.schedules.shuffle import Shuffle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textmill.order.difficulty import Difficulty

_POOL_ROWS = 2048
"""Rows sorted together. Padding share on 7,000 rows (log-normal, mean 27 tokens) at 864 tokens a batch:
512 rows 7.5 %, 1,024 rows 4.0 %, 2,048 rows 2.0 %; of two rows in one batch, 15 % meet again next epoch."""
_JITTER = 0.02
"""Lengths are multiplied by 1 +- this before sorting; 2 % costs 0.4 % of padding, 5 % costs 2.6 %."""


class BatchPlan:
    """Cuts each epoch into batches."""

    def __init__(
        self,
        lengths: NDArray[np.int64],
        max_tokens: int,
        max_rows: int | None = None,
        *,
        seed: int = 0,
        schedule: Schedule | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        """Keep what the plan is a function of.

        Args:
            lengths: (N,) tokens of each training example, after cutting to max_length.
            max_tokens: bound on rows x longest row of a batch, padding included.
            max_rows: bound on the rows of a batch; None for no bound.
            seed: the seed of the training.
            schedule: the strategy; None for a shuffle.
            rank: which of `world` processes this plan is for.
            world: processes that share the batches.
        """
        assert 0 <= rank < world, f"rank {rank} of {world}"
        self.lengths = lengths
        self.max_tokens = max_tokens
        self.max_rows = max_rows
        self.seed = seed
        self.schedule: Schedule = Shuffle() if schedule is None else schedule
        self.rank = rank
        self.world = world

    def plan_epoch(self, epoch: int) -> list[NDArray[np.int64]]:
        """Return the batches of epoch `epoch` (from 0) as positions into the training examples."""
        rng = numpy_generator(self.seed, "order", epoch)
        chosen = self.schedule.order(epoch, len(self.lengths), rng)
        head, tail = chosen.rows[: chosen.num_ordered], chosen.rows[chosen.num_ordered :]
        free = self._cut(self._group_by_length(tail, rng))
        batches = self._cut(head) + [free[index] for index in rng.permutation(len(free))]
        if self.world == 1:
            return batches
        return fill_last_round(batches, self.world)[self.rank :: self.world]

    def num_reached(self, epoch: int) -> int:
        """Return how many different rows the epoch holds; N except where the strategy says otherwise."""
        return len(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *self.plan_epoch(epoch)])))

    def with_difficulty(self, difficulty: Difficulty) -> BatchPlan:
        """Return the same plan with newer difficulties; it differs only where the strategy uses them."""
        return self._copy(self.schedule.with_difficulty(difficulty), self.rank, self.world)

    def shard(self, rank: int, world: int) -> BatchPlan:
        """Return the part of one of `world` processes: batches rank, rank + world, ... of the whole plan.

        All parts have equally many batches and hold every row of the plan exactly once: where the last
        round has fewer batches than processes, its largest ones are halved. Only when fewer rows are
        left than processes are some of these batches empty; their owner adds nothing to that step.
        """
        return self._copy(self.schedule, rank, world)

    def _copy(self, schedule: Schedule, rank: int, world: int) -> BatchPlan:
        return BatchPlan(
            self.lengths,
            self.max_tokens,
            self.max_rows,
            seed=self.seed,
            schedule=schedule,
            rank=rank,
            world=world,
        )

    def _cut(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [rows[batch] for batch in token_batches(self.lengths[rows], self.max_tokens, self.max_rows)]

    def _group_by_length(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        keys = self.lengths[rows] * rng.uniform(1 - _JITTER, 1 + _JITTER, len(rows))
        num_pools = max(1, round(len(rows) / _POOL_ROWS))
        pools = np.array_split(np.arange(len(rows)), num_pools)
        # Every second pool runs downwards, so that the batch across two pools has like lengths too.
        ordered = [
            pool[np.argsort(keys[pool] * (1 if number % 2 == 0 else -1), kind="stable")]
            for number, pool in enumerate(pools)
        ]
        return rows[np.concatenate(ordered)]


def fill_last_round(batches: list[NDArray[np.int64]], world: int) -> list[NDArray[np.int64]]:
    """Return batches whose number is a multiple of `world`, made by halving batches of the last round.

    Halves are neighbours in the batch's own order, so that a balanced batch has balanced halves.
    """
    whole = len(batches) - len(batches) % world
    last = batches[whole:]
    while last and len(last) < world:
        largest = max(range(len(last)), key=lambda index: len(last[index]))
        rows, middle = last[largest], (len(last[largest]) + 1) // 2
        if len(rows) < 2:
            last.append(rows[:0])
        else:
            last[largest : largest + 1] = [rows[:middle], rows[middle:]]
    return batches[:whole] + last
