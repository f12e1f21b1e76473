import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.toy import toy_examples
from tests.train.parts import PulledPlug, PulledPlugError, Said, make_splits, toy_train
from textmill.core.errors import DataError, ProjectError
from textmill.core.seeds import numpy_generator
from textmill.order.config import OrderConfig
from textmill.order.difficulty_file import load_difficulty
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import read_events

OPTIMIZERS = ("adamw", "adam", "rmsprop")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an undisturbed run with the toy settings."""
    run_dir = tmp_path_factory.mktemp("whole")
    toy_train(run_dir)
    return run_dir


def losses(run_dir):
    return [event["loss"] for event in read_events(run_dir / "events.jsonl") if event["event"] == "step"]


def step_numbers(run_dir):
    return [event["step"] for event in read_events(run_dir / "events.jsonl") if event["event"] == "step"]


def weights(run_dir):
    return {path.name: path.read_bytes() for path in (run_dir / "model").glob("*.safetensors")}


def pull_plug(run_dir, step, **changes):
    with pytest.raises(PulledPlugError):
        toy_train(run_dir, hooks=[PulledPlug(step)], **changes)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_resumed_run_equals_the_undisturbed_one_to_the_last_bit(tmp_path, optimizer):
    options = {"optimizer": optimizer, "checkpoint_every": 3, "accumulate": 2, "evaluate_every": 2}
    whole = toy_train(tmp_path / "whole", **options)
    pull_plug(tmp_path / "cut", whole.steps // 2 + 1, **options)
    resumed = toy_train(tmp_path / "cut", resume=True, **options)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert step_numbers(tmp_path / "cut") == list(range(1, whole.steps + 1))
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    assert (resumed.best_step, resumed.best_metric) == (whole.best_step, whole.best_metric)
    assert 0 < resumed.new_steps < resumed.steps == whole.steps


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("step", [2, 10], ids=["in the ordered phase", "in the second epoch"])
def test_a_resume_in_an_ordered_training_is_exact(tmp_path, dynamic, step):
    options = {
        "order": OrderConfig(strategy="ordered", ordered_share=0.5, dynamic=dynamic),
        "guard": GuardConfig(),
        "checkpoint_every": 1,
        "epochs": 3,
    }
    toy_train(tmp_path / "whole", **options)
    pull_plug(tmp_path / "cut", step, **options)
    toy_train(tmp_path / "cut", resume=True, **options)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    mine, whole = (load_difficulty(tmp_path / name / "difficulty.parquet") for name in ("cut", "whole"))
    assert mine.state() == whole.state() != {}


def test_evaluating_or_saving_more_often_changes_no_loss(tmp_path, whole):
    toy_train(tmp_path, evaluate_every=1, checkpoint_every=2)
    assert losses(tmp_path) == losses(whole)


def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path, whole):
    pull_plug(tmp_path / "cut", 2)
    said = Said()
    toy_train(tmp_path / "cut", resume=True, progress=said)
    assert any("starts again" in message for message in said.messages)
    assert losses(tmp_path / "cut") == losses(whole)
    assert step_numbers(tmp_path / "cut") == step_numbers(whole)


@pytest.mark.parametrize("damage", ["cut", "missing", "flipped", "no_manifest"])
def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path, whole, damage, caplog):
    pull_plug(tmp_path / "cut", 8, checkpoint_every=2)
    newest = sorted((tmp_path / "cut" / "checkpoints").glob("step-*"))[-1]
    file = newest / "training.safetensors"
    content = bytearray(file.read_bytes())
    match damage:
        case "cut":
            file.write_bytes(content[: len(content) // 2])
        case "missing":
            file.unlink()
        case "flipped":
            content[-1] ^= 1
            file.write_bytes(content)
        case "no_manifest":
            (newest / "checkpoint.json").unlink()
    toy_train(tmp_path / "cut", resume=True)
    assert "is damaged" in caplog.text
    assert losses(tmp_path / "cut") == losses(whole)


def test_a_checkpoint_that_was_being_written_is_not_seen(tmp_path, whole):
    pull_plug(tmp_path / "cut", 8, checkpoint_every=3)
    root = tmp_path / "cut" / "checkpoints"
    newest = sorted(root.glob("step-*"))[-1]
    shutil.copytree(newest, root / ".step-00000099")
    (root / ".step-00000099" / "checkpoint.json").unlink()
    toy_train(tmp_path / "cut", resume=True)
    assert losses(tmp_path / "cut") == losses(whole)


@pytest.mark.parametrize("cut_line", ["", '{"event": "step", "ste', "{}x"])
def test_a_half_written_last_line_of_the_log_is_dropped(tmp_path, whole, cut_line):
    pull_plug(tmp_path / "cut", 6, checkpoint_every=3)
    with open(tmp_path / "cut" / "events.jsonl", "a") as file:
        file.write(cut_line)
    toy_train(tmp_path / "cut", resume=True)
    assert losses(tmp_path / "cut") == losses(whole)


def test_a_kill_between_the_two_renames_of_the_best_state_is_repaired(tmp_path):
    whole = toy_train(tmp_path / "whole", epochs=3, lr=1e-12, metric="accuracy")
    run_dir = tmp_path / "cut"
    pull_plug(run_dir, whole.steps - 1, epochs=3, lr=1e-12, metric="accuracy")
    (run_dir / "model").rename(run_dir / ".model-old")
    (run_dir / ".model-new").mkdir()
    toy_train(run_dir, resume=True, epochs=3, lr=1e-12, metric="accuracy")
    assert weights(run_dir) == weights(tmp_path / "whole")
    assert not list(run_dir.glob(".model-*"))


def test_only_the_newest_checkpoints_stay(tmp_path):
    result = toy_train(tmp_path, checkpoint_every=2)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert len(kept) == 2
    assert kept[-1] == f"step-{result.steps:08d}"


def test_checkpoints_hold_data_only_and_are_readable_as_the_umask_allows(tmp_path):
    toy_train(tmp_path, epochs=1)
    files = sorted((tmp_path / "checkpoints").glob("*/*"))
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    assert len({path.stat().st_mode for path in files}) == 1


EXAMPLES = toy_examples(96)


@pytest.mark.parametrize(
    ("rows", "difference"),
    [
        (EXAMPLES[:59], "64 rows before, 59 now"),
        (EXAMPLES[:64] + toy_examples(146)[96:], "64 rows before, 114 now"),
        (EXAMPLES[1:64] + EXAMPLES[:1], "order"),
    ],
    ids=["deleted", "appended", "reordered"],
)
def test_other_data_is_refused_with_both_fingerprints_and_the_difference(tmp_path, rows, difference):
    before, now = make_splits(EXAMPLES[:64], EXAMPLES[64:]), make_splits(rows, EXAMPLES[64:])
    pull_plug(tmp_path, 10, splits=before, checkpoint_every=3)
    log = (tmp_path / "events.jsonl").read_bytes()
    with pytest.raises(DataError, match=difference) as caught:
        toy_train(tmp_path, now, resume=True)
    assert before.fingerprint[:12] in str(caught.value)
    assert now.fingerprint[:12] in str(caught.value)
    assert caught.value.exit_code == 2
    assert (tmp_path / "events.jsonl").read_bytes() == log


def test_more_epochs_go_on_from_a_complete_run(tmp_path):
    first = toy_train(tmp_path, epochs=1)
    more = toy_train(tmp_path, epochs=3, resume=True)
    assert more.new_steps == more.steps - first.steps > 0
    assert more.epochs == 3
    assert step_numbers(tmp_path) == list(range(1, more.steps + 1))
    rates = [e["lr"] for e in read_events(tmp_path / "events.jsonl") if e["event"] == "step"]
    assert rates[first.steps] > rates[first.steps - 1], "the longer run's schedule holds from here on"


def test_a_complete_run_says_so_and_changes_nothing(tmp_path):
    toy_train(tmp_path, epochs=1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ProjectError, match=r"complete after \d+ steps.*train\.epochs"):
        toy_train(tmp_path, epochs=1, resume=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_run_that_was_stopped_early_says_what_would_let_it_go_on(tmp_path):
    options = {"lr": 1e-12, "metric": "accuracy", "epochs": 9}
    toy_train(tmp_path, patience=1, **options)
    with pytest.raises(ProjectError, match=r"train\.patience"):
        toy_train(tmp_path, patience=1, resume=True, **options)
    assert toy_train(tmp_path, patience=3, resume=True, **options).new_steps > 0


def test_a_run_killed_after_its_last_checkpoint_still_gets_its_result(tmp_path):
    result = toy_train(tmp_path, epochs=1)
    (tmp_path / "training.json").unlink()
    again = toy_train(tmp_path, epochs=1, resume=True)
    assert (again.steps, again.new_steps) == (result.steps, 0)
    assert (tmp_path / "training.json").exists()


@pytest.mark.parametrize(
    ("change", "key"),
    [({"lr": 1e-3}, "train.lr"), ({"seed": 5}, "train.seed"), ({"batch_size": 4}, "batch_size")],
)
def test_settings_that_the_steps_depend_on_must_not_change(tmp_path, change, key):
    pull_plug(tmp_path, 10, checkpoint_every=3)
    with pytest.raises(ProjectError, match=key):
        toy_train(tmp_path, resume=True, **change)


@pytest.mark.slow
def test_the_format_that_auto_meant_is_kept(tmp_path):
    first = toy_train(tmp_path, epochs=1, precision="auto")
    other = "fp32" if first.precision == "bf16" else "bf16"
    with pytest.raises(ProjectError, match="precision"):
        toy_train(tmp_path, epochs=2, resume=True, precision=other)
    assert toy_train(tmp_path, epochs=2, resume=True, precision=first.precision).new_steps > 0


def test_the_measured_token_budget_is_kept_when_a_run_goes_on(tmp_path):
    first = toy_train(tmp_path, epochs=1, max_tokens="probe")
    more = toy_train(tmp_path, epochs=2, max_tokens="probe", resume=True)
    assert more.max_tokens == first.max_tokens


def test_resuming_a_run_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ProjectError, match="must be there"):
        toy_train(tmp_path / "nothing", resume=True)


CHILD = """
import sys
from pathlib import Path
from tests.train.parts import toy_splits, toy_train
from textmill.order.config import OrderConfig
from textmill.train.guard.config import GuardConfig
toy_train(Path(sys.argv[1]), toy_splits(160, 32), epochs=4, checkpoint_every=3, evaluate_every=7,
          order=OrderConfig(strategy="ordered", ordered_share=0.5, dynamic=True), guard=GuardConfig(),
          resume=(Path(sys.argv[1]) / "events.jsonl").exists())
