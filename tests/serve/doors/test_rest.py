from __future__ import annotations

import re

import pytest

from tests.serve.bundles import MODEL
from tests.serve.clients import ask, predict


def test_the_status_has_tensorflow_servings_shape(quiet):
    _, server = quiet
    for path in (f"/v1/models/{MODEL}", f"/v1/models/{MODEL}/versions/1"):
        (row,) = ask(server.url, "GET", path).json["model_version_status"]
        assert (row["version"], row["state"], row["stage"]) == ("1", "AVAILABLE", "live")
        assert row["status"] == {"error_code": "OK", "error_message": ""}


def test_the_metadata_say_what_the_model_reads_and_answers(quiet):
    shelf, server = quiet
    told = ask(server.url, "GET", f"/v1/models/{MODEL}/metadata").json
    assert told["model_spec"] == {"name": MODEL, "signature_name": "", "version": "1"}
    assert told["metadata"]["labels"] == ["class0", "class1"]
    assert told["metadata"]["digest"] == shelf.store.bundle(1).manifest.digest


def test_a_serving_front_is_live_and_ready(quiet):
    _, server = quiet
    assert ask(server.url, "GET", "/health/live").status == 200
    assert ask(server.url, "GET", "/health/ready").json == {"status": "ready", "live": {MODEL: 1}}


def test_the_metrics_count_requests_batches_and_stages(quiet):
    _, server = quiet
    predict(server.url, ["good"])
    text = ask(server.url, "GET", "/metrics").body.decode()
    for series in (
        r'textmill_requests_total\{code="200",model="m"\} [1-9]',
        r'textmill_batch_rows_count\{model="m",version="1"\} [1-9]',
        r'textmill_compute_seconds_total\{model="m",version="1"\} 0\.',
        r'textmill_version_stage\{model="m",stage="live",version="1"\} 1.0',
        r'textmill_swaps_total\{model="m"\} 1.0',
    ):
        assert re.search(series, text), series


def test_the_page_is_self_contained_under_a_strict_policy(quiet):
    _, server = quiet
    page = ask(server.url, "GET", "/")
    assert page.status == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text = page.body.decode()
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    assert not re.search(r"""\son[a-z]+=|\sstyle=|innerHTML|https?://""", text)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", f"/v1/models/{MODEL}/versions/9", 404),
        ("GET", f"/v1/models/{MODEL}/versions/abc", 404),
        ("GET", f"/v1/models/{MODEL}/versions/9/metadata", 404),
        ("GET", "/v1/models/..%2f..%2fetc%2fpasswd", 404),
        ("GET", "/admin/status", 404),
        ("GET", "/metrics/", 404),  # and no redirect to what the Host header says
        ("POST", f"/v1/models/{MODEL}", 405),
        ("DELETE", f"/v1/models/{MODEL}/versions/1", 405),
    ],
)
def test_other_addresses_are_told_as_such(quiet, method, path, status):
    _, server = quiet
    answer = ask(server.url, method, path)
    assert answer.status == status
    assert set(answer.json["error"]) == {"rule", "got", "fix"}
