import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.sources import FACTS, make_source, visible
from textmill.core.errors import StoreError
from textmill.store.registry import Store

PUBLISH = """
import signal, sys
from pathlib import Path
from tests.store.sources import FACTS
from textmill.store.registry import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
print("ready", flush=True)
print(Store(Path(sys.argv[1]), "m").publish(Path(sys.argv[2]), FACTS))
"""


def start_publish(root, source, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PUBLISH, str(root), str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        **options,
    )


def test_versions_count_from_one(tmp_path):
    store = Store(tmp_path / "store", "m")
    source = make_source(tmp_path / "source")
    assert [store.publish(source, FACTS), store.publish(source, FACTS)] == [1, 2]
    assert store.versions() == [1, 2]
    assert [entry.version for entry in store.journal() if entry.what == "published"] == [1, 2]


def test_a_bundle_is_a_copy_of_its_own(tmp_path):
    store = Store(tmp_path / "store", "m")
    source = make_source(tmp_path / "source")
    bundle = store.bundle(store.publish(source, FACTS))
    (source / "model.onnx").write_bytes(b"overwritten in place")
    bundle.verify()
    assert (bundle.path / "model.onnx").stat().st_nlink == 1


def test_nothing_but_the_version_is_left_after_a_publish(tmp_path):
    Store(tmp_path / "store", "m").publish(make_source(tmp_path / "source"), FACTS)
    assert visible(tmp_path / "store" / "m") == [
        ".staging",
        "journal.jsonl",
        "versions",
        "versions/1",
        "versions/1/empty.json",
        "versions/1/manifest.json",
        "versions/1/model",
        "versions/1/model.onnx",
        "versions/1/model/config.json",
    ]


@pytest.mark.parametrize(("umask", "file_mode", "folder_mode"), [
    (0o022, 0o444, 0o555), (0o077, 0o400, 0o500), (0o027, 0o440, 0o550),
])  # fmt: skip
def test_all_files_have_the_one_mode_that_the_umask_allows(tmp_path, umask, file_mode, folder_mode):
    source = make_source(tmp_path / "source")
    (source / "model.onnx").chmod(0o600)
    before = os.umask(umask)
    try:
        store = Store(tmp_path / "store", "m")
        path = store.bundle(store.publish(source, FACTS)).path
    finally:
        os.umask(before)
    entries = [path, *path.rglob("*")]
    modes = {each.is_dir(): set() for each in entries}
    for each in entries:
        modes[each.is_dir()].add(stat.S_IMODE(each.stat().st_mode))
    assert modes == {False: {file_mode}, True: {folder_mode}}


@pytest.mark.parametrize("store_on_memory", [True, False])
def test_source_store_and_tmpdir_may_lie_on_three_file_systems(tmp_path, store_on_memory):
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system at /dev/shm")
    elsewhere = memory / f"textmill-test-{os.getpid()}-{store_on_memory}"
    elsewhere.mkdir()
    try:
        root, sources = (elsewhere, tmp_path) if store_on_memory else (tmp_path, elsewhere)
        environment = {**os.environ, "TMPDIR": str(sources)}
        process = start_publish(root / "store", make_source(sources / "source"), env=environment)
        output, errors = process.communicate(timeout=60)
        assert output.split() == ["ready", "1"], errors
        Store(root / "store", "m").bundle(1).verify()
    finally:
        os.system(f"chmod -R u+rwX {elsewhere}; rm -r {elsewhere}")


def test_publishers_at_once_get_versions_of_their_own(tmp_path):
    sources = [make_source(tmp_path / f"source{i}", f"weights{i}") for i in range(3)]
    processes = [start_publish(tmp_path / "store", source) for source in sources]
    versions = [int(process.communicate(timeout=60)[0].split()[1]) for process in processes]
    store = Store(tmp_path / "store", "m")
    assert sorted(versions) == store.versions() == [1, 2, 3]
    for i, version in enumerate(versions):
        bundle = store.bundle(version)
        bundle.verify()
        assert bundle.file("model.onnx").read_bytes() == f"weights{i}".encode() * 50


