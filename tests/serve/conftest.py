from __future__ import annotations

import socket

import pytest

from tests.serve.bundles import MODEL, Shelf
from textmill.serve.config import ServeConfig
from textmill.serve.server import start_server


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture
def shelf(sources, tmp_path):
    return Shelf(sources, tmp_path / "store")


@pytest.fixture(scope="session")
def config():
    return ServeConfig(port=0, admin_port=0, threads=1, poll_ms=20, drain_timeout_s=5)


@pytest.fixture(scope="module")
def quiet(sources, tmp_path_factory, config):
    """A server with one version, for tests that change nothing; with its store."""
    shelf = Shelf(sources, tmp_path_factory.mktemp("quiet") / "store")
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        yield shelf, server


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
