import pytest

from tests.store.sources import FACTS, make_source
from textmill.core.errors import StoreError
from textmill.store.registry import Store
from textmill.store.show import list_versions, show_version, shown_version


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store", "m")
    source = make_source(tmp_path / "source")
    for _ in range(3):
        store.publish(source, FACTS)
    store.set_live(1, "first")
    store.set_live(2, "better")
    store.pin(1)
    store.ban(3, "slow")
    return store


def test_each_version_is_listed_with_what_it_is_now(store):
    rows = list_versions(store)
    assert [row["status"] for row in rows] == ["previous, pinned", "live", "banned (slow)"]
    assert rows[0]["metrics"] == "accuracy 0.500"


def test_a_damaged_version_is_listed_with_its_fault(store):
    manifest = store.path / "versions" / "2" / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_text("{}")
    rows = list_versions(store)
    assert rows[1]["created"].startswith("damaged")
    assert rows[0]["size_bytes"] > 0


def test_showing_a_version_checks_its_files(store):
    facts = show_version(store, 1)
    assert facts["files"] == {"empty.json": 0, "model.onnx": 350, "model/config.json": 19}
    (store.path / "versions" / "1" / "empty.json").chmod(0o644)
    (store.path / "versions" / "1" / "empty.json").write_text("x")
    with pytest.raises(StoreError, match="empty"):
        show_version(store, 1)


def test_showing_a_version_tells_task_thresholds_and_the_rule_for_long_texts(store, tmp_path):
    shape = {"task": "multilabel", "labels": ("a", "b"), "thresholds": (0.2, 0.5), "long_text": "tail"}
    signature = FACTS.signature.model_copy(update=shape)
    facts = FACTS.model_copy(update={"signature": signature})
    version = store.publish(make_source(tmp_path / "other"), facts)
    told = show_version(store, version)["signature"]
    assert (told["task"], told["thresholds"], told["long_text"]) == ("multilabel", [0.2, 0.5], "tail")


def test_a_person_reads_local_minutes_and_megabytes(store):
    row = {**list_versions(store)[1], "size_bytes": 183_510_365}
    version, status, created, metrics, megabytes = shown_version(row)
    assert (version, status, metrics, megabytes) == (2, "live", "accuracy 0.500", 184)
    assert len(created) == len("2026-01-31 10:00")
    assert shown_version({**row, "created": "damaged: no JSON"})[2] == "damaged: no JSON"
