"""Train on a stream.

Promises: those of `loop.py`, for rows that are read as they are needed; a resume after a kill goes on with
the very next step. What a step depends on beside its rows (token budget, class weights, the schedule's
length) is taken from the stream's first rows; the schedule's length is corrected after each epoch.
What is not covered: orders other than a shuffle, the ladder of cures (an alarm of the guard ends the run with
its diagnosis).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textmill.core.errors import ProjectError
from textmill.core.progress import SILENT, Progress
from textmill.data.bad_rows import SIDE_FILE
from textmill.data.stream.open import Stream
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier
from textmill.order.config import OrderConfig
from textmill.order.sampler import BatchPlan
from textmill.train.config import TrainConfig
from textmill.train.device import choose_hardware
from textmill.train.feed import plan_steps
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import Hook
from textmill.train.identity import identify
from textmill.train.loop import guard_for, train_feed
from textmill.train.loss import build_loss
from textmill.train.probe import choose_max_tokens
from textmill.train.result import TrainResult
from textmill.train.resume import begin_or_resume
from textmill.train.rows import encode_rows
from textmill.train.stream_feed import StreamFeed
from textmill.train.stream_steps import StepMaker

_WAY_OUT = (
    "A stream has no [rescue]: lower train.lr; raise data.shuffle_rows, or mix files that are sorted by "
    "class; or set data.streaming = false, which has the cures."
)

_PROBED_ROWS = 4096
"""Of the first rows; their lengths tell the token budget and how many rows a step has."""


def refuse_order(order: OrderConfig) -> None:
    """Raise where a strategy needs to see all rows before the first step.

    Raises:
        ProjectError: any strategy but `shuffle`.
    """
    if order.strategy != "shuffle":
        raise ProjectError(
            "A stream can only be shuffled (order.strategy)",
            got=f"{order.strategy!r} with data.streaming = true",
            fix='Set order.strategy = "shuffle", or data.streaming = false.',
        )


def train_stream(
    classifier: Classifier,
    tokenizer: Tokenizer,
    stream: Stream,
    config: TrainConfig,
    order: OrderConfig,
    run_dir: Path,
    *,
    guard: GuardConfig | None = None,
    resume: bool = False,
    rank: int = 0,
    world: int = 1,
    progress: Progress = SILENT,
    hooks: Sequence[Hook] = (),
) -> TrainResult:
    """Train a classifier; afterwards it holds the best state, which is also in `run_dir / "model"`.

    Args:
        classifier: trained in place.
        tokenizer: the one that belongs to its backbone.
        stream: out of `open_stream`.
        config: the `[train]` table.
        order: the `[order]` table.
        run_dir: as for `train`; gets `bad-rows.jsonl` where rows are left out.
        guard: the `[guard]` table; None: nobody watches.
        resume: go on with the run in `run_dir`.
        rank: of this process, from 0.
        world: processes that train together.
        progress: who watches.
        hooks: who else takes note.

    Raises:
        DataError: a bad row, or a source that does not come back.
        ProjectError: a strategy other than shuffle, a run folder in use, or a resume with other settings.
        TrainingGaveUp: as in `train`.
    """
    refuse_order(order)
    splits = stream.splits
    data = stream.usable.config
    found = begin_or_resume(run_dir, splits, config, resume, progress)
    hardware = choose_hardware(config)
    is_multilabel = classifier.decision.is_multilabel
    with hardware.claimed():
        classifier.to(hardware.device).train()
        probed = splits.train[:_PROBED_ROWS]
        sample = encode_rows(probed, tokenizer, splits.labels, is_multilabel=is_multilabel)
        max_tokens = (
            int(found.identity["max_tokens"])
            if found
            else choose_max_tokens(config, classifier, sample, hardware, progress)
        )
        plan = BatchPlan(sample.lengths, max_tokens, config.row_limit, seed=config.seed)
        make = StepMaker(
            stream.source,
            stream.usable,
            tokenizer,
            max_tokens=max_tokens,
            row_limit=config.row_limit,
            seed=config.seed,
            accumulate=config.accumulate,
            pool_rows=data.shuffle_rows,
            epoch_rows=data.epoch_rows,
            side_file=run_dir / SIDE_FILE if rank == 0 else None,
        )
        feed = StreamFeed(
            make,
            train_rows=stream.train_rows,
            rows_per_step=len(probed) / len(plan_steps(plan, 0, config.accumulate)),
            prefetch=data.prefetch,
            rank=rank,
            world=world,
            progress=progress,
        )
        loss = build_loss(config, make.targets(splits.train), len(splits.labels))
        settled = config.model_copy(update={"precision": hardware.precision})
        return train_feed(
            classifier,
            tokenizer,
            feed,
            encode_rows(splits.valid, tokenizer, splits.labels, is_multilabel=is_multilabel),
            loss,
            config,
            run_dir,
            hardware=hardware,
            identity=identify(
                splits, sample.lengths, settled, order, max_tokens, classifier.config, tokenizer.settings
            ),
            guard=guard_for(guard, loss, splits.labels),
            found=found,
            way_out=_WAY_OUT,
            progress=progress,
            hooks=hooks,
        )
