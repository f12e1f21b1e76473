"""The `[train]` table of a project file.

Promises: every field has a default and a range; a value out of range is refused with its key.
What is not covered: in which order examples come (`order/config.py`), what the model is (`model/config.py`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from textmill.core.config import Config

Metric = Literal["f1_macro", "accuracy", "loss"]
Positive = Annotated[int, Field(gt=0)]
Threads = Annotated[int, Field(gt=0, le=1024)]  # far more than that end the process without a word
Budget = Annotated[int, Field(ge=8)]  # room for one short text


class TrainConfig(Config):
    """How a classifier is trained."""

    epochs: int = Field(3, ge=1)
    """How often every training row is seen."""
    lr: float = Field(2e-5, gt=0, lt=1)
    """The highest learning rate, reached after the warm-up."""
    batch_size: int = Field(32, ge=1)
    """Rows of an average batch; `max_tokens = "auto"` follows from it."""
    max_tokens: Literal["auto", "probe"] | Budget = "auto"
    """Tokens of a batch with padding: "auto" is batch_size x mean length; "probe" measures this machine."""
    max_rows: Positive | None = None
    """Rows of a batch at most, which bounds batches of short texts; none: twice batch_size."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are added up for one step; the loss is the mean over all their rows."""
    optimizer: Literal["adamw", "adam", "rmsprop"] = "adamw"
    """The optimizer; Adam and AdamW correct their bias."""
    weight_decay: float = Field(0.01, ge=0, lt=1)
    """Weight decay; biases and layer norms are never decayed."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rate falls to zero after the warm-up, or stays."""
    warmup_share: float = Field(0.1, ge=0, lt=1)
    """Share of all steps in which the learning rate rises to `lr`."""
    clip_norm: float = Field(1.0, gt=0, allow_inf_nan=False)
    """Gradients longer than this are shortened to it; a large number such as 1e9 never shortens."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target that is spread evenly over all classes, or over yes and no of each class."""
    class_weights: Literal["none", "balanced"] = "none"
    """"balanced" gives rare classes more weight: rows / (classes x rows of the class); with several labels
    a row the rows with a class weigh rows without it / rows with it, at most 20."""
    metric: Metric = "f1_macro"
    """The validation metric that decides which state is the best; accuracy of several labels a row is the
    share of rows with exactly the right ones."""
    evaluate_every: Positive | None = None
    """Steps between two evaluations; none: after each epoch. The last step is always evaluated."""
    patience: Positive | None = None
    """Evaluations in a row without gain after which training stops; none: never before the last epoch."""
    checkpoint_every_s: float = Field(300.0, gt=0, allow_inf_nan=False)
    """Seconds between two checkpoints, beside those after each epoch and each new best state."""
    checkpoint_every: Positive | None = None
    """Steps between two checkpoints, beside those by time."""
    keep_checkpoints: int = Field(2, ge=1)
    """How many of the newest checkpoints stay on disk."""
    seed: int = Field(0, ge=0, lt=2**32)
    """The seed of order and dropout; the same seed gives the same numbers on one machine."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to compute; "auto" takes cuda, then mps, then cpu."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Number format of the forward pass; "auto" is bf16 on GPUs that have it, else fp32."""
    threads: Literal["auto"] | Threads = "auto"
    """CPU threads; "auto" is every processor that this process may use."""
    tensorboard: bool = False
    """Write TensorBoard files beside events.jsonl (needs the extra `track`)."""

    @property
    def row_limit(self) -> int:
        """Rows of a batch at most.

        Twice the batch size: of movie reviews (mean 27 tokens, budget 857) it cuts 1 batch in 20, those
        of the shortest texts, which would hold up to 95 rows, and costs no padding (2.2 % either way);
        a bound of 32 would cut 4 in 10 and make 13 % more steps.
        """
        return self.max_rows or 2 * self.batch_size
