"""The receipt of a load: the ledger that proves that no request was lost.

Promises: sent = answered + failed; an answer counts as right only if it equals the expected scores of the
version that it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from textmill.core.errors import DataError
from textmill.core.files import write_json
from textmill.core.types import Text

_MAX_REASONS = 10


@dataclass(slots=True)
class Receipt:
    """What was sent, and what came back."""

    started: float
    """Unix time of the first request."""
    sent: int = 0
    answered: int = 0
    """Requests with status 200."""
    failed: int = 0
    """Requests with any other status, or without an answer."""
    wrong: int = 0
    """Answers that differ from the expected scores of the version they name."""
    checked: int = 0
    """Answers that were compared."""
    went_back: int = 0
    """Answers on a connection that had seen that version and then another one."""
    reasons: Counter[str] = field(default_factory=Counter)
    """The first reasons of failed and wrong requests, with counts."""
    by_version: Counter[int] = field(default_factory=Counter)
    first_seen: dict[int, float] = field(default_factory=dict)
    """Seconds from the start to the first answer of each version."""
    seconds: float = 0.0
    """Length of the load."""
    _latencies: list[tuple[float, float]] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether every request was answered, and no answer was wrong."""
        return self.failed == 0 and self.wrong == 0 and self.sent == self.answered

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.answered / self.seconds if self.seconds else 0.0

    def note(self, reason: str) -> None:
        """Keep a reason; of many different ones only the first are kept."""
        if reason in self.reasons or len(self.reasons) < _MAX_REASONS:
            self.reasons[reason] += 1

    def fail(self, reason: str) -> None:
        """Count a request without a good answer."""
        self.failed += 1
        self.note(reason)

    def answer(self, version: int, second: float, latency_s: float) -> None:
        """Count an answer that came `second` seconds after the start."""
        self.answered += 1
        self.by_version[version] += 1
        self.first_seen.setdefault(version, second)
        self._latencies.append((second, latency_s))

    def latency_ms(self, share: float, spans: Sequence[tuple[float, float]]) -> float:
        """Return a quantile of the latencies of answers that came in spans of time.

        Args:
            share: which quantile, 0 to 1.
            spans: begin and end of each span, in seconds from the start.

        Returns:
            Milliseconds; not a number when no answer came then.
        """
        found = [
            latency
            for second, latency in self._latencies
            if any(begin <= second < end for begin, end in spans)
        ]
        return float(np.quantile(found, share)) * 1000 if found else float("nan")

    def as_json(self) -> dict[str, Any]:
        """Return the receipt as plain values."""
        return {
            "started": self.started,
            "seconds": round(self.seconds, 3),
            "sent": self.sent,
            "answered": self.answered,
            "failed": self.failed,
            "wrong": self.wrong,
            "checked": self.checked,
            "went_back": self.went_back,
            "reasons": dict(self.reasons),
            "by_version": {str(version): num for version, num in sorted(self.by_version.items())},
            "first_seen_s": {str(version): round(at, 3) for version, at in sorted(self.first_seen.items())},
            "rate": round(self.rate, 2),
            "latency_ms": _quantiles([latency for _, latency in self._latencies]),
            "by_second": self._by_second(),
        }

    def as_lines(self) -> list[str]:
        """Return what a person wants to know first."""
        by_version = ", ".join(f"{num} by version {each}" for each, num in sorted(self.by_version.items()))
        latency = _quantiles([latency for _, latency in self._latencies])
        return [
            f"{self.sent} sent, {self.answered} answered, {self.failed} failed, {self.wrong} wrong",
            f"{self.rate:.1f} answers/s ({by_version or 'none'})",
            "Latency " + (", ".join(f"{name} {value:.1f} ms" for name, value in latency.items()) or "none"),
            *(f"  {count} x {reason}" for reason, count in self.reasons.most_common()),
        ]

    def write(self, path: Path) -> None:
        """Write the receipt as JSON, atomically."""
        write_json(path, self.as_json())

    def _by_second(self) -> list[dict[str, float]]:
        seconds: dict[int, list[float]] = {}
        for second, latency in self._latencies:
            seconds.setdefault(int(second), []).append(latency)
        return [
            {"second": second, "answered": len(values), **_quantiles(values)}
            for second, values in sorted(seconds.items())
        ]


def _quantiles(latencies: list[float]) -> dict[str, float]:
    if not latencies:
        return {}
    values = np.quantile(latencies, (0.5, 0.95, 0.99)) * 1000
    return {name: round(float(value), 3) for name, value in zip(("p50", "p95", "p99"), values, strict=True)}


def texts_of_file(path: Path, *, is_pairs: bool = False) -> list[Text]:
    """Return the lines of a text file that are not empty.

    Args:
        path: the file.
        is_pairs: whether each line holds two texts with a tab between them.

    Raises:
        DataError: no such file, not UTF-8, no line with text, or a line that is no pair.
    """
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as err:
        raise DataError(
            "The texts of a load must be lines of a UTF-8 file", got=f"{path} ({err})", fix="Name another."
        ) from err
    if not lines:
        raise DataError("A load needs at least one text", got=f"{path} without any", fix="Name another file.")
    return [_pair_of(line, path) for line in lines] if is_pairs else [*lines]


def _pair_of(line: str, path: Path) -> tuple[str, str]:
    parts = line.split("\t")
    if len(parts) != 2:
        raise DataError(
            "Each line of a load on a model of pairs must hold two texts with a tab between them",
            got=f"{len(parts) - 1} tabs in {line[:60]!r} ({path})",
            fix="Write first text, tab, second text.",
        )
    return parts[0], parts[1]
