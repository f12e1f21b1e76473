"""A tiny BERT and rows of token ids that it can learn, for a real `transformers.Trainer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from textmill.core.seeds import numpy_generator


def rows(num: int, seed: int = 0, classes: int = 2) -> list[dict[str, Any]]:
    """Return rows of 8 tokens; one of them, 10 + class, shows the class."""
    rng = numpy_generator(seed, "rows")
    found = []
    for row in range(num):
        ids = rng.integers(20, 60, size=8)
        ids[rng.integers(1, 8)] = 10 + row % classes
        found.append(
            {"input_ids": ids.tolist(), "attention_mask": [1] * 8, "labels": row % classes, "row": row}
        )
    return found


def tiny_bert(seed: int = 0, **changes: Any) -> BertForSequenceClassification:
    """Return one layer of width 32 from scratch."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        **{"num_labels": 2, **changes},
    )
    return BertForSequenceClassification(config)


def arguments(folder: Path, **changes: Any) -> TrainingArguments:
    """Return settings of a quiet training on the CPU."""
    values: dict[str, Any] = {
        "output_dir": str(folder),
        "use_cpu": True,
        "per_device_train_batch_size": 16,
        "num_train_epochs": 1,
        "learning_rate": 2e-3,
        "max_grad_norm": 1.0,
        "report_to": [],
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "seed": 0,
    }
    return TrainingArguments(**{**values, **changes})


def trainer_for(
    folder: Path,
    callbacks: list[TrainerCallback],
    kind: type[Trainer] = Trainer,
    num: int = 960,
    **changes: Any,
) -> Trainer:
    """Return a trainer of the tiny BERT."""
    found = kind(
        model=changes.pop("model", None) or tiny_bert(),
        args=arguments(folder, **changes),
        train_dataset=rows(num),
        callbacks=callbacks,
    )
    found.remove_callback(PrinterCallback)
    return found
