from __future__ import annotations

import random

import numpy as np
import pytest

from textmill.core.types import Predictor
from textmill.data.teacher import Teacher, _affordable, out_of_fold

GOOD = ["lovely", "great", "superb", "charming", "a joy"]
BAD = ["awful", "dull", "boring", "terrible", "a mess"]


def reviews(num: int, seed: int = 0) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    labels = [draw.choice(["neg", "pos"]) for _ in range(num)]
    texts = [
        f"the film {number} was {draw.choice(GOOD if label == 'pos' else BAD)} and {draw.choice('xyz')}"
        for number, label in enumerate(labels)
    ]
    return texts, labels


def test_teacher_is_a_predictor_whose_rows_sum_to_one() -> None:
    texts, labels = reviews(60)
    teacher = Teacher.fit(texts, labels, seed=0)
    assert isinstance(teacher, Predictor)
    scores = teacher.scores([*texts[:5], "", "完全不同"])
    assert (scores.shape, scores.dtype) == ((7, 2), np.float32)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    assert teacher.scores([]).shape == (0, 2)


def test_teacher_learns_a_clear_pattern() -> None:
    texts, labels = reviews(120)
    others, truth = reviews(80, seed=1)
    teacher = Teacher.fit(texts, labels, seed=0)
    answers = [teacher.labels[index] for index in teacher.scores(others).argmax(axis=1)]
    assert np.mean([a == t for a, t in zip(answers, truth, strict=True)]) > 0.95


def test_teacher_reads_chinese_without_word_segmentation() -> None:
    good = [f"这部电影真的很好看，我非常喜欢{n}" for n in "一二三四五六七八九十"]
    bad = [f"太难看了，完全浪费时间，失望{n}" for n in "一二三四五六七八九十"]
    teacher = Teacher.fit(good + bad, ["pos"] * 10 + ["neg"] * 10, seed=0)
    scores = teacher.scores(["故事不错，很好看", "演得太难看"])
    assert [teacher.labels[index] for index in scores.argmax(axis=1)] == ["pos", "neg"]


def test_equal_seed_gives_equal_confidences() -> None:
    texts, labels = reviews(60)
    first, second = (out_of_fold(texts, labels, folds=3, seed=5).confidence for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_wrong_label_gets_the_lowest_confidence() -> None:
    texts, labels = reviews(120)
    labels[17] = "neg" if labels[17] == "pos" else "pos"
    judged = out_of_fold(texts, labels, folds=4, seed=0)
    confidence = judged.confidence
    assert judged.rivals[17] != labels[17]
    assert confidence.shape == (120,)
    assert confidence.argmin() == 17
    assert np.median(confidence) > 0.7


def test_classes_of_one_and_two_rows_break_nothing() -> None:
    texts, labels = reviews(60)
    texts += ["only one", "first of two", "second of two"]
    labels += ["c", "d", "d"]
    confidence = out_of_fold(texts, labels, folds=5, seed=0).confidence
    assert np.isfinite(confidence).all()
    assert confidence[60] == 0
    assert len(out_of_fold(["a", "b"], ["x", "y"], folds=5, seed=0).confidence) == 2


@pytest.mark.parametrize("texts", [["", ""], ["!!!", "???"], ["a", "b"]])
def test_texts_without_words_are_answered(texts: list[str]) -> None:
    scores = Teacher.fit(texts, ["x", "y"], seed=0).scores(["", "other words"])
    assert scores.shape == (2, 2)
    assert np.isfinite(scores).all()


def test_one_class_is_always_answered() -> None:
    assert Teacher.fit(["a", "b"], ["x", "x"], seed=0).scores(["c"]).tolist() == [[1.0]]


def test_pairs_are_read_as_one_text() -> None:
    teacher = Teacher.fit([("good", "film"), ("bad", "film")], ["pos", "neg"], seed=0)
    assert teacher.labels[int(teacher.scores([("good", "book")]).argmax())] == "pos"


def topics(num: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return texts of none, one or two topics."""
    words = {"food": "bread soup pepper", "sea": "ship ocean sailor", "ill": "doctor nurse hospital"}
    kinds: list[tuple[str, ...]] = [("food",), ("sea",), ("ill",), ("food", "sea"), ()]
    draw = random.Random(0)
    sets = [kinds[number % 5] for number in range(num)]
    return [
        f"day {number} of the {' '.join(draw.choice(words[name].split()) for name in each)} year"
        for number, each in enumerate(sets)
    ], sets


def test_several_labels_are_judged_each_by_itself() -> None:
    texts, sets = topics(150)
    teacher = Teacher.fit(texts, sets, seed=0)
    assert teacher.decision.is_multilabel
    names = teacher.decision.names(teacher.scores(["bread and a ship", "a nurse", "a day"]), teacher.labels)
    assert names == [("food", "sea"), ("ill",), ()]


def test_a_wrong_set_of_labels_gets_the_lowest_confidence() -> None:
    texts, sets = topics(150)
    sets[52] = ("sea",)  # it speaks of illness
    judged = out_of_fold(texts, sets, folds=4, seed=0)
    assert judged.confidence.argmin() == 52
    assert judged.rivals == ()
    assert np.median(judged.confidence[[row for row in range(150) if not sets[row]]]) > 0.5


def test_rows_beyond_the_sample_are_judged_too() -> None:
    texts, labels = reviews(400)
    labels[399] = "neg" if labels[399] == "pos" else "pos"
    judged = out_of_fold(texts, labels, folds=4, seed=0, most_rows=120)
    assert (judged.confidence > 0.5).mean() > 0.95
    assert judged.confidence[399] < 0.2
    teacher = Teacher.fit(texts, labels, seed=0, most_rows=120)
    assert teacher.scores(texts).argmax(axis=1).mean() == pytest.approx(
        np.mean([each == "pos" for each in labels]), abs=0.05
    )


def test_long_texts_are_cut_and_sampled_to_what_is_affordable() -> None:
    texts = [("superb " if number % 2 else "awful ") * 2000 + str(number) for number in range(2000)]
    rows = _affordable(texts, np.arange(2000) % 2, 2000, seed=0)
    assert len(rows) == 1200  # of 5,000 characters each


@pytest.mark.slow
def test_thousands_of_classes_with_two_rows_each_are_judged() -> None:
    num = 3000
    texts = [f"w{row % num} and the w{row * 7 % num} of w{row % num} {row}" for row in range(2 * num)]
    judged = out_of_fold(texts, [str(row % num) for row in range(2 * num)], folds=2, seed=0)
    assert judged.rivals[:100] == tuple(str(row) for row in range(100))
