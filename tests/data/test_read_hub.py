from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from textmill.core.errors import DataError
from textmill.data.config import DataConfig
from textmill.data.prepare import prepare
from textmill.data.read import read_rows


def saved(folder: Path, num: int = 60) -> datasets.Dataset:
    made = datasets.Dataset.from_dict(
        {"text": [f"text {n}" for n in range(num)], "label": [n % 2 for n in range(num)]},
        features=datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
        ),
    )
    made.save_to_disk(str(folder))
    return made


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.mark.parametrize("path", ["saved", "hf:saved"])
def test_a_saved_dataset_gives_class_names(tmp_path: Path, path: str) -> None:
    saved(tmp_path / "saved")
    rows = read_rows(path, tmp_path)
    assert rows.column("label", "data.label")[:3] == ["neg", "pos", "neg"]
    assert rows.origin(2) == "saved:3"
    assert prepare(DataConfig(train=path), tmp_path).labels == ("neg", "pos")


def test_a_parquet_of_the_library_gives_class_names(tmp_path: Path) -> None:
    saved(tmp_path / "saved").to_parquet(str(tmp_path / "t.parquet"))
    rows = read_rows("t.parquet", tmp_path)
    assert rows.column("label", "data.label")[:3] == ["neg", "pos", "neg"]


def test_a_split_is_chosen_by_name(tmp_path: Path) -> None:
    part = datasets.Dataset.from_dict({"text": ["a"], "label": ["x"]})
    other = datasets.Dataset.from_dict({"text": ["b"], "label": ["y"]})
    datasets.DatasetDict({"train": part, "test": other}).save_to_disk(str(tmp_path / "both"))
    assert read_rows("hf:both", tmp_path).columns["text"] == ["a"]
    assert read_rows("hf:both:test", tmp_path).columns["text"] == ["b"]
    with pytest.raises(DataError, match=r"split 'tset'.*Did you mean 'test'"):
        read_rows("hf:both:tset", tmp_path)


def test_a_local_folder_of_files_is_built_by_datasets(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train.csv").write_text("text,label\none,a\ntwo,b\n")
    assert read_rows("hf:d", tmp_path).columns == {"text": ["one", "two"], "label": ["a", "b"]}


def test_a_damaged_saved_dataset_is_a_clear_error(tmp_path: Path) -> None:
    saved(tmp_path / "saved")
    (tmp_path / "saved" / "state.json").unlink()
    with pytest.raises(DataError, match="saved dataset must be whole"):
        read_rows("saved", tmp_path)