"""


def _run_child(run_dir: Path) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    return subprocess.Popen([sys.executable, "-c", CHILD, str(run_dir)], cwd=root, env={**os.environ})


@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(tmp_path):
    assert _run_child(tmp_path / "whole").wait(timeout=300) == 0
    rng = numpy_generator(0, "kills")
    run_dir, log = tmp_path / "killed", tmp_path / "killed" / "events.jsonl"
    kills = 0
    for _ in range(3):
        known = log.stat().st_size if log.exists() else 0
        child = _run_child(run_dir)
        while child.poll() is None and (not log.exists() or log.stat().st_size <= known):
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.6)))
        if child.poll() is not None:
            break
        child.send_signal(signal.SIGKILL)
        child.wait()
        kills += 1
    if not (run_dir / "training.json").exists():
        assert _run_child(run_dir).wait(timeout=300) == 0
    assert kills >= 1
    assert losses(run_dir) == losses(tmp_path / "whole")
    assert step_numbers(run_dir) == step_numbers(tmp_path / "whole")
    assert weights(run_dir) == weights(tmp_path / "whole")
    kept = json.loads((run_dir / "training.json").read_text())
    whole = json.loads((tmp_path / "whole" / "training.json").read_text())
    assert [kept[k] for k in ("best_step", "best_metric", "steps")] == [
        whole[k] for k in ("best_step", "best_metric", "steps")
    ]


@pytest.mark.parametrize("change", [{"pooling": "max"}, {"head": "linear"}, {"dropout": 0.3}])
def test_the_model_must_not_change_either(tmp_path, change):
    pull_plug(tmp_path, 10, checkpoint_every=3)
    with pytest.raises(ProjectError, match=f"model.{next(iter(change))} must not change"):
        toy_train(tmp_path, resume=True, model=change)
