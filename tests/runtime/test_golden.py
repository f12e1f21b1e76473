import pytest

from tests.runtime.bundles import prepare_toy_bundle
from textmill.core.errors import StoreError
from textmill.runtime.golden import (
    Golden,
    GoldenRow,
    check_golden,
    make_golden,
    odd_texts,
    read_golden,
    write_golden,
)
from textmill.runtime.open import open as open_bundle
from textmill.store.registry import Store


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    root = tmp_path_factory.mktemp("golden")
    facts = prepare_toy_bundle(root / "source")
    store = Store(root / "store", "m")
    return store.bundle(store.publish(root / "source", facts))


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_each_runtime_repeats_the_golden_answers(bundle, runtime):
    assert check_golden(bundle, open_bundle(bundle.path, runtime)) < 1e-4


def test_another_model_does_not_repeat_them(bundle, tmp_path):
    prepare_toy_bundle(tmp_path / "other", seed=1)
    with pytest.raises(StoreError, match=r"must repeat its golden answers .* for the text"):
        check_golden(bundle, open_bundle(tmp_path / "other", "onnx"))


def test_other_labels_are_told(bundle, tmp_path):
    prepare_toy_bundle(tmp_path / "other", classes=3)
    with pytest.raises(StoreError, match="class0, class1, class2 in place of class0, class1"):
        check_golden(bundle, open_bundle(tmp_path / "other", "onnx"))


def test_golden_answers_hold_short_long_and_odd_texts(bundle):
    texts = [row.text for row in read_golden(bundle.file("golden.json")).rows]
    assert "" in texts
    assert max(map(len, texts)) > 2000
    assert len(texts) == 11


def test_pairs_are_kept_as_pairs(bundle, tmp_path):
    golden = make_golden(open_bundle(bundle.path, "onnx"), [("one text", "another")])
    assert all(isinstance(text, tuple) for text in odd_texts("pairs"))
    write_golden(tmp_path / "golden.json", golden)
    assert read_golden(tmp_path / "golden.json").rows[0].text == ("one text", "another")


@pytest.mark.parametrize("content", ["", "{}", '{"labels": ["a"], "rows": 5}'])
def test_a_damaged_file_is_told(tmp_path, content):
    (tmp_path / "golden.json").write_text(content)
    with pytest.raises(StoreError, match="golden answers"):
        read_golden(tmp_path / "golden.json")


def test_the_tolerance_is_part_of_the_file():
    row = GoldenRow(text="a", scores=(1.0,))
    assert Golden(labels=("a",), rows=(row,)).tolerance == 1e-3