def test_a_full_disk_leaves_nothing_visible_and_live_untouched(tmp_path):
    store = Store(tmp_path / "store", "m")
    store.set_live(store.publish(make_source(tmp_path / "small"), FACTS), "first")
    before = visible(store.path)
    large = make_source(tmp_path / "large", num_bytes=1 << 20)
    process = start_publish(
        store.root, large, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "StoreError" in errors
    assert "size limit" in errors
    assert visible(store.path) == before
    assert store.versions() == [1]
    assert store.state().live == 1
    store.bundle(1).verify()
    assert store.publish(large, FACTS) == 2


def test_what_a_killed_publish_left_is_swept_by_the_next(tmp_path):
    store = Store(tmp_path / "store", "m")
    source = make_source(tmp_path / "source", num_bytes=64 << 20)
    process = start_publish(store.root, source)
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 30
    while not list((store.path / ".staging").glob("*/*")) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    staged = [path for path in (store.path / ".staging").iterdir() if path.is_dir()]
    if not staged:
        process.kill()
        process.communicate()
        pytest.skip("the publish was over before it could be stopped")
    small = make_source(tmp_path / "small")
    assert store.publish(small, FACTS) == 1
    assert staged[0].is_dir(), "the staging of a living publisher was swept"
    process.kill()
    process.communicate()
    assert store.versions() == [1]
    assert store.publish(small, FACTS) == 2
    assert list((store.path / ".staging").iterdir()) == []


@pytest.mark.slow
def test_a_disk_without_room_leaves_nothing_visible_and_live_untouched(tmp_path):
    root = tmp_path / "disk"
    root.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        store = Store(root, "m")
        store.set_live(store.publish(make_source(tmp_path / "small"), FACTS), "first")
        before = visible(store.path)
        with pytest.raises(StoreError, match="room on the disk"):
            store.publish(make_source(tmp_path / "large", num_bytes=2 << 20), FACTS)
        assert visible(store.path) == before
        (root / "filler").write_bytes(bytes(os.statvfs(root).f_bavail * os.statvfs(root).f_frsize))
        state = store.state()
        with pytest.raises(StoreError, match="room on the disk"):
            store.set_channel("canary", 1, reason="x" * 8192)
        assert store.state() == state
        (root / "filler").unlink()
        assert store.set_channel("canary", 1).channels == {"canary": 1}
        assert [entry.what for entry in store.journal()] == ["published", "live", "channel"]
        store.bundle(1).verify()
    finally:
        subprocess.run(["umount", str(root)], check=True)


@pytest.mark.slow
def test_kills_at_random_moments_never_leave_a_part_of_a_version(tmp_path):
    rng = random.Random(0)
    store = Store(tmp_path / "store", "m")
    source = make_source(tmp_path / "source", num_bytes=32 << 20)
    store.set_live(store.publish(source, FACTS), "first")
    killed = 0
    for _ in range(25):
        process = start_publish(store.root, source)
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.12))
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        for version in store.versions():
            store.bundle(version).verify()
        published = [entry.version for entry in store.journal() if entry.what == "published"]
        assert published == store.versions()
        assert store.state().live == 1
    assert killed >= 5
    store.publish(make_source(tmp_path / "small"), FACTS)
    assert list((store.path / ".staging").iterdir()) == []


@pytest.mark.parametrize("name", ["weights.bin", "model/code.py", "x.PKL", "head.pth"])
def test_code_and_pickles_are_refused(tmp_path, name):
    source = make_source(tmp_path / "source")
    (source / name).write_bytes(b"x")
    with pytest.raises(StoreError, match="data only"):
        Store(tmp_path / "store", "m").publish(source, FACTS)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", [".DS_Store", "a b.json", "\u540d.json", "x\ny"])
def test_odd_file_names_are_refused(tmp_path, name):
    source = make_source(tmp_path / "source")
    (source / name).write_bytes(b"x")
    with pytest.raises(StoreError, match="Names in a bundle"):
        Store(tmp_path / "store", "m").publish(source, FACTS)


def test_a_link_in_the_source_is_refused(tmp_path):
    source = make_source(tmp_path / "source")
    (source / "linked.json").symlink_to("/etc/passwd")
    with pytest.raises(StoreError, match=r"a link at .*linked\.json"):
        Store(tmp_path / "store", "m").publish(source, FACTS)


def test_a_source_that_is_missing_or_empty_is_refused(tmp_path):
    store = Store(tmp_path / "store", "m")
    with pytest.raises(StoreError, match="must be a folder"):
        store.publish(tmp_path / "none", FACTS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="must hold files"):
        store.publish(tmp_path / "empty", FACTS)


def test_a_bundle_is_not_published_again_as_it_is(tmp_path):
    store = Store(tmp_path / "store", "m")
    bundle = store.bundle(store.publish(make_source(tmp_path / "source"), FACTS))
    with pytest.raises(StoreError, match=r"must not hold manifest\.json"):
        store.publish(bundle.path, FACTS)


def test_a_file_in_place_of_the_store_is_told(tmp_path):
    (tmp_path / "store").write_text("")
    with pytest.raises(StoreError, match="a file at"):
        Store(tmp_path / "store", "m").publish(make_source(tmp_path / "source"), FACTS)
