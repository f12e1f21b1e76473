import subprocess
import sys

import pytest

from tests.conftest import write_toy_project
from textmill.core.errors import ProjectError, StoreError
from textmill.project import load_project
from textmill.run_folder import claimed, new_run, newest_unfinished
from textmill.train.result import TrainResult


@pytest.fixture
def project(tmp_path):
    return load_project(write_toy_project(tmp_path, num_rows=4))


def end_run(folder, epochs):
    """Leave in a run folder what says that the run has ended."""
    zeros = dict.fromkeys(("best_step", "steps", "new_steps", "seconds", "rows_per_s", "padding_share"), 0)
    told = {
        "metric": "f1_macro",
        "best_metric": 0.9,
        "epochs": epochs,
        "stopped_early": False,
        "precision": "fp32",
    }
    TrainResult(folder, **zeros, **told, max_tokens=64, threads=1, device="cpu").save()
    (folder / "report.json").touch()


def test_runs_that_begin_in_one_second_get_folders_of_their_own(project):
    folders = [new_run(project) for _ in range(3)]
    assert len(set(folders)) == 3
    assert sorted(folders) == folders


def test_a_start_that_failed_does_not_hide_the_run_that_was_cut_off_before_it(project):
    begun, failed = new_run(project), new_run(project)
    assert newest_unfinished(project) == failed, "nothing better is there"
    (begun / "events.jsonl").touch()
    assert newest_unfinished(project) == begun


def test_a_finished_run_is_not_gone_on_with(project):
    end_run(new_run(project), epochs=project.config.train.epochs)
    with pytest.raises(ProjectError, match="none among the 1"):
        newest_unfinished(project)


def test_a_run_that_was_given_up_may_go_on(project):
    end_run(new_run(project), epochs=project.config.train.epochs)
    given_up = new_run(project)
    for name in ("events.jsonl", "gave-up.json", "report.html"):
        (given_up / name).touch()
    assert newest_unfinished(project) == given_up


def test_two_processes_never_work_on_one_run(project):
    folder = new_run(project)
    program = (
        "import sys, pathlib\n"
        "from textmill.run_folder import claimed\n"
        "with claimed(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ProjectError, match="another one works"), claimed(folder):
            pass
        other.kill()
    with claimed(folder):
        pass
    with claimed(folder, wait=True):
        pass


def test_a_file_where_the_runs_should_be_is_named(project):
    project.runs.parent.write_text("no folder")
    with pytest.raises(StoreError, match="runs"):
        new_run(project)
