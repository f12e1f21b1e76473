"""How many tokens a batch may hold.

"auto" is a pure function of config and lengths. "probe" measures: a larger batch saves optimizer
steps, but it can fall out of a processor's caches (seen on two cores: twice the auto budget was slower).
Promise: probing changes neither the classifier nor any random state.
"""

from __future__ import annotations

import copy
import statistics
import time

import numpy as np
import numpy.typing as npt
import torch

from textmill.core.progress import SILENT, Progress
from textmill.model.classifier import Classifier
from textmill.train.config import TrainConfig
from textmill.train.device import Hardware
from textmill.train.loss import Loss
from textmill.train.optim import build_optimizer
from textmill.train.rows import EncodedRows, logits_of

_SHARES = (0.5, 0.71, 1.0, 1.41, 2.0)  # of the auto budget, evenly spaced in the logarithm
_QUANTILES = (0.2, 0.5, 0.8)  # lengths that stand for all rows
_SECONDS = 1.5  # a budget


def auto_max_tokens(config: TrainConfig, lengths: npt.NDArray[np.int64]) -> int:
    """Return batch_size x the mean length of (N,) token counts, at least 8."""
    return max(8, round(config.batch_size * float(lengths.mean())))


def choose_max_tokens(
    config: TrainConfig,
    classifier: Classifier,
    rows: EncodedRows,
    hardware: Hardware,
    progress: Progress = SILENT,
) -> int:
    """Return the token budget that the config asks for."""
    if isinstance(config.max_tokens, int):
        return config.max_tokens
    auto = auto_max_tokens(config, rows.lengths)
    if config.max_tokens == "auto":
        return auto
    speeds = probe_budgets(config, classifier, rows, hardware, [round(auto * share) for share in _SHARES])
    fastest = max(speeds, key=lambda budget: speeds[budget])
    listed = ", ".join(f"{budget}: {speed:.1f}" for budget, speed in speeds.items())
    progress.say(f"Token budget {fastest} (rows/s at each budget measured: {listed}).")
    return fastest


def probe_budgets(
    config: TrainConfig,
    classifier: Classifier,
    rows: EncodedRows,
    hardware: Hardware,
    budgets: list[int],
    seconds: float = _SECONDS,
) -> dict[int, float]:
    """Return training rows per second at each budget.

    Args:
        config: loss, optimizer and the bound on rows.
        classifier: a copy of it is trained.
        rows: training rows.
        hardware: where.
        budgets: tokens of a batch, with padding.
        seconds: time spent on each budget, more where a single round takes longer.
    """
    twin = copy.deepcopy(classifier).train()
    optimizer = build_optimizer(twin, config)
    loss = Loss(config.label_smoothing, is_multilabel=rows.targets.ndim == 2).to(hardware.device)
    order = np.argsort(rows.lengths, kind="stable")
    plans = {budget: _sample_batches(order, rows, budget, config.row_limit) for budget in budgets}
    row_times: dict[int, list[float]] = {budget: [] for budget in budgets}
    _time_rows(twin, optimizer, loss, rows, hardware, plans[budgets[0]])  # first calls allocate
    until = time.perf_counter() + seconds * len(budgets)
    while True:  # in turn, so that a slow moment of the machine hits all budgets
        for budget, batches in plans.items():
            row_times[budget].append(_time_rows(twin, optimizer, loss, rows, hardware, batches))
        if time.perf_counter() > until:
            return {budget: 1.0 / statistics.median(times) for budget, times in row_times.items()}


def _sample_batches(
    order: npt.NDArray[np.int64], rows: EncodedRows, budget: int, max_rows: int
) -> list[npt.NDArray[np.int64]]:
    """One batch around each quantile of the lengths, as full as the budget allows."""
    batches = []
    for quantile in _QUANTILES:
        centre = min(int(quantile * len(order)), len(order) - 1)
        num_rows = max(1, min(budget // int(rows.lengths[order[centre]]), max_rows, len(order)))
        start = min(max(0, centre + 1 - num_rows), len(order) - num_rows)
        batches.append(order[start : start + num_rows])
    return batches


def _time_rows(
    twin: Classifier,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    rows: EncodedRows,
    hardware: Hardware,
    batches: list[npt.NDArray[np.int64]],
) -> float:
    """Seconds a row, the mean over batches that each stand for the same number of rows."""
    times = []
    for positions in batches:
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with hardware.autocast():
            logits = logits_of(twin, rows.batch(positions), hardware.device)
        labels = rows.targets[torch.from_numpy(positions)].to(hardware.device)
        part = loss(logits, labels, len(positions))
        part.backward()
        optimizer.step()
        part.item()
        times.append((time.perf_counter() - begin) / len(positions))
    return statistics.fmean(times)
