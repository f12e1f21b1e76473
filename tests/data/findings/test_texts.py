from __future__ import annotations

from tests.data.findings.rows import examples, sentence
from textmill.data.findings.texts import find_boilerplate, find_in_texts, list_boilerplate


def kinds(rows):
    return {finding.kind: finding for finding in find_in_texts(rows)}


def test_plain_texts_have_no_findings():
    rows = examples([sentence(n) for n in range(50)])
    assert kinds(rows) == {}
    assert list_boilerplate(rows) == ()


def test_texts_of_signs_alone_are_named():
    found = kinds(examples([sentence(0), "!!! ...", "👍👍", "好"]))
    assert found["no_words"].rows == ("r1", "r2")


def test_html_and_markdown_are_told_apart_from_mere_signs():
    assert kinds(examples(["a <b>bold</b> word<br/>", "x < y and y > z"]))["html"].rows == ("r0",)
    assert kinds(examples(["see [the page](http://x.y/z)", "a [note] (aside)"]))["markdown"].rows == ("r0",)
    assert kinds(examples(["2 < 3 > 1", "i <3 you"])) == {}


def test_a_shared_end_that_gives_the_class_away_is_a_warning():
    signed = [sentence(n) + " -- sent from my wonderful phone, yours truly" for n in range(30)]
    rows = examples([*signed, *[sentence(n) for n in range(100, 160)]], [("a",)] * 30 + [("b",)] * 60)
    pieces = list_boilerplate(rows)
    assert [(piece.place, piece.num_rows) for piece in pieces] == [("end", 30)]
    assert pieces[0].text == " -- sent from my wonderful phone, yours truly"
    found = list(find_boilerplate(pieces))
    assert found[0].level == "warning"
    assert "'a'" in found[0].message


def test_a_shared_beginning_and_a_shared_line_are_found():
    rows = examples([f"Dear Sir or Madam of the house, {sentence(n)}" for n in range(40)])
    pieces = list_boilerplate(rows)
    assert [piece.text for piece in pieces] == ["Dear Sir or Madam of the house, "]
    assert [finding.level for finding in find_boilerplate(pieces)] == ["note"]
    lines = examples(
        [f"{sentence(n)}\nThis message is confidential and may be read by nobody.\nx{n}" for n in range(40)]
    )
    assert [piece.place for piece in list_boilerplate(lines)] == ["line"]
