import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.sources import FACTS, make_source
from textmill.core.errors import StoreError
from textmill.store.bundle import Bundle
from textmill.store.registry import Store


@pytest.fixture
def bundle(tmp_path):
    store = Store(tmp_path / "store", "m")
    bundle = store.bundle(store.publish(make_source(tmp_path / "source"), FACTS))
    for folder, _, names in os.walk(bundle.path):
        Path(folder).chmod(0o755)
        for name in names:
            (Path(folder) / name).chmod(0o644)
    return bundle


def test_a_published_bundle_is_whole(bundle):
    bundle.verify()
    assert bundle.file("model.onnx").read_bytes() == b"weights" * 50
    assert bundle.version == 1


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_flipped_byte_of_any_file_is_found(data):
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), "m")
        bundle = store.bundle(store.publish(make_source(Path(folder) / "source"), FACTS))
        name = data.draw(st.sampled_from(["model/config.json", "model.onnx", "manifest.json"]))
        path = bundle.path / name
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.chmod(0o644)
        path.write_bytes(content)
        with pytest.raises(StoreError, match=path.name):
            bundle.verify()


def test_a_missing_file_is_named(bundle):
    (bundle.path / "model" / "config.json").unlink()
    with pytest.raises(StoreError, match=r"model/config\.json"):
        bundle.verify()


def test_an_extra_file_is_named(bundle):
    (bundle.path / "model" / "extra.json").write_text("{}")
    with pytest.raises(StoreError, match=r"model/extra\.json"):
        bundle.verify()


def test_a_file_cut_short_is_told_with_both_sizes(bundle):
    (bundle.path / "model.onnx").write_bytes(b"weights")
    with pytest.raises(StoreError, match=r"model\.onnx must have 350 bytes, but got 7 bytes"):
        bundle.verify()


def test_a_link_to_the_right_content_is_still_refused(bundle, tmp_path):
    copy = shutil.copy(bundle.path / "model.onnx", tmp_path / "elsewhere")
    (bundle.path / "model.onnx").unlink()
    (bundle.path / "model.onnx").symlink_to(copy)
    with pytest.raises(StoreError, match=r"a link at .*model\.onnx"):
        bundle.verify()


def test_a_linked_folder_is_refused(bundle, tmp_path):
    shutil.move(bundle.path / "model", tmp_path / "model")
    (bundle.path / "model").symlink_to(tmp_path / "model")
    with pytest.raises(StoreError, match="a link at"):
        bundle.verify()


def test_a_pipe_is_refused_and_never_opened(bundle):
    (bundle.path / "empty.json").unlink()
    os.mkfifo(bundle.path / "empty.json")
    with pytest.raises(StoreError, match="a special file"):
        bundle.verify()


def test_a_copy_that_has_not_ended_is_told_so(bundle):
    (bundle.path / "manifest.json").unlink()
    with pytest.raises(StoreError, match="copy that has not ended"):
        Bundle.open(bundle.path)


def test_a_manifest_that_is_no_json_is_named(bundle):
    (bundle.path / "manifest.json").write_bytes(b"\x80\x04 pickle")
    with pytest.raises(StoreError, match=r"manifest\.json must be JSON"):
        Bundle.open(bundle.path)


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StoreError, match="must be a folder"):
        Bundle.open(tmp_path / "none")


def test_an_unknown_file_of_a_bundle_is_told_with_the_known_ones(bundle):
    with pytest.raises(StoreError, match=r"gate\.parquet, but got .*model\.onnx"):
        bundle.file("gate.parquet")


def test_a_file_without_permission_is_told_as_that():
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        store = Store(folder / "store", "m")
        bundle = store.bundle(store.publish(make_source(folder / "source"), FACTS))
        (bundle.path / "model.onnx").chmod(0o000)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # root may read everything
        try:
            with pytest.raises(StoreError, match=r"no permission for user \d+ \(mode 0\)"):
                bundle.verify()
        finally:
            os.seteuid(user)
    finally:
        os.system(f"chmod -R u+rwX {folder}")
        shutil.rmtree(folder)
