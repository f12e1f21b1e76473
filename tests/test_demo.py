"""The demo tells its whole story, and ends cleanly when it is interrupted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, str(ROOT / "examples" / "demo.py"), "--rows", "300", "--folder"]

pytestmark = pytest.mark.slow


def processes_that_name(folder: Path) -> list[str]:
    """Return the command lines of all running processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if str(folder) in command:
            found.append(command)
    return found


def test_the_demo_replaces_a_model_without_a_failed_request(tmp_path):
    folder = tmp_path / "demo"
    done = subprocess.run([*COMMAND, str(folder)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["failed"] == receipt["wrong"] == 0
    assert receipt["sent"] == receipt["answered"] > 0
    assert set(receipt["by_version"]) == {"1", "2"}
    for words in ("baseline", "version 1", "version 2", "sent", "failed", "swap", "report.html"):
        assert words in done.stdout
    assert processes_that_name(folder) == []


def test_the_demo_leaves_a_folder_of_others_alone(tmp_path):
    (tmp_path / "store").mkdir()
    done = subprocess.run([*COMMAND, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "--folder" in done.stderr
    assert (tmp_path / "store").is_dir()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="counts processes in /proc")
def test_ctrl_c_while_serving_leaves_no_process_behind(tmp_path):
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [*COMMAND, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    )
    assert demo.stderr is not None
    said = []
    try:
        for line in demo.stderr:
            said.append(line)
            if line.startswith("4."):
                break
        else:
            pytest.fail("".join(said))
        assert len(processes_that_name(folder)) > 1
        os.kill(demo.pid, signal.SIGINT)
        rest = demo.stderr.read()
        assert demo.wait(60) == 130, rest
        assert "Traceback" not in rest
    finally:
        demo.kill()
        demo.wait()
        demo.stderr.close()
    assert processes_that_name(folder) == []
