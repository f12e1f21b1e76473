import concurrent.futures
import json

import pytest

from tests.store.sources import FACTS, make_source
from textmill.core.errors import StoreError
from textmill.store.registry import Store, list_models


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store", "reviews")
    source = make_source(tmp_path / "source")
    for _ in range(4):
        store.publish(source, FACTS)
    return store


def test_a_new_store_has_no_live_version(store):
    assert store.state().live is None
    assert store.versions() == [1, 2, 3, 4]


def test_the_version_before_becomes_previous(store):
    store.set_live(1, "first")
    state = store.set_live(2, "better")
    assert (state.live, state.previous) == (2, 1)
    assert store.state() == state


def test_setting_the_live_version_again_changes_nothing(store):
    store.set_live(1, "first")
    before = store.set_live(2, "better")
    assert store.set_live(2, "again") == before
    assert [entry.what for entry in store.journal()].count("live") == 2


def test_rollback_returns_to_previous_and_bans_what_it_leaves(store):
    store.set_live(1, "first")
    store.set_live(2, "better")
    state = store.rollback("errors seen")
    assert (state.live, state.previous, state.bans) == (1, None, {2: "errors seen"})
    with pytest.raises(StoreError, match="banned"):
        store.set_live(2, "watcher")
    assert store.set_live(2, "forced", lift_ban=True).bans == {}


def test_rollback_without_a_previous_version_names_the_known_ones(store):
    store.set_live(1, "first")
    with pytest.raises(StoreError, match="known: 1, 2, 3, 4"):
        store.rollback()


def test_a_version_that_is_not_there_cannot_go_live(store):
    with pytest.raises(StoreError, match=r"version 9.*Known versions: 1, 2, 3, 4"):
        store.set_live(9, "typo")
    assert store.state().live is None


def test_a_decision_made_on_another_live_version_is_refused(store):
    seen = store.state()
    store.set_live(1, "somebody else")
    with pytest.raises(StoreError, match="must not change while"):
        store.set_live(2, "gate", replacing=seen)
    assert store.state().live == 1


def test_a_banned_version_must_not_be_live(store):
    store.set_live(1, "first")
    with pytest.raises(StoreError, match="Roll back"):
        store.ban(1, "bad")
    store.ban(2, "bad")
    assert store.unban(2).bans == {}


def test_channels_and_pins_are_kept(store):
    store.set_channel("canary", 3)
    state = store.pin(1)
    assert (state.channels, state.pins) == ({"canary": 3}, (1,))
    assert store.set_channel("canary", None).channels == {}
    assert store.unpin(1).pins == ()


def test_a_channel_name_that_is_a_path_is_refused(store):
    with pytest.raises(StoreError, match="channel name"):
        store.set_channel("../x", 1)


def test_prune_never_removes_what_is_used(store, tmp_path):
    source = tmp_path / "source"
    for _ in range(4):
        store.publish(source, FACTS)
    store.set_live(1, "first")
    store.set_live(2, "second")
    store.set_channel("canary", 3)
    store.pin(4)
    assert store.prune(keep=1) == [5, 6, 7]
    assert store.versions() == [1, 2, 3, 4, 8]
    assert store.publish(source, FACTS) == 9
    assert [entry.version for entry in store.journal() if entry.what == "prune"] == [5, 6, 7]


def test_prune_keeps_at_least_the_newest(store):
    with pytest.raises(StoreError, match="keep=0"):
        store.prune(keep=0)


def test_the_journal_tells_who_what_and_why(store):
    store.set_live(1, "first", report={"verdict": "passed"})
    store.set_live(2, "better")
    store.rollback("errors seen")
    entries = [entry for entry in store.journal() if entry.what != "published"]
    assert [(e.what, e.version, e.live_before, e.live_after, e.reason) for e in entries] == [
        ("live", 1, None, 1, "first"),
        ("live", 2, 1, 2, "better"),
        ("rollback", 1, 2, 1, "errors seen"),
    ]
    assert entries[0].report == {"verdict": "passed"}
    assert entries[0].user
    assert entries[0].pid


def test_a_change_that_failed_is_not_told_as_done(store):
    store.set_live(1, "first")
    journal = store.path / "journal.jsonl"
    line = json.loads(journal.read_text().splitlines()[-1])
    with journal.open("a") as file:  # as a kill between journal and state leaves it
        file.write(json.dumps({**line, "version": 4, "live_after": 4, "revision": 2}) + "\n")
    assert [e.version for e in store.journal() if e.what == "live"] == [1]
    store.set_live(2, "better")
    assert [e.version for e in store.journal() if e.what == "live"] == [1, 2]


def test_a_torn_last_line_of_the_journal_is_forgotten(store):
    store.set_live(1, "first")
    with (store.path / "journal.jsonl").open("a") as file:
        file.write('{"when": "2026')
    assert store.journal()[-1].version == 1
    store.set_live(2, "better")
    assert [e.version for e in store.journal()][-2:] == [1, 2]


def test_an_edited_journal_is_told_with_the_line(store):
    with (store.path / "journal.jsonl").open("a") as file:
        file.write("note to self\n")
    with pytest.raises(StoreError, match=r"Line 5 of .*journal\.jsonl"):
        store.journal()


def test_a_damaged_state_file_is_named(store):
    (store.path / "state.json").write_text("{")
    with pytest.raises(StoreError, match=r"state\.json must hold"):
        store.state()


def test_changes_at_once_are_all_kept(store):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: store.set_channel(f"c{i}", 1 + i % 4), range(24)))
    state = store.state()
    assert (len(state.channels), state.revision) == (24, 24)
    assert len([e for e in store.journal() if e.what == "channel"]) == 24


def test_an_unknown_model_is_told_with_the_nearest_name(store):
    with pytest.raises(StoreError, match="Did you mean 'reviews'"):
        Store(store.root, "review").versions()


def test_a_store_folder_that_is_missing_is_told_with_the_nearest(store):
    with pytest.raises(StoreError, match="Did you mean 'store'"):
        Store(store.root.parent / "stores", "reviews").state()


def test_a_folder_that_is_no_store_is_told(store):
    (store.root / "notes").mkdir()
    with pytest.raises(StoreError, match="which is no store"):
        Store(store.root, "notes").versions()
    assert list_models(store.root) == ["reviews"]


def test_a_version_folder_moved_by_hand_is_told(store):
    (store.path / "versions" / "4").rename(store.path / "versions" / "7")
    with pytest.raises(StoreError, match="must hold version 7 of reviews"):
        store.bundle(7)
