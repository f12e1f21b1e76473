"""From the vectors of all tokens to one vector a text.

Promises: padding never changes a result, on either side; no control flow depends on data or
shapes, so that each pooling can be exported to ONNX.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from textmill.encode.padding import PadSide
from textmill.model.config import Pooling


class Pool(nn.Module):
    """Pools (B, T, H) to (B, D); D is H, or H x max_length for flatten."""

    def __init__(self, pooling: Pooling, max_length: int, pad_side: PadSide, cls_is_last: bool) -> None:
        """Keep the way of pooling.

        Args:
            pooling: cls, mean, max, last or flatten.
            max_length: length to which flatten fills up.
            pad_side: side of the padding in the batches that will come.
            cls_is_last: whether the tokenizer puts its token for the whole text last (XLNet).
        """
        super().__init__()
        self.pooling: Pooling = "last" if pooling == "cls" and cls_is_last else pooling
        self.max_length = max_length
        self.pad_side = pad_side

    def width(self, hidden_size: int) -> int:
        """Return D for an encoder of width H."""
        return hidden_size * self.max_length if self.pooling == "flatten" else hidden_size

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return (B, D).

        Args:
            hidden: (B, T, H) vectors.
            mask: (B, T) int64, 1 where a token is.
        """
        is_token = mask.unsqueeze(-1).to(hidden.dtype)  # (B, T, 1)
        match self.pooling:
            case "mean":
                return (hidden * is_token).sum(1) / is_token.sum(1).clamp(min=1)
            case "max":
                return hidden.masked_fill(is_token == 0, torch.finfo(hidden.dtype).min).amax(1)
            case "cls":
                return _pick(hidden, mask.argmax(1))
            case "last":
                position = torch.arange(mask.shape[1], device=mask.device)
                return _pick(hidden, (mask * position).argmax(1))
            case "flatten":
                missing = self.max_length - hidden.shape[1]
                fill = (0, 0, 0, missing) if self.pad_side == "right" else (0, 0, missing, 0)
                return functional.pad(hidden * is_token, fill).reshape(-1, self.max_length * hidden.shape[2])


def _pick(hidden: Tensor, position: Tensor) -> Tensor:
    """Return the (B, H) vectors at one position (B,) of each row."""
    index = position.view(-1, 1, 1).expand(-1, 1, hidden.shape[2])
    return hidden.gather(1, index).squeeze(1)
