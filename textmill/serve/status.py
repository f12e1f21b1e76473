"""What a server says about its models: in TensorFlow Serving's shape, and for people."""

from __future__ import annotations

import time
from typing import Any

from textmill.core.errors import RequestError
from textmill.serve.lifecycle import Keeper
from textmill.serve.version import LoadedVersion, Stage

_TFS_STATES = {
    Stage.VERIFYING: "START",
    Stage.LOADING: "LOADING",
    Stage.WARMING: "LOADING",
    Stage.GATING: "LOADING",
    Stage.AVAILABLE: "AVAILABLE",
    Stage.LIVE: "AVAILABLE",
    Stage.RESTARTING: "AVAILABLE",
    Stage.DRAINING: "UNLOADING",
    Stage.RETIRED: "END",
    Stage.REJECTED: "END",
}
_FAILED_PRECONDITION = "FAILED_PRECONDITION"


def model_status(keeper: Keeper, version: int | None = None) -> dict[str, Any]:
    """Return the status of one model in TensorFlow Serving's shape, with our `stage` beside it.

    Args:
        keeper: the model.
        version: only this one; None for all that are loaded or refused.

    Raises:
        RequestError: 404 for a version that is neither.
    """
    rows: dict[int, dict[str, Any]] = {
        number: _row(number, _TFS_STATES[each.stage], each.stage.value)
        for number, each in keeper.loaded.items()
    }
    for number, refusal in keeper.refusals.items():
        if number not in rows:
            row = _row(number, "END", Stage.REJECTED.value)
            row["status"] = {"error_code": _FAILED_PRECONDITION, "error_message": refusal.reason}
            rows[number] = row
    if version is not None:
        if version not in rows:
            raise RequestError(
                "The version must be loaded, or have been refused",
                got=f"version {version}",
                fix=f"Known: {', '.join(map(str, sorted(rows))) or 'none'}.",
                status=404,
            )
        rows = {version: rows[version]}
    return {"model_version_status": [rows[number] for number in sorted(rows, reverse=True)]}


def _row(number: int, state: str, stage: str) -> dict[str, Any]:
    return {
        "version": str(number),
        "state": state,
        "status": {"error_code": "OK", "error_message": ""},
        "stage": stage,
    }


def model_metadata(keeper: Keeper, version: LoadedVersion) -> dict[str, Any]:
    """Return what a loaded version reads and answers, and where it comes from."""
    manifest = version.bundle.manifest
    return {
        "model_spec": {"name": keeper.store.name, "signature_name": "", "version": str(version.number)},
        "metadata": {
            **manifest.signature.model_dump(mode="json"),
            "digest": version.digest,
            "created": manifest.created,
            "metrics": manifest.metrics,
            "textmill": manifest.textmill,
        },
    }


def server_status(keepers: dict[str, Keeper]) -> dict[str, Any]:
    """Return everything about every model, for the admin socket and the page."""
    return {"time": time.time(), "models": {name: _model(keeper) for name, keeper in keepers.items()}}


def _model(keeper: Keeper) -> dict[str, Any]:
    return {
        "live": keeper.live.number if keeper.live is not None else None,
        "swapped_at": keeper.swapped_at,
        "commit_ms": keeper.commit_ms,
        "versions": [_version(each) for _, each in sorted(keeper.loaded.items())],
        "refused": [
            {"version": each.version, "reason": each.reason, "when": each.when}
            for _, each in sorted(keeper.refusals.items())
        ],
    }


def _version(version: LoadedVersion) -> dict[str, Any]:
    return {
        "version": version.number,
        "stage": version.stage.value,
        "digest": version.digest,
        "task": version.encoder.task,
        "labels": list(version.labels),
        "since": version.since,
        "load_seconds": round(version.load_seconds, 3),
        "open_requests": version.num_open,
        "waiting_texts": version.num_waiting,
        "worker_pid": version.worker_pid,
        "restarts": version.num_restarts,
    }
