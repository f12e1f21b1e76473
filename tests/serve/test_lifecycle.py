from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
import weakref
from collections.abc import Callable

import pytest

from tests.serve.bundles import MODEL, TEXTS
from tests.serve.clients import ask, predict, wait_until
from textmill.core.errors import ServeError
from textmill.serve.admin import AdminClient
from textmill.serve.lifecycle import Keeper, Router
from textmill.serve.load import BackgroundLoad
from textmill.serve.metrics import Metrics
from textmill.serve.server import RunningServer, start_server
from textmill.store.state import STATE


def _answers(server: RunningServer, version: int) -> bool:
    return predict(server.url, ["good"]).version == version


def _refused(server: RunningServer) -> dict[int, str]:
    model = ask(server.url, "GET", "/v1/models").json["models"][MODEL]
    return {each["version"]: each["reason"] for each in model["refused"]}


def test_a_new_live_version_replaces_the_old_one_under_load_without_a_fault(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)
    with start_server(shelf.root, [MODEL], config) as server:
        load = BackgroundLoad(server.url, MODEL, TEXTS, clients=4, expected=shelf.expected(1, 2))
        load.start()
        shelf.store.set_live(2, "for a test")
        wait_until(lambda: _answers(server, 2))
        time.sleep(0.1)
        receipt = load.end()
    assert receipt.is_clean, receipt.as_json()
    assert receipt.checked == receipt.answered > 0
    assert set(receipt.by_version) == {1, 2}
    assert receipt.went_back == 0


def test_a_corrupt_version_is_refused_and_the_old_one_answers(shelf, config):
    shelf.publish(1, live=True)
    corrupt = shelf.publish(2)
    shelf.corrupt(corrupt)
    with start_server(shelf.root, [MODEL], config) as server:
        shelf.store.set_live(corrupt, "for a test")
        wait_until(lambda: corrupt in _refused(server))
        assert "SHA-256" in _refused(server)[corrupt]
        assert _answers(server, 1)
        (row,) = [
            each
            for each in ask(server.url, "GET", f"/v1/models/{MODEL}").json["model_version_status"]
            if each["version"] == str(corrupt)
        ]
        assert (row["state"], row["stage"]) == ("END", "rejected")
        assert "SHA-256" in row["status"]["error_message"]
        assert predict(server.url, ["good"], version=corrupt).status == 404
        wait_until(lambda: any(entry.what == "refused" for entry in shelf.store.journal()))
        good = shelf.publish(3, live=True)
        wait_until(lambda: _answers(server, good))


def test_rolling_back_leads_to_the_warm_worker(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)
    with start_server(shelf.root, [MODEL], config) as server:
        admin = AdminClient(shelf.root, server.address.admin_port)

        def pid_of(version: int) -> int:
            versions = admin.status()["models"][MODEL]["versions"]
            return next(each["worker_pid"] for each in versions if each["version"] == version)

        first = pid_of(1)
        shelf.store.set_live(2, "for a test")
        wait_until(lambda: _answers(server, 2))
        admin.rollback(MODEL)
        assert _answers(server, 1)
        assert pid_of(1) == first
        assert shelf.store.state().live == 1


def test_the_old_version_ends_when_the_hold_is_over(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)
    with start_server(shelf.root, [MODEL], config.model_copy(update={"rollback_hold_s": 0})) as server:
        shelf.store.set_live(2, "for a test")
        wait_until(lambda: _answers(server, 2))
        wait_until(lambda: predict(server.url, ["good"], version=1).status == 404)


def test_a_store_without_a_live_version_is_waited_for(shelf, config):
    shelf.publish(1)
    with start_server(shelf.root, [MODEL], config) as server:
        answer = predict(server.url, ["good"])
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert ask(server.url, "GET", "/health/ready").status == 503
        shelf.store.set_live(1, "for a test")
        wait_until(lambda: predict(server.url, ["good"]).status == 200)


