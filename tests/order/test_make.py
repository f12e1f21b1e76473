from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest

from tests.toy import toy_examples
from textmill.core.types import Example
from textmill.order.config import OrderConfig, Strategy
from textmill.order.difficulty_file import save_difficulty
from textmill.order.make import difficulty_for, needs_teacher
from textmill.order.schedule import schedule_for
from textmill.order.suspects import suspects

EXAMPLES = toy_examples(80)
LENGTHS = np.array([len(str(example.text).split()) for example in EXAMPLES])
CLASSES = np.arange(80) % 2


class Watched:
    """A progress that keeps titles."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    def task(self, title, total):
        from textmill.core.progress import SILENT

        self.titles.append(title)
        return SILENT.task(title, total)

    def say(self, message: str) -> None:
        self.titles.append(message)


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_every_strategy_gets_what_it_needs_and_no_more(strategy):
    watched = Watched()
    config = OrderConfig(strategy=strategy, teacher_folds=2)
    found = difficulty_for(config, EXAMPLES[:20], LENGTHS[:20], 0, watched)
    assert (found is None) == (strategy in ("shuffle", "balanced", "random-subset"))
    assert needs_teacher(config) == (found is not None and found.clearness is not None)
    assert watched.titles == (["ask the teacher"] if needs_teacher(config) else [])
    schedule = schedule_for(config, difficulty=found, class_index=CLASSES[:20])
    assert len(schedule.order(0, 20, np.random.default_rng(0)).rows) == 20


def test_weight_nought_asks_no_teacher():
    assert not needs_teacher(OrderConfig(strategy="ordered", clear_weight=0))
    assert needs_teacher(OrderConfig(strategy="clear-only", clear_weight=0))


def test_a_wrong_label_is_suspect():
    wrong = [*EXAMPLES]
    wrong[7] = Example(wrong[7].id, wrong[7].text, ("class0",))
    found = difficulty_for(OrderConfig(strategy="ordered"), wrong, LENGTHS, 0)
    assert found is not None
    assert suspects(found, 1)[0].id == wrong[7].id


def test_the_file_of_the_run_is_taken_instead_of_a_teacher(tmp_path):
    config = OrderConfig(strategy="ordered", teacher_folds=2)
    first = difficulty_for(config, EXAMPLES, LENGTHS, 0)
    assert first is not None
    path = save_difficulty(first.after_epoch(np.ones(80)), tmp_path)
    watched = Watched()
    again = difficulty_for(config, EXAMPLES, LENGTHS, 0, watched, known=path)
    assert again is not None
    assert watched.titles == []
    assert again.state() == {}
    np.testing.assert_array_equal(again.clearness, first.clearness)
    difficulty_for(config, EXAMPLES[:-1], LENGTHS[:-1], 0, watched, known=path)
    assert watched.titles == ["ask the teacher"]


def test_several_labels_are_judged_and_balanced():
    sets = [("a",), ("a", "b"), (), ("b",)]
    examples = [Example(each.id, each.text, sets[row % 4]) for row, each in enumerate(EXAMPLES)]
    config = OrderConfig(strategy="ordered", teacher_folds=2)
    found = difficulty_for(config, examples, LENGTHS, 0, is_multilabel=True)
    assert found is not None
    assert found.given[:4] == ("a", "a, b", "", "b")
    assert json.loads(json.dumps(found.state())) == {}
