from __future__ import annotations

import stat

import pytest

from tests.serve.bundles import MODEL
from tests.serve.clients import ask, predict
from textmill.core.errors import ServeError
from textmill.serve.admin import AdminClient
from textmill.serve.front import TOKEN_FILE, read_or_make_token
from textmill.serve.server import start_server


@pytest.mark.parametrize("authorization", [None, "Bearer ", "Bearer wrong", "Basic abc"])
def test_without_the_token_nothing_is_told_or_done(quiet, authorization):
    _, server = quiet
    headers = {} if authorization is None else {"Authorization": authorization}
    for method, path in (("GET", "/admin/status"), ("POST", "/admin/stop"), ("GET", "/nothing")):
        assert ask(server.admin_url, method, path, **headers).status == 401
    assert server.is_running


def test_the_token_is_its_owners_secret(quiet):
    shelf, server = quiet
    path = shelf.root / ".admin-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text()
    assert token not in ask(server.url, "GET", "/v1/models").body.decode()


def test_the_status_tells_stages_and_workers(quiet):
    shelf, server = quiet
    model = AdminClient(shelf.root, server.address.admin_port).status()["models"][MODEL]
    assert model["live"] == 1
    assert model["versions"][0]["stage"] == "live"
    assert model["versions"][0]["worker_pid"] > 0


def test_a_version_is_loaded_beside_the_live_one_and_unloaded_again(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)
    with start_server(shelf.root, [MODEL], config) as server:
        admin = AdminClient(shelf.root, server.address.admin_port)
        assert predict(server.url, ["good"], version=2).status == 404
        assert admin.load(MODEL, 2)["stage"] == "available"
        assert predict(server.url, ["good"], version=2).version == 2
        assert predict(server.url, ["good"]).version == 1
        admin.unload(MODEL, 2)
        assert predict(server.url, ["good"], version=2).status == 404
        with pytest.raises(ServeError, match="not live"):
            admin.unload(MODEL, 1)
        with pytest.raises(ServeError, match="version 9"):
            admin.load(MODEL, 9)
        with pytest.raises(ServeError, match="previous version"):
            admin.rollback(MODEL)
        admin.stop()
        assert server.wait() == 0


def test_an_absent_server_is_told_with_its_port(shelf, config):
    with pytest.raises(ServeError, match="admin-token"):
        AdminClient(shelf.root, 1)


def test_a_token_that_was_not_written_to_its_end_is_made_again(tmp_path):
    (tmp_path / TOKEN_FILE).touch(0o600)  # a server that was killed, or has just begun
    token = read_or_make_token(tmp_path)
    assert len(token) >= 32
    assert read_or_make_token(tmp_path) == token
