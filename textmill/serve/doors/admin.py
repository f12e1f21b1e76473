"""The admin socket: what changes something, on loopback, behind a token.

Promises: nothing is answered without the token (compared in constant time); versions come from the
store alone, never from a path or an address that a client names.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from textmill.core.errors import RequestError, TextmillError
from textmill.serve.doors.answer import error_body, json_bytes, send_error
from textmill.serve.lifecycle import Keeper
from textmill.serve.status import server_status

Verb = Callable[[Keeper, Request], Awaitable[dict[str, Any]]]


def admin_app(keepers: dict[str, Keeper], token: str, stop: Callable[[], None]) -> ASGIApp:
    """Return the application of the admin socket.

    Args:
        keepers: the models by name.
        token: the bearer token that every request must carry.
        stop: begins the end of the server.
    """

    async def status(_: Request) -> Response:
        return _json(server_status(keepers))

    async def stop_server(_: Request) -> Response:
        stop()
        return _json({"stopping": True})

    def verb(work: Verb) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            keeper = keepers.get(request.path_params["name"])
            if keeper is None:
                raise RequestError(
                    "The model must be one that this server has",
                    got=ascii(request.path_params["name"])[:80],
                    fix=f"Known: {', '.join(sorted(keepers)) or 'none'}.",
                    status=404,
                )
            try:
                return _json(await work(keeper, request))
            except RequestError:
                raise
            except TextmillError as err:
                raise RequestError(err.rule, got=err.got, fix=err.fix, status=409) from err

        return answer

    inner = Starlette(
        routes=[
            Route("/admin/status", status),
            Route("/admin/stop", stop_server, methods=["POST"]),
            Route("/admin/models/{name}/versions/{version:int}/load", verb(_load), methods=["POST"]),
            Route("/admin/models/{name}/versions/{version:int}/unload", verb(_unload), methods=["POST"]),
            Route("/admin/models/{name}/rollback", verb(_rollback), methods=["POST"]),
        ],
        exception_handlers={RequestError: _answer_error},
    )

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not _has_token(scope, token):
            refusal = RequestError(
                "Admin requests must carry the server's token",
                got="none, or another one",
                fix="Send Authorization: Bearer with the content of .admin-token in the store folder.",
                status=401,
            )
            await send_error(send, refusal, [(b"www-authenticate", b"Bearer")])
            return
        await inner(scope, receive, send)

    return guarded


async def _load(keeper: Keeper, request: Request) -> dict[str, Any]:
    version = await keeper.load(request.path_params["version"])
    return {"model": keeper.store.name, "version": version.number, "stage": version.stage.value}


async def _unload(keeper: Keeper, request: Request) -> dict[str, Any]:
    await keeper.unload(request.path_params["version"])
    return {"model": keeper.store.name, "version": request.path_params["version"], "stage": "retired"}


async def _rollback(keeper: Keeper, _: Request) -> dict[str, Any]:
    state = await asyncio.get_running_loop().run_in_executor(
        None, keeper.store.rollback, "asked for at the admin socket"
    )
    assert state.live is not None, "a roll-back leads to a version"
    keeper.want(state.live)
    return {"model": keeper.store.name, "live": state.live}


def _has_token(scope: Scope, token: str) -> bool:
    expected = f"Bearer {token}".encode()
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    return len(given) == 1 and hmac.compare_digest(given[0], expected)


def _json(value: Any) -> Response:
    return Response(json_bytes(value), media_type="application/json")


def _answer_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError), error
    return Response(error_body(error), error.status, media_type="application/json")
