"""Parts that several folders of tests share."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.toy import BACKBONE, toy_examples

TOY_PROJECT = f"""\
name = "toy"

[data]
train = "reviews.csv"

[encode]
max_length = 64

[model]
backbone = "{BACKBONE}"
architecture = {{ layers = 2, hidden_size = 32, heads = 2, intermediate_size = 64, max_positions = 128 }}

[train]
epochs = 6
lr = 5e-3
threads = 1

[gate]
margin = 0.2

[serve]
port = 0
admin_port = 0
"""


def write_toy_project(folder: Path, num_rows: int = 300) -> Path:
    """Write a csv of learnable text and a project file that trains on it in seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "reviews.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        table.writerows((example.text, example.labels[0]) for example in toy_examples(num_rows))
    path = folder / "project.toml"
    path.write_text(TOY_PROJECT, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory):
    """Return the project and the outcome of `textmill run` on it; tests must not change its store."""
    from textmill.pipeline import run
    from textmill.project import load_project

    project = load_project(write_toy_project(tmp_path_factory.mktemp("toy")))
    return project, run(project)
