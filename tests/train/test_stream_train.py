from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import toy_classifier, toy_examples, toy_model_config
from tests.train.parts import toy_config
from tests.train.streams import as_line, toy_stream, write_stream
from textmill.core.errors import ProjectError, TrainingGaveUp
from textmill.data.bad_rows import SIDE_FILE
from textmill.order.config import OrderConfig
from textmill.pipeline import train_run
from textmill.project import load_project
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import EVENTS, Evaluated, StepDone
from textmill.train.result import TrainResult
from textmill.train.stream_train import train_stream

ROOT = Path(__file__).resolve().parent.parent.parent
KILLED_AFTER = 23


class Kill:
    """Ends the process as a power cut would."""

    def on_step(self, event: StepDone) -> None:
        if event.step == KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_evaluation(self, event: Evaluated) -> None:
        pass

    def close(self) -> None:
        pass


def run(folder: Path, run_dir: Path, *, resume: bool = False, is_killed: bool = False) -> TrainResult:
    stream = toy_stream(folder, prefetch=2, shuffle_rows=200)
    classifier, tokenizer = toy_classifier(stream.splits.labels)
    config = toy_config(epochs=2, batch_size=16, checkpoint_every=10, precision="fp32")
    hooks = [Kill()] if is_killed else []
    return train_stream(
        classifier, tokenizer, stream, config, OrderConfig(), run_dir, resume=resume, hooks=hooks
    )


def losses(run_dir: Path) -> list[tuple[int, float, float]]:
    events = [json.loads(line) for line in (run_dir / EVENTS).read_text().splitlines()]
    return [(e["step"], e["loss"], e["lr"]) for e in events if "grad_norm" in e]


@pytest.mark.slow
def test_a_training_on_a_stream_goes_on_after_a_kill_as_if_nothing_had_happened(tmp_path: Path) -> None:
    write_stream(tmp_path, num=500, files=2)
    run(tmp_path, tmp_path / "whole")
    call = f"p = Path({str(tmp_path)!r}); run(p, p / 'run', is_killed=True)"
    code = f"from tests.train.test_stream_train import *; {call}"
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    result = run(tmp_path, tmp_path / "run", resume=True)
    assert 0 < result.new_steps < result.steps
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")


@pytest.mark.slow
def test_a_project_trains_on_a_stream_up_to_its_report(tmp_path: Path) -> None:
    lines = [as_line(example) for example in toy_examples(400)]
    lines[300] = "{broken\n"
    (tmp_path / "t.jsonl").write_text("".join(lines))
    model = toy_model_config().model_dump(exclude_none=True)
    table = {
        "data": {"train": "t.jsonl", "streaming": True, "on_bad_row": "skip", "head_rows": 30},
        "model": {"backbone": model["backbone"], "architecture": model["architecture"]},
        "train": {"epochs": 1, "threads": 1, "lr": 2e-3},
    }
    import tomli_w

    (tmp_path / "p.toml").write_text(tomli_w.dumps({"name": "s", **table}))
    done = train_run(load_project(tmp_path / "p.toml"))
    report = json.loads((done.folder / "report.json").read_text())
    assert report["data"]["sources"]["train"]["bad_rows"]["count"] == 1
    assert json.loads((done.folder / SIDE_FILE).read_text())["row"] == 301
    assert done.training.steps > 0


@pytest.mark.slow
def test_an_alarm_on_a_stream_advises_what_a_stream_has(tmp_path: Path) -> None:
    write_stream(tmp_path, num=700, files=1)
    stream = toy_stream(tmp_path, prefetch=0)
    classifier, tokenizer = toy_classifier(stream.splits.labels)
    config = toy_config(lr=0.03, batch_size=16, warmup_share=0.0)
    with pytest.raises(TrainingGaveUp, match=r"never-left.*no \[rescue\].*data\.shuffle_rows"):
        train_stream(
            classifier, tokenizer, stream, config, OrderConfig(), tmp_path / "run", guard=GuardConfig()
        )


def test_an_order_that_must_see_all_rows_is_refused(tmp_path: Path) -> None:
    write_stream(tmp_path, num=300, files=1)
    stream = toy_stream(tmp_path, head_rows=10)
    classifier, tokenizer = toy_classifier(stream.splits.labels)
    with pytest.raises(ProjectError, match=r"only be shuffled.*'ordered'"):
        train_stream(
            classifier, tokenizer, stream, toy_config(), OrderConfig(strategy="ordered"), tmp_path / "run"
        )
