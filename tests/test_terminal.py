import io

import pytest

from textmill.terminal import BarProgress, LineProgress, fact_lines, show_table

FIGURES = {"loss": 0.6822, "lr": 1.667e-05, "rows/s": 4.511, "valid_loss": 0.6927, "f1_macro": 0.5612}


def test_the_title_and_every_figure_of_a_training_fit_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    with BarProgress(stream).task("train", 18) as task:
        task.advance(18, **FIGURES)
    shown = stream.getvalue()
    assert "train" in shown
    assert "18 of 18" in shown
    assert "f1_macro 0.5612" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_path_is_not_cut_in_two(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    path = "/a/folder/with/a/long/name/" * 4
    BarProgress(stream).say(path)
    assert stream.getvalue() == path + "\n"


def test_a_short_task_is_one_line_and_bytes_are_millions():
    stream = io.StringIO()
    with LineProgress(stream).task("verify", 183_510_365) as task:
        task.advance(183_510_365)
    assert stream.getvalue() == "verify: 183.5 million ...\n"


def test_facts_inside_facts_stand_below_them():
    facts = {"live": 1, "labels": ["a", "b"], "parent": None, "versions": [{"version": 1}], "refused": []}
    expected = [
        "live: 1",
        "labels: a, b",
        "parent: none",
        "versions:",
        "  1:",
        "    version: 1",
        "refused: none",
    ]
    assert fact_lines(facts) == expected


@pytest.mark.parametrize(
    ("cells", "is_left"), [(["a", "bcd"], True), (["5.0%", "50.0%"], False), ([1, 200], False)]
)
def test_words_stand_left_and_figures_right(capsys, cells, is_left):
    show_table("Title", ["name", "a wide column"], [("x", cell) for cell in cells])
    line = next(
        line for line in capsys.readouterr().out.splitlines() if str(cells[0]) in line and "x" in line
    )
    cell = line.split("│")[2]
    assert cell.startswith(f" {cells[0]}") == is_left
