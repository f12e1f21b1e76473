import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.conftest import write_toy_project
from tests.toy import BACKBONE, toy_classifier, toy_examples
from textmill.cli import main
from textmill.model.files import save


@pytest.fixture
def call(capsys):
    """Run the command line in this process; return exit code, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments)])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


def last_json(out):
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a project with one live version, made by the command line itself."""
    path = write_toy_project(tmp_path_factory.mktemp("cli"))
    done = subprocess.run(
        [sys.executable, "-m", "textmill.cli", "run", path, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["gate"]["verdict"] == "passed", "one object, nothing else"
    return path


def test_run_trains_publishes_and_promotes(made, call):
    code, out, _ = call("store", "list", "-p", made, "--json")
    versions = last_json(out)["versions"]
    assert code == 0
    assert [(row["version"], row["status"]) for row in versions] == [(1, "live")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "{p}"),
        ("evaluate", "{p}"),
        ("predict", "-p", "{p}", "a great film", "NA"),
        ("store", "list", "-p", "{p}"),
        ("store", "show", "1", "-p", "{p}"),
        ("store", "prune", "-p", "{p}"),
        ("schema",),
    ],
)
def test_every_verb_prints_for_people_and_one_object_for_machines(made, call, arguments):
    arguments = [each.format(p=made) for each in arguments]
    code, out, _ = call(*arguments)
    assert code == 0
    assert out.strip()
    code, out, _ = call(*arguments, "--json")
    assert code == 0
    assert isinstance(last_json(out), dict)
    assert len(out.splitlines()) == 1


def test_predict_writes_the_file_that_was_asked_for(made, call, tmp_path):
    target = tmp_path / "out.jsonl"
    code, out, _ = call("predict", "-p", made, "--input", made.parent / "reviews.csv", "-o", target)
    assert code == 0
    assert str(target) in out
    assert len(target.read_text().splitlines()) == 300


def test_a_published_run_is_promoted_and_rolled_back(tmp_path, call):
    path = write_toy_project(tmp_path)
    for expected in (1, 2):
        code, out, _ = call("train", path, "--set", f"train.seed={expected}", "--json")
        assert code == 0
        code, out, _ = call("store", "publish", last_json(out)["run"], "--json")
        assert last_json(out) == {"version": expected}
        code, _, err = call("store", "promote", expected, "-p", path, "--force")
        assert code == 0, err
    code, out, _ = call("store", "rollback", "-p", path, "--json")
    assert (code, last_json(out)["live"]) == (0, 1)
    code, out, err = call("store", "promote", 2, "-p", path, "--json")
    assert code in (2, 3), "a version that was rolled back does not come back by itself"
    assert last_json(out)["error"]["message"] in err


def test_a_refusal_by_the_gate_is_exit_code_3(tmp_path, call):
    path = write_toy_project(tmp_path)
    assert call("run", path)[0] == 0
    code, out, err = call("run", path, "--set", "train.lr=1e-7", "--set", "train.epochs=1", "--json")
    assert code == 3
    assert last_json(out)["error"]["kind"] == "GateRefused"
    assert "Traceback" not in err


@pytest.mark.parametrize("guard", ["true", "false"])
def test_a_training_whose_loss_is_no_number_is_exit_code_4(tmp_path, call, guard):
    path = write_toy_project(tmp_path)
    classifier, tokenizer = toy_classifier()
    for weights in classifier.encoder.parameters():
        torch.nn.init.constant_(weights, float("nan"))
    save(classifier, tokenizer, tmp_path / "broken")
    toml = [line for line in path.read_text().splitlines() if not line.startswith("architecture")]
    path.write_text("\n".join(toml).replace(BACKBONE, "./broken"))
    code, out, err = call("train", path, "--json", "--set", f"guard.enabled={guard}")
    assert code == 4, err
    assert last_json(out)["error"]["kind"] == "TrainingGaveUp"
    (told,) = tmp_path.rglob("gave-up.json")
    assert json.loads(told.read_text())["given_up"]["kind"] == "not-a-number"
    assert str(told.with_name("report.html")) in err
    if guard == "true":
        assert "Before the first step" in err
        assert "Lower" not in err


def test_a_wrong_option_is_exit_code_2(call):
    code, out, err = call("train", "--nonsense", "--json")
    assert code == 2
    assert "--nonsense" in err
    assert "error" in last_json(out)
    code, _, err = call("predict", "a text", "--version", "newest")
    assert code == 2
    assert "--version" in err


def test_init_writes_a_project_that_check_can_read(tmp_path, call):
    write_toy_project(tmp_path)
    code, out, _ = call("init", tmp_path / "reviews.csv", "-o", tmp_path / "new.toml")
    assert code == 0
    assert "new.toml" in out
    code, out, _ = call("check", tmp_path / "new.toml")
    assert code == 0
    assert "Next: textmill train" in out


