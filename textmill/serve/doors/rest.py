"""The public routes besides predicting: status, metadata, health, metrics, the page.

What is not covered: everything that changes something (`admin.py`, on its own socket).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from textmill.core.errors import RequestError
from textmill.serve.doors.answer import error_body, error_headers, json_bytes
from textmill.serve.lifecycle import Keeper, Router
from textmill.serve.metrics import Metrics
from textmill.serve.status import model_metadata, model_status, server_status

_PAGE = Path(__file__).parent.parent / "page" / "index.html"
_PAGE_POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def rest_app(
    keepers: dict[str, Keeper], router: Router, metrics: Metrics, is_draining: Callable[[], bool]
) -> Starlette:
    """Return the application of the public routes besides predicting."""
    page, policy = _load_page()

    def keeper_of(request: Request) -> Keeper:
        keeper = keepers.get(request.path_params["name"])
        if keeper is None:
            router.find("", None)
            raise AssertionError("no model has an empty name")
        return keeper

    def version_of(request: Request) -> int | None:
        text = request.path_params.get("version")
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise RequestError(
                "A version must be a number",
                got=ascii(text)[:40],
                fix="Write for example /versions/1.",
                status=404,
            )
        return int(text)

    async def status(request: Request) -> Response:
        return _json(model_status(keeper_of(request), version_of(request)))

    async def metadata(request: Request) -> Response:
        keeper = keeper_of(request)
        return _json(model_metadata(keeper, router.find(keeper.store.name, version_of(request))))

    async def models(_: Request) -> Response:
        return _json(public_status(keepers))

    async def live(_: Request) -> Response:
        return _json({"status": "live"})

    async def ready(_: Request) -> Response:
        serving = {name: _number_of(keeper) for name, keeper in keepers.items()}
        is_ready = any(number is not None for number in serving.values()) and not is_draining()
        return _json(
            {"status": "ready" if is_ready else "not ready", "live": serving}, 200 if is_ready else 503
        )

    async def show_metrics(_: Request) -> Response:
        metrics.show_stages(
            {
                (name, number): version.stage.value
                for name, keeper in keepers.items()
                for number, version in keeper.loaded.items()
            }
        )
        return Response(metrics.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def show_page(_: Request) -> Response:
        headers = {
            "content-security-policy": policy,
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "cache-control": "no-cache",
        }
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    app = Starlette(
        routes=[
            Route("/", show_page),
            Route("/health/live", live),
            Route("/health/ready", ready),
            Route("/metrics", show_metrics),
            Route("/v1/models", models),
            Route("/v1/models/{name}", status),
            Route("/v1/models/{name}/metadata", metadata),
            Route("/v1/models/{name}/versions/{version}", status),
            Route("/v1/models/{name}/versions/{version}/metadata", metadata),
        ],
        exception_handlers={RequestError: _answer_error, HTTPException: _answer_http_error},
    )
    # A redirect would lead to whatever the Host header says.
    app.router.redirect_slashes = False
    return app


def public_status(keepers: dict[str, Keeper]) -> dict[str, Any]:
    """Return what the page shows: the status without process ids."""
    status = server_status(keepers)
    for model in status["models"].values():
        for version in model["versions"]:
            del version["worker_pid"]
    return status


def _number_of(keeper: Keeper) -> int | None:
    live = keeper.live
    return live.number if live is not None and live.is_available else None


def _json(value: Any, status: int = 200) -> Response:
    return Response(json_bytes(value), status, media_type="application/json")


def _answer_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError), error
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    return Response(error_body(error), error.status, headers, media_type="application/json")


def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), error
    if error.status_code == 405 and ":" not in request.url.path:
        fault = RequestError(
            "The address must be read by GET", got=request.method[:20], fix="Send a GET request.", status=405
        )
    else:
        fault = RequestError(
            "The address must be one that this server has",
            got=ascii(request.url.path)[1:-1][:100],
            fix="POST /v1/models/NAME:predict, or GET /v1/models/NAME; GET / shows a page to try it.",
            status=404,
        )
    answer = _answer_error(request, fault)
    answer.headers.update(error.headers or {})
    return answer


def _load_page() -> tuple[bytes, str]:
    """Return the page and the policy that lets exactly its own style and script run."""
    page = _PAGE.read_bytes()

    def digest(tag: bytes) -> str:
        found = re.search(rb"<%b>(.*?)</%b>" % (tag, tag), page, re.DOTALL)
        assert found is not None, f"the page has no <{tag.decode()}>"
        return base64.b64encode(hashlib.sha256(found[1]).digest()).decode()

    return page, _PAGE_POLICY.format(style=digest(b"style"), script=digest(b"script"))
