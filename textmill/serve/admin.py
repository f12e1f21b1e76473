"""Ask a running server for its status, or for a change, over its admin socket.

Promises: the token is read from the store folder, so that whoever may read that file may administer;
every refusal is a `ServeError` in the server's own words.
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from textmill.core.errors import ServeError
from textmill.serve.front import ADMIN_HOST, TOKEN_FILE

_TIMEOUT_S = 300.0


class AdminClient:
    """The admin socket of one server on this machine."""

    def __init__(self, store_root: Path, admin_port: int) -> None:
        """Name a server by the store folder it serves and its admin port.

        Raises:
            ServeError: there is no token, so no server was ever started on this store.
        """
        path = store_root / TOKEN_FILE
        try:
            self._token = path.read_text().strip()
        except OSError as err:
            raise ServeError(
                "The admin token must be readable",
                got=f"{path} ({err.strerror})",
                fix="Start the server with `textmill serve` first, or run this as the user who did.",
            ) from err
        self._port = admin_port

    def status(self) -> dict[str, Any]:
        """Return the status of all models (see `status.server_status`)."""
        return self._ask("GET", "/admin/status")

    def load(self, model: str, version: int) -> dict[str, Any]:
        """Load a version beside the live one; returns when it answers."""
        return self._ask("POST", f"/admin/models/{model}/versions/{version}/load")

    def unload(self, model: str, version: int) -> dict[str, Any]:
        """Take a version that is not live out of memory, after its open requests."""
        return self._ask("POST", f"/admin/models/{model}/versions/{version}/unload")

    def rollback(self, model: str) -> dict[str, Any]:
        """Roll the store back to the previous version, and the server with it."""
        return self._ask("POST", f"/admin/models/{model}/rollback")

    def stop(self) -> dict[str, Any]:
        """Begin the end of the server."""
        return self._ask("POST", "/admin/stop")

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection(ADMIN_HOST, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {self._token}"})
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as err:
            raise ServeError(
                "The server must be running to be administered",
                got=f"no answer at {ADMIN_HOST}:{self._port} ({err})",
                fix="Start it with `textmill serve`, or name its port with serve.admin_port.",
            ) from err
        finally:
            connection.close()
        if response.status >= 400:
            error = answer["error"]
            raise ServeError(error["rule"], got=error["got"], fix=error["fix"])
        return answer
