"""The faults that may end a request which was accepted, in the words that its client reads."""

from __future__ import annotations

from textmill.core.errors import RequestError


def unavailable(version: int) -> RequestError:
    """Return the 503 of a version that ends before it answers."""
    return RequestError(
        "A version must be in service to answer",
        got=f"version {version}, which was taken out of service",
        fix="Send the request again after the time in Retry-After.",
        status=503,
    )


def too_late(timeout_s: float, got: str) -> RequestError:
    """Return the 504 of a request that was not answered in time."""
    return RequestError(
        f"A request must be answered within {timeout_s:g} s",
        got=got,
        fix="Send fewer and shorter texts, or try again when the server is less busy.",
        status=504,
    )


def uncomputable(index: int, reason: str) -> RequestError:
    """Return the 500 of a text under which the model, or its worker, fails."""
    return RequestError(
        "Every text must be computable",
        got=f"{reason} (item {index})",
        fix="Leave this text out; the server's log has the details.",
        status=500,
    )
