"""Draw the head and the encoder's last layers anew.

The last layers of a pretrained encoder are bound to what it was pretrained for (Zhang, Wu, Katiyar,
Weinberger, Artzi 2021, "Revisiting Few-sample BERT Fine-tuning", section 5).
"""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Start, Treatment

_SHARE = 6
"""One layer in six: the paper gains most with 1 to 6 of BERT-large's 24."""


def fresh_layers(situation: Situation) -> Treatment | None:
    """Return the treatment, where an encoder was pretrained and some layer stays."""
    num = max(1, situation.num_layers // _SHARE)
    if not situation.is_pretrained or situation.num_layers <= num:
        return None
    which = "last layer" if num == 1 else f"last {num} layers"
    return Treatment(
        f"draw the head and the encoder's {which} anew", start=Start(fresh_head=True, fresh_layers=num)
    )
