"""Prometheus metrics of one server.

Promises: everything is counted in a registry of its own; a version's series end with the version.
"""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class VersionMetrics:
    """The series of one version."""

    rejected: Counter
    waiting: Gauge
    compute: Counter
    rows: Histogram
    tokens: Counter
    padding: Counter
    deaths: Counter


class Metrics:
    """All metrics of a server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        by_version = ["model", "version"]
        self._requests = self._counter("requests", "Predict requests by status code", ["model", "code"])
        self._latency = Histogram(
            "textmill_request_seconds",
            "From the whole body to the answer",
            ["model"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._queue_full = self._counter("queue_full", "Requests refused by a full queue", by_version)
        self._compute = self._counter("compute_seconds", "Seconds the model ran", by_version)
        self._tokens = self._counter("tokens", "Tokens computed, without padding", by_version)
        self._padding = self._counter("padding_tokens", "Tokens computed that were padding", by_version)
        self._deaths = self._counter("worker_deaths", "Workers that ended by themselves", by_version)
        self._swaps = self._counter("swaps", "Changes of the live version", ["model"])
        self._rejects = self._counter("rejected_versions", "Versions that were not let in", ["model"])
        self._waiting = Gauge(
            "textmill_queue_texts", "Texts waiting for a batch", by_version, registry=self._registry
        )
        self._stage = Gauge(
            "textmill_version_stage", "1 for the stage a version is in", [*by_version, "stage"],
            registry=self._registry,
        )  # fmt: skip
        self._rows = Histogram(
            "textmill_batch_rows", "Texts in a batch", by_version, buckets=_ROWS, registry=self._registry
        )
        self._by_version = (
            self._queue_full, self._waiting, self._compute, self._rows,
            self._tokens, self._padding, self._deaths,
        )  # fmt: skip
        self._answers: dict[tuple[str, int], Counter] = {}
        self._latencies: dict[str, Histogram] = {}

    def for_version(self, model: str, version: int) -> VersionMetrics:
        """Return the series of one version."""
        names = (model, str(version))
        return VersionMetrics(
            rejected=self._queue_full.labels(*names),
            waiting=self._waiting.labels(*names),
            compute=self._compute.labels(*names),
            rows=self._rows.labels(*names),
            tokens=self._tokens.labels(*names),
            padding=self._padding.labels(*names),
            deaths=self._deaths.labels(*names),
        )

    def answered(self, model: str, code: int, seconds: float) -> None:
        """Count one answered request; `model` is a known name or "unknown"."""
        counter = self._answers.get((model, code))
        if counter is None:
            counter = self._answers[model, code] = self._requests.labels(model, str(code))
            self._latencies[model] = self._latency.labels(model)
        counter.inc()
        self._latencies[model].observe(seconds)

    def swapped(self, model: str) -> None:
        """Count a change of the live version."""
        self._swaps.labels(model).inc()

    def rejected(self, model: str) -> None:
        """Count a version that was not let in."""
        self._rejects.labels(model).inc()

    def show_stages(self, stages: dict[tuple[str, int], str]) -> None:
        """Set the stage of every version."""
        self._stage.clear()
        for (model, version), stage in stages.items():
            self._stage.labels(model, str(version), stage).set(1)

    def forget(self, model: str, version: int) -> None:
        """Drop the series of a version that is gone."""
        for each in self._by_version:
            each.remove(model, str(version))

    def exposition(self) -> bytes:
        """Return the text that Prometheus reads."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(f"textmill_{name}", text, labels, registry=self._registry)
