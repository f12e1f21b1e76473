"""Rows of different lengths to rectangular arrays.

Promises: the attention mask comes from the lengths, never from the ids, so that a text that
contains the pad token is not masked; all arrays are contiguous int64.
This module loads only NumPy, so that serving processes can use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PadSide: TypeAlias = Literal["left", "right"]


class Encoded(NamedTuple):
    """One row of token ids, not padded."""

    ids: NDArray[np.int32]  # (T,)
    type_ids: NDArray[np.int32] | None  # (T,), for backbones that tell segments apart


def lengths_of(encoded: Sequence[Encoded]) -> NDArray[np.int64]:
    """Return the (N,) number of tokens of each row."""
    return np.fromiter((len(row.ids) for row in encoded), dtype=np.int64, count=len(encoded))


def pad(
    encoded: Sequence[Encoded], pad_id: int, pad_side: PadSide, has_type_ids: bool
) -> dict[str, NDArray[np.int64]]:
    """Return the rows as rectangular arrays, padded to the longest.

    Args:
        encoded: B rows.
        pad_id: the id that fills the rest of `input_ids`.
        pad_side: where the fill goes.
        has_type_ids: whether `token_type_ids` is wanted (zeros for rows that have none).

    Returns:
        (B, T) int64 arrays `input_ids`, `attention_mask` and, if wanted, `token_type_ids`.
    """
    type_ids = None
    if any(row.type_ids is not None for row in encoded):
        type_ids = np.concatenate([_type_ids(row) for row in encoded])
    ids = np.concatenate([row.ids for row in encoded]) if len(encoded) else np.zeros(0, np.int32)
    return pad_flat(ids, type_ids, lengths_of(encoded), pad_id, pad_side, has_type_ids)


def pad_flat(
    flat_ids: NDArray[Any],
    flat_type_ids: NDArray[Any] | None,
    lengths: NDArray[np.int64],
    pad_id: int,
    pad_side: PadSide,
    has_type_ids: bool,
) -> dict[str, NDArray[np.int64]]:
    """Return rows that lie behind one another as the rectangular arrays of `pad`.

    Args:
        flat_ids: (sum of the lengths,) integers.
        flat_type_ids: like `flat_ids`; None for zeros.
        lengths: (B,) tokens of each row.
        pad_id: the id that fills the rest of `input_ids`.
        pad_side: where the fill goes.
        has_type_ids: whether `token_type_ids` is wanted.
    """
    longest = int(lengths.max(initial=0))
    position = np.arange(longest)
    if pad_side == "right":
        mask = position[None, :] < lengths[:, None]
    else:
        mask = position[None, :] >= longest - lengths[:, None]
    ids = np.full((len(lengths), longest), pad_id, dtype=np.int64)
    # A boolean mask is read row by row from left to right, on either side of padding.
    ids[mask] = flat_ids
    arrays = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
    if has_type_ids:
        type_ids = np.zeros_like(ids)
        if flat_type_ids is not None:
            type_ids[mask] = flat_type_ids
        arrays["token_type_ids"] = type_ids
    return arrays


def _type_ids(row: Encoded) -> NDArray[np.int32]:
    return np.zeros_like(row.ids) if row.type_ids is None else row.type_ids
