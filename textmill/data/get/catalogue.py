"""`textmill data get <name>`: real labelled text as one clean Parquet file.

Promises: the file is written whole or not at all; a good file that is already there is left alone
(its hash lies beside it); the licence and the citation are said and lie beside it too.

What is not covered: choosing another threshold for the classes; the raw ratings of each rater.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import DataError, nearest
from textmill.core.files import sha256_file, write_atomic
from textmill.core.progress import SILENT, Progress
from textmill.data.get.pip_download import download_sdist
from textmill.data.get.vader import RatedText, read_rated

_REQUIREMENT = "vaderSentiment==3.3.2"
_SDIST_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
_CITATION = (
    "C.J. Hutto and E.E. Gilbert (2014), VADER: A Parsimonious Rule-based Model for Sentiment Analysis "
    "of Social Media Text, Eighth International Conference on Weblogs and Social Media (ICWSM-14)"
)
_LICENCE = f"MIT, as part of the source package {_REQUIREMENT}"


@dataclass(frozen=True)
class DataSet:
    """One data set that can be fetched."""

    member: str
    """Its file inside the inner archive of the source package."""
    about: str


DATA_SETS: dict[str, DataSet] = {
    "movie-reviews": DataSet(
        "movieReviewSnippets_GroundTruth.txt", "sentences of film reviews, rated by 20 people"
    ),
    "tweets": DataSet("tweets_GroundTruth.txt", "tweet-like texts, rated by 20 people"),
    "amazon-reviews": DataSet(
        "amazonReviewSnippets_GroundTruth.txt", "sentences of product reviews, rated by 20 people"
    ),
    "nyt-editorials": DataSet(
        "nytEditorialSnippets_GroundTruth.txt", "sentences of newspaper editorials, rated by 20 people"
    ),
}


def get(name: str, folder: Path, progress: Progress = SILENT) -> Path:
    """Fetch a data set and return its Parquet file (columns id, text, label, rating).

    Args:
        name: a key of `DATA_SETS`.
        folder: where `<name>.parquet` and the notes beside it go; made where missing.
        progress: is told the licence and the citation.

    Raises:
        DataError: an unknown name, or the package cannot be fetched or is not the expected one.
        StoreError: the disk is full or forbidden.
    """
    if name not in DATA_SETS:
        raise DataError("The data set must be known", got=repr(name), fix=nearest(name, DATA_SETS))
    target = folder / f"{name}.parquet"
    progress.say(f"{name}: licence {_LICENCE}; please cite: {_CITATION}")
    if _is_good(target):
        progress.say(f"{name}: already there, {target}")
        return target
    with progress.task(f"fetch {name}", total=1) as task:
        sdist = download_sdist(_REQUIREMENT, _SDIST_SHA256)
        rows = read_rated(sdist, DATA_SETS[name].member)
        task.advance()
    write_atomic(target, _as_parquet(rows))
    write_atomic(folder / f"{name}.md", _about(name, rows))
    write_atomic(_hash_file(target), sha256_file(target) + "\n")
    progress.say(f"{name}: {len(rows)} rows written to {target}")
    return target


def _is_good(target: Path) -> bool:
    note = _hash_file(target)
    return target.is_file() and note.is_file() and note.read_text().strip() == sha256_file(target)


def _hash_file(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _as_parquet(rows: list[RatedText]) -> bytes:
    table = pa.table(
        {
            "id": [row.id for row in rows],
            "text": [row.text for row in rows],
            "label": [row.label for row in rows],
            "rating": pa.array([row.rating for row in rows], pa.float64()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _about(name: str, rows: list[RatedText]) -> str:
    positive = sum(row.label == "pos" for row in rows)
    return (
        f"# {name}\n\n{len(rows)} {DATA_SETS[name].about}.\n\n"
        f"`rating` is the mean of the ratings from -4 to 4, `label` its sign ({positive} `pos`, "
        f"{len(rows) - positive} `neg`); rows with a mean between -1 and 1 are left out.\n\n"
        f"Source: `additional_resources/hutto_ICWSM_2014.tar.gz` in the source package `{_REQUIREMENT}`.\n\n"
        f"Licence: {_LICENCE}.\n\nCite: {_CITATION}.\n"
    )