def test_a_corrupt_live_version_at_the_start_is_told_or_replaced_by_the_previous(shelf, config):
    shelf.publish(1, live=True)
    shelf.corrupt(1)
    with pytest.raises(ServeError, match="SHA-256"):
        start_server(shelf.root, [MODEL], config)
    good = shelf.publish(2, live=True)
    corrupt = shelf.publish(3, live=True)
    shelf.corrupt(corrupt)
    with start_server(shelf.root, [MODEL], config) as server:
        assert _answers(server, good)


def test_a_version_that_is_repaired_where_it_lies_goes_live(shelf, config):
    shelf.publish(1, live=True)
    broken = shelf.publish(2)
    graph = shelf.store.bundle(broken).path / "model.onnx"
    whole = graph.read_bytes()
    shelf.corrupt(broken)
    with start_server(shelf.root, [MODEL], config) as server:
        shelf.store.set_live(broken, "for a test")
        wait_until(lambda: broken in _refused(server))
        graph.write_bytes(whole)
        wait_until(lambda: _answers(server, broken))
    refusals = [entry for entry in shelf.store.journal() if entry.what == "refused"]
    assert len(refusals) == 1  # another try with the same end is no news


def test_a_version_that_cannot_even_be_read_is_refused_with_its_reason(shelf, config):
    shelf.publish(1, live=True)
    broken = shelf.publish(2)
    path = shelf.store.bundle(broken).path / "model" / "textmill.json"
    path.chmod(0o644)
    path.write_text('{"facts": {}}')
    with start_server(shelf.root, [MODEL], config) as server:
        shelf.store.set_live(broken, "for a test")
        wait_until(lambda: broken in _refused(server))
        assert _answers(server, 1)


def test_a_store_that_is_away_while_the_worker_dies_means_503_until_it_is_back(shelf, config):
    shelf.publish(1, live=True)
    with start_server(shelf.root, [MODEL], config) as server:
        away = shelf.store.path.with_name("away")
        shelf.store.path.rename(away)
        assert _answers(server, 1)
        admin = AdminClient(shelf.root, server.address.admin_port)
        os.kill(admin.status()["models"][MODEL]["versions"][0]["worker_pid"], signal.SIGKILL)
        wait_until(lambda: ask(server.url, "GET", "/health/ready").status == 503)
        answer = predict(server.url, ["good"])
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        away.rename(shelf.store.path)
        wait_until(lambda: predict(server.url, ["good"]).status == 200)
        shelf.publish(2, live=True)
        wait_until(lambda: _answers(server, 2))


def test_a_damaged_state_changes_nothing_and_the_next_sound_one_is_followed(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)
    state = shelf.store.path / STATE
    sound = state.read_bytes()
    with start_server(shelf.root, [MODEL], config) as server:
        for damaged in (b"", b"[" * 100_000, b'{"live": 99}'):
            state.write_bytes(damaged)
            time.sleep(0.1)
            assert _answers(server, 1)
        state.write_bytes(sound)
        shelf.store.set_live(2, "for a test")
        wait_until(lambda: _answers(server, 2))


async def _until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not claim():
            await asyncio.sleep(0.01)


def test_a_version_called_off_and_wanted_again_at_once_goes_live(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)

    async def work() -> None:
        keeper = Keeper(shelf.store, config, Router(), Metrics())
        await keeper.start()
        keeper.want(2)
        await _until(lambda: 2 in keeper.loaded)
        keeper.want(1)
        keeper.want(2)
        await _until(lambda: keeper.live is not None and keeper.live.number == 2)
        await keeper.close()

    asyncio.run(work())


def test_a_version_that_is_gone_leaves_neither_memory_nor_series(shelf, config):
    shelf.publish(1, live=True)
    shelf.publish(2)
    metrics = Metrics()

    async def work() -> None:
        keeper = Keeper(shelf.store, config.model_copy(update={"rollback_hold_s": 0}), Router(), metrics)
        await keeper.start()
        first = weakref.ref(keeper.live)
        gc.disable()  # its tokenizer is large: it must not wait for the collector
        try:
            keeper.want(2)
            await _until(lambda: first() is None)
        finally:
            gc.enable()
        await keeper.close()

    asyncio.run(work())
    assert b'version="2"' in metrics.exposition()
    assert b'version="1"' not in metrics.exposition()
