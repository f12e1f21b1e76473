from __future__ import annotations

import os
import signal
import time

import pytest

from tests.serve.bundles import MODEL, TEXTS
from tests.serve.clients import predict, wait_until
from textmill.serve.admin import AdminClient
from textmill.serve.load import BackgroundLoad
from textmill.serve.server import RunningServer, start_server


def _pid(admin: AdminClient) -> int | None:
    return admin.status()["models"][MODEL]["versions"][0]["worker_pid"]


def _kill_worker(server: RunningServer, admin: AdminClient) -> None:
    wait_until(lambda: _pid(admin) is not None)
    pid = _pid(admin)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: _pid(admin) not in (None, pid))


def test_a_killed_worker_is_replaced_and_answers_again(shelf, config):
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        _kill_worker(server, AdminClient(shelf.root, server.address.admin_port))
        assert predict(server.url, ["good"]).status == 200


@pytest.mark.slow
def test_no_request_fails_when_workers_are_killed_under_load(shelf, config):
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        admin = AdminClient(shelf.root, server.address.admin_port)
        load = BackgroundLoad(server.url, MODEL, TEXTS, clients=8, expected=shelf.expected(1))
        load.start()
        for _ in range(2):
            time.sleep(0.5)
            _kill_worker(server, admin)
        time.sleep(0.5)
        receipt = load.end()
    assert receipt.is_clean, receipt.as_json()
    assert receipt.answered > 50
