"""The comparison of tokenizers as lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from textmill.encode.compare import Compared, Comparison, shown_seconds

_LOSSES = {
    "nothing": "kept",
    "blanks": "blanks",
    "width": "width",
    "case": "case",
    "case and accents": "case, accents",
    "characters": "LOST",
}

_WIDTH = 80  # columns of a terminal; where the names do not fit, they are numbered


def table_lines(found: Comparison) -> list[str]:
    """Return one table of measures, one of losses, the notes and the recommendation."""
    head, rows = _measures(found)
    kinds = list(found.compared[0].measures.losses)
    losses = [
        [each.candidate.name, *(_LOSSES[each.measures.losses[kind]] for kind in kinds)]
        for each in found.compared
    ]
    measures, lost = _turned([head, *rows]), _turned([["", *kinds], *losses])
    legend: list[str] = []
    if max(map(len, _aligned(measures) + _aligned(lost))) > _WIDTH:
        numbers = [str(number) for number in range(1, len(found.compared) + 1)]
        legend = [f"{number}  {name}" for number, name in zip(numbers, measures[0][1:], strict=True)] + [""]
        measures[0] = lost[0] = ["", *numbers]
    return [
        f"Tokenizers on {found.num_sampled} of {found.num_rows} texts, max_length {found.max_length}",
        "",
        *legend,
        *_aligned(measures),
        "",
        "What does not come back from the tokens",
        "(case, accents: by design where a tokenizer is uncased):",
        *_aligned(lost),
        "",
        *found.notes,
        *(f"Refused: {each.candidate.name} {each.refused}." for each in found.compared if each.refused),
        f"Recommended: {found.reason}" if found.recommended else found.reason,
        "A tokenizer cannot be changed without the weights it belongs to: fine-tuning means choosing a "
        "checkpoint with its tokenizer.",
    ]


def _measures(found: Comparison) -> tuple[list[str], list[list[str]]]:
    head = ["", "vocab", "tok/word", "tok/char", "chars/tok", "continued", "UNK", "used", "p50", "p95", "p99"]
    head += ["cut off", "Renyi", "MB/s", "rows/s", "epoch"]
    if found.is_chinese:
        head.insert(4, "tok/han")
    return head, [_row(each, found.is_chinese) for each in found.compared]


def _row(each: Compared, is_chinese: bool) -> list[str]:
    m = each.measures
    cells = [
        each.candidate.name,
        f"{m.vocab_size}",
        f"{m.tokens_per_word:.2f}",
        f"{m.tokens_per_character:.2f}",
        f"{m.characters_per_token:.2f}",
        f"{m.continued_share:.1%}",
        f"{m.unk_share:.2%}",
        f"{m.vocab_used_share:.1%}",
        *(str(m.lengths.percentiles[name]) for name in ("p50", "p95", "p99")),
        f"{m.lengths.truncated_share:.1%}",
        f"{m.renyi_efficiency:.3f}",
        f"{m.mb_per_s:.1f}",
        f"{m.rows_per_s:.0f}",
        "" if each.epoch_s is None else shown_seconds(each.epoch_s),
    ]
    if is_chinese:
        cells.insert(4, "" if m.tokens_per_han is None else f"{m.tokens_per_han:.2f}")
    return cells


def _turned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return columns as rows: a line for each measure, a column for each candidate."""
    return [list(column) for column in zip(*rows, strict=True)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
