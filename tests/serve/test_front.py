from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.serve.bundles import MODEL, TEXTS
from tests.serve.clients import open_socket, predict, raw_request, read_answer, wait_until
from textmill.core.errors import ServeError
from textmill.serve.admin import AdminClient
from textmill.serve.load import BackgroundLoad
from textmill.serve.server import start_server


def _worker_pid(shelf, server) -> int:
    status = AdminClient(shelf.root, server.address.admin_port).status()
    return status["models"][MODEL]["versions"][0]["worker_pid"]


def _is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("key", ["port", "admin_port"])
def test_a_port_in_use_is_told_with_the_way_out(shelf, config, key):
    shelf.publish(1, live=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServeError) as caught:
            start_server(shelf.root, [MODEL], config.model_copy(update={key: port}))
    assert f"port {port}" in caught.value.got
    assert f"serve.{key} = {port + 1}" in caught.value.fix


def test_an_unknown_model_is_told_with_the_nearest_name(shelf, config):
    shelf.publish(1, live=True)
    with pytest.raises(ServeError, match="Did you mean 'm'"):
        start_server(shelf.root, ["mm"], config)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_its_workers_in_order(shelf, config, number):
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        worker = _worker_pid(shelf, server)
        with open_socket(server.url) as link, link.makefile("rb") as stream:
            link.sendall(raw_request("good"))
            assert read_answer(stream).status == 200
            os.kill(server.pid, number)
            # An idle connection may still ask once; the answer says that it is the last one.
            time.sleep(0.2)
            link.sendall(raw_request("good"))
            last = read_answer(stream)
            assert (last.status, last.headers["connection"]) == (200, "close")
            assert stream.read() == b""
        assert server.wait() == 0
        assert not _is_alive(worker)


def test_no_worker_outlives_a_killed_front(shelf, config):
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        worker = _worker_pid(shelf, server)
        os.kill(server.pid, signal.SIGKILL)
        assert server.wait() == -signal.SIGKILL
        wait_until(lambda: not _is_alive(worker))


def test_the_server_ends_when_whoever_started_it_is_gone(shelf, config, tmp_path):
    shelf.publish(1, live=True)
    script = (
        "import sys, os, pathlib\n"
        "from textmill.serve.config import ServeConfig\n"
        "from textmill.serve.server import start_server\n"
        "config = ServeConfig(port=0, admin_port=0, threads=1)\n"
        "server = start_server(pathlib.Path(sys.argv[1]), ['m'], config)\n"
        "pathlib.Path(sys.argv[2]).write_text(str(server.pid))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    told = tmp_path / "pid"
    subprocess.run([sys.executable, "-c", script, str(shelf.root), str(told)], check=False)
    front = int(told.read_text())
    wait_until(lambda: not _is_alive(front))


@pytest.mark.slow
def test_a_stop_under_load_answers_everything_that_was_accepted(shelf, config):
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        load = BackgroundLoad(server.url, MODEL, TEXTS, clients=8, expected=shelf.expected(1))
        load.start()
        time.sleep(1)
        assert server.stop() == 0
        receipt = load.end()
    # After the end nobody listens; before it no connection was lost without its answer.
    assert all("nobody at" in reason for reason in receipt.reasons), receipt.as_json()
    assert receipt.answered > 50
    assert receipt.wrong == 0


def test_two_stops_in_a_row_give_one_end(shelf, config):
    shelf.publish(1, live=True)
    server = start_server(shelf.root, [MODEL], config)
    assert predict(server.url, ["good"]).status == 200
    assert server.stop() == server.stop() == 0


def test_a_server_without_standard_files_ends_in_order(shelf, config, tmp_path):
    shelf.publish(1, live=True)
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "textmill.serve", "--store", str(shelf.root), "--ready-file", str(ready)]
    command += ["--config", config.model_dump_json(), "--", MODEL]
    process = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command])
    wait_until(ready.exists)
    process.terminate()
    assert process.wait(20) == 0
