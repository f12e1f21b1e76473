import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.sources import FACTS
from textmill.core.errors import StoreError
from textmill.store.manifest import FileEntry, Manifest, check_name, parse_manifest

MANIFEST = Manifest(
    name="reviews",
    version=3,
    created="2026-01-01T00:00:00.000+00:00",
    textmill="0.1.0",
    files={"model/config.json": FileEntry(sha256="a" * 64, size=7)},
    **FACTS.model_dump(),
)


def test_a_manifest_is_read_back_equal():
    assert parse_manifest(MANIFEST.to_bytes(), "manifest.json") == MANIFEST


def test_the_digest_changes_with_any_field():
    other = MANIFEST.model_copy(update={"metrics": {"accuracy": 0.6}})
    assert other.digest != MANIFEST.digest


@given(st.data())
def test_any_flipped_byte_of_a_manifest_is_found(data):
    content = bytearray(MANIFEST.to_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StoreError, match="manifest"):
        parse_manifest(bytes(content), "manifest.json")


@given(st.integers(0, len(MANIFEST.to_bytes()) - 1))
def test_a_manifest_cut_short_is_found(length):
    with pytest.raises(StoreError, match="manifest"):
        parse_manifest(MANIFEST.to_bytes()[:length], "manifest.json")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "model/../../x", "a//b", "", ".hidden", "a/.git/x", "a\\b", "a\nb", "a/"]
)
def test_a_path_that_leads_out_of_the_bundle_is_refused(path):
    table = json.loads(MANIFEST.to_bytes())
    table["files"] = {path: {"sha256": "a" * 64, "size": 1}}
    with pytest.raises(StoreError, match="plain path"):
        parse_manifest(json.dumps(table).encode(), "manifest.json")


def test_the_shape_of_a_model_is_written_only_where_it_is_another_than_before():
    written = json.loads(MANIFEST.to_bytes())["signature"]
    assert {"thresholds", "long_text", "window_overlap", "window_pool"}.isdisjoint(written)
    for changes in (
        {"task": "multilabel", "labels": ("a", "b"), "thresholds": (0.25, 0.5)},
        {"long_text": "tail"},
        {"long_text": "windows", "window_overlap": 0.0, "window_pool": "max"},
    ):
        signature = MANIFEST.signature.model_copy(update=changes)
        manifest = MANIFEST.model_copy(update={"signature": signature})
        assert set(changes) <= set(json.loads(manifest.to_bytes())["signature"])
        assert parse_manifest(manifest.to_bytes(), "manifest.json").signature == signature
        assert manifest.digest != MANIFEST.digest


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"thresholds": [0.5, 0.5]}, "thresholds with task"),
        ({"task": "multilabel", "labels": ["a"], "thresholds": [0.5, 0.5]}, "2 thresholds for 1"),
        ({"task": "multilabel", "labels": ["a"], "thresholds": [1.5]}, "thresholds"),
        ({"long_text": "middle"}, "long_text"),
    ],
)
def test_thresholds_and_rules_that_cannot_be_are_refused(changes, said):
    table = json.loads(MANIFEST.to_bytes())
    table["signature"] |= changes
    with pytest.raises(StoreError, match=said):
        parse_manifest(json.dumps(table).encode(), "manifest.json")


def test_a_manifest_of_a_later_format_is_refused_with_the_field():
    table = {**json.loads(MANIFEST.to_bytes()), "format": 2}
    with pytest.raises(StoreError, match="format"):
        parse_manifest(json.dumps(table).encode(), "manifest.json")


@pytest.mark.parametrize(
    "name", ["..", "", "a/b", "-x", ".x", "a" * 65, "a b", "a\n", "\u5f71\u8bc4", "a\x00"]
)
def test_a_name_that_cannot_be_a_folder_is_refused(name):
    with pytest.raises(StoreError, match="model name"):
        check_name(name, "model name")


@pytest.mark.parametrize("name", ["a", "reviews-2.v1_x", "9lives", "a" * 64])
def test_a_plain_name_is_taken(name):
    assert check_name(name, "model name") == name


def test_a_metric_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="finite"):
        type(FACTS).model_validate({**FACTS.model_dump(), "metrics": {"accuracy": float("nan")}})
