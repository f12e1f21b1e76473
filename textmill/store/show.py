"""What a store holds, as plain rows for people and programs.

What is not covered: the journal's lines (`Store.journal`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from textmill.core.errors import StoreError
from textmill.core.progress import SILENT, Progress
from textmill.store.registry import Store
from textmill.store.state import State

COLUMNS = ("version", "status", "created", "metrics", "MB")
"""Of what `shown_version` returns."""


def list_versions(store: Store) -> list[dict[str, Any]]:
    """Return one row a version, ascending: number, what it is now, time, metrics, bytes.

    A version with a damaged manifest is listed with its fault in place of the rest.

    Raises:
        StoreError: there is no such store.
    """
    state = store.state()
    return [_row(store, state, version) for version in store.versions()]


def shown_version(row: dict[str, Any]) -> tuple[int, str, str, str, int]:
    """Return a row of `list_versions` for people: local time to the minute, megabytes."""
    try:
        created = f"{datetime.fromisoformat(row['created']).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        created = row["created"]  # damaged
    return row["version"], row["status"], created, row["metrics"], round(row["size_bytes"] / 1e6)


def show_version(store: Store, version: int, progress: Progress = SILENT) -> dict[str, Any]:
    """Return everything the manifest of a version says; every hash is checked first.

    Raises:
        StoreError: no such version, or a damaged one.
    """
    bundle = store.bundle(version)
    bundle.verify(progress)
    manifest = bundle.manifest
    return {
        "name": manifest.name,
        "version": version,
        "status": _status(store.state(), version),
        "created": manifest.created,
        "textmill": manifest.textmill,
        "digest": manifest.digest,
        "path": str(bundle.path),
        "signature": manifest.signature.model_dump(mode="json"),
        "metrics": manifest.metrics,
        "parent": manifest.parent,
        "data_fingerprint": manifest.data_fingerprint,
        "files": {name: entry.size for name, entry in sorted(manifest.files.items())},
        "size_bytes": manifest.size_bytes,
    }


def _row(store: Store, state: State, version: int) -> dict[str, Any]:
    row: dict[str, Any] = {"version": version, "status": _status(state, version)}
    try:
        manifest = store.bundle(version).manifest
    except StoreError as err:
        return {**row, "created": f"damaged: {err.got}", "metrics": "", "size_bytes": 0}
    metrics = ", ".join(f"{name} {value:.3f}" for name, value in manifest.metrics.items())
    return {**row, "created": manifest.created, "metrics": metrics, "size_bytes": manifest.size_bytes}


def _status(state: State, version: int) -> str:
    words = [
        name for name, number in (("live", state.live), ("previous", state.previous)) if number == version
    ]
    words += sorted(name for name, number in state.channels.items() if number == version)
    words += ["pinned"] if version in state.pins else []
    words += [f"banned ({state.bans[version]})"] if version in state.bans else []
    return ", ".join(words)
