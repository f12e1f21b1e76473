"""What must not change when a run goes on: data, order, and everything the steps depend on.

Promise: a resume on other data or with another setting is refused with what differs, never
answered by skipping batches of other rows. More epochs, patience, checkpoints, device and threads may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.core.errors import DataError, ProjectError
from textmill.data.fingerprint import SidePrint, print_side, what_differs
from textmill.data.prepare import Splits
from textmill.data.split import Side
from textmill.encode.settings import TokenizerSettings
from textmill.model.config import ModelConfig
from textmill.order.config import OrderConfig
from textmill.train.config import TrainConfig

_MAY_CHANGE = {
    "epochs", "patience", "checkpoint_every_s", "checkpoint_every", "keep_checkpoints",
    "device", "threads", "tensorboard",
}  # fmt: skip

_CUT = {"max_length", "long_text", "window_overlap", "window_pool"}


def identify(
    splits: Splits,
    lengths: npt.NDArray[np.int64],
    config: TrainConfig,
    order: OrderConfig,
    max_tokens: int,
    model: ModelConfig,
    encode: TokenizerSettings,
) -> dict[str, Any]:
    """Return plain values that are equal for two runs exactly if one can go on as the other.

    Args:
        splits: the data.
        lengths: (N,) tokens of each training row, which stand for tokenizer and length limit.
        config: the training's settings.
        order: the order's settings.
        max_tokens: the token budget in use.
        model: the classifier's settings; where its first weights came from does not matter any more.
        encode: how rows are cut; the lengths alone would not tell a head from a tail.
    """
    return {
        **identify_asked(splits, config, order, model, encode),
        "lengths": hashlib.sha256(np.ascontiguousarray(lengths).tobytes()).hexdigest(),
        "max_tokens": max_tokens,
    }


def identify_asked(
    splits: Splits,
    config: TrainConfig,
    order: OrderConfig,
    model: ModelConfig,
    encode: TokenizerSettings,
) -> dict[str, Any]:
    """Return the part of `identify` that is known before a row is encoded."""
    return {
        "data": {
            "fingerprint": splits.fingerprint,
            "labels": list(splits.labels),
            "sides": {side: asdict(found) for side, found in _sides(splits).items()},
        },
        "train": config.model_dump(mode="json", exclude=_MAY_CHANGE),
        "order": order.model_dump(mode="json"),
        "model": model.model_dump(mode="json", exclude={"backbone"}),
        "encode": encode.model_dump(mode="json", include=_CUT),
    }


def check_same_data(before: dict[str, Any], splits: Splits) -> None:
    """Go on only with the data of the run.

    Raises:
        DataError: the fingerprints differ.
    """
    known = before["data"]
    if known["fingerprint"] == splits.fingerprint:
        return
    raise DataError(
        "A run must go on with the data it began with",
        got=f"the fingerprint {splits.fingerprint[:12]} instead of {known['fingerprint'][:12]}: "
        + "; ".join(_differences(known, splits)),
        fix="Put the data back, or start a new run without --resume.",
    )


def check_same_settings(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Go on only with the settings that the steps depend on.

    Raises:
        ProjectError: a setting differs that may not change.
    """
    for table in ("train", "order", "model", "encode"):
        for key in sorted(before.get(table, {}).keys() | now[table].keys()):
            old, new = before.get(table, {}).get(key), now[table].get(key)
            if old != new:
                raise ProjectError(
                    f"{table}.{key} must not change while a run goes on",
                    got=f"{new!r} instead of {old!r}",
                    fix=f"Set {table}.{key} back, or start a new run without --resume.",
                )
    if before.get("lengths") != now.get("lengths"):
        raise ProjectError(
            "Tokenizer and encode.max_length must not change while a run goes on",
            got="training rows of other token counts",
            fix="Set them back, or start a new run without --resume.",
        )


def _differences(known: dict[str, Any], splits: Splits) -> Iterator[str]:
    if list(splits.labels) != known["labels"]:
        yield f"classes {list(splits.labels)} instead of {known['labels']}"
    before: dict[Side, SidePrint] = {side: SidePrint(**table) for side, table in known["sides"].items()}
    yield from what_differs(before, _sides(splits))


def _sides(splits: Splits) -> dict[Side, SidePrint]:
    return {
        "train": print_side(splits.train),
        "valid": print_side(splits.valid),
        "test": print_side(splits.test),
    }