def test_schema_is_a_json_schema(call):
    code, out, _ = call("schema")
    assert code == 0
    assert json.loads(out)["properties"]["train"]


def test_help_and_version_need_no_project(call):
    assert call("--help")[0] == 0
    code, out, _ = call("--version")
    assert (code, out.split()[0]) == (0, "textmill")


def test_an_interrupt_is_exit_code_130_and_loses_nothing(tmp_path):
    path = write_toy_project(tmp_path)
    command = [sys.executable, "-m", "textmill.cli", "train", path, "--set", "train.epochs=500"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        runs = tmp_path / "runs" / "toy"
        deadline = time.monotonic() + 60
        while not list(runs.glob("*/events.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    (events,) = runs.glob("*/events.jsonl")
    assert all(json.loads(line) for line in events.read_text().splitlines())


def test_serve_answers_and_load_accounts_for_every_request(made, tmp_path, call):
    (tmp_path / "texts.txt").write_text("\n".join(example.text for example in toy_examples(20)))
    command = [sys.executable, "-m", "textmill.cli", "serve", made, "--json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            facts = json.loads(server.stdout.readline())
            code, out, err = call(
                "server", "load", tmp_path / "texts.txt", "-p", made, "--url", facts["url"],
                "--clients", 2, "--duration", 1, "--receipt", tmp_path / "receipt.json", "--json",
            )  # fmt: skip
            assert code == 0, err
            ledger = last_json(out)
            assert ledger["sent"] == ledger["answered"] > 0
            assert json.loads((tmp_path / "receipt.json").read_text())["failed"] == 0
            port = facts["admin_url"].rsplit(":", 1)[1]
            code, out, _ = call("server", "status", "-p", made, "--admin-port", port, "--json")
            assert code == 0
            assert "toy" in json.dumps(last_json(out))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=60)
    assert server.returncode == 0


def test_an_interrupt_also_ends_with_one_object(tmp_path):
    path = write_toy_project(tmp_path)
    command = [sys.executable, "-m", "textmill.cli", "train", path, "--json", "--set", "train.epochs=500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("runs/toy/*/events.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert last_json(out)["error"]["kind"] == "Interrupted"


def test_a_fault_of_ours_is_exit_code_1_with_its_trace_and_one_object(tmp_path, call, caplog):
    path = write_toy_project(tmp_path, num_rows=4)
    deeper_than_python = "[" * 50_000
    code, out, err = call("train", path, "--json", "--set", f"train.lr={deeper_than_python}")
    assert code == 1
    assert "Error: RecursionError" in err
    assert "Traceback" in caplog.text
    assert last_json(out)["error"]["kind"] == "Fault"


def test_output_is_readable_on_a_terminal_without_unicode(made):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "textmill.cli", "predict", "-p", made, "我 great 😀"]
    for option, found in (("--json", '"label"'), (None, "great")):
        done = subprocess.run(
            [*command, *filter(None, [option])], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        assert found in done.stdout
    command[3:] = ["train", b"\xff.toml", "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 2
    assert "there must be" in json.loads(done.stdout)["error"]["message"].lower()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("option", [["--json"], []])
def test_a_full_disk_under_the_output_is_one_clear_message(option):
    command = [sys.executable, "-m", "textmill.cli", "schema", *option]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: Standard output must be writable")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("change", ["deleted", "appended", "reordered", "more epochs"])
def test_a_killed_training_goes_on_with_its_own_data_only(tmp_path, call, change):
    path = write_toy_project(tmp_path, num_rows=400)
    always = ["--set", "train.checkpoint_every=2", "--set", "train.lr=1e-4", "--json"]
    command = [sys.executable, "-m", "textmill.cli", "train", path, "--set", "train.epochs=30", *always]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("runs/toy/*/checkpoints/step-00000010")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    header, *rows = (tmp_path / "reviews.csv").read_text().splitlines()
    rows = {
        "deleted": rows[:-5],
        "appended": [*rows, *(f"a new text {n},class{n % 2}" for n in range(50))],
        "reordered": rows[::-1],
        "more epochs": rows,
    }[change]
    (tmp_path / "reviews.csv").write_text("\n".join([header, *rows]) + "\n")
    epochs = 31 if change == "more epochs" else 30
    code, out, err = call("train", path, "--resume", "--set", f"train.epochs={epochs}", *always)
    if change == "more epochs":
        assert code == 0, err
        training = last_json(out)["training"]
        assert 0 < training["new_steps"] < training["steps"]
        assert training["epochs"] == 31
    else:
        assert code == 2
        assert "fingerprint" in last_json(out)["error"]["message"]
