from __future__ import annotations

import base64
import json

import pytest

from tests.data.get.packages import tar_of
from textmill.core.errors import DataError
from textmill.data.get.spam import body_of, read_spam

PLAIN = (
    "From a@b.c  Thu Aug 22 13:17:22 2002\nReceived: from x\n\tby y\nSubject: =?utf-8?q?Caf=C3=A9?=\n\n"
    "Hello\n\nworld\n"
)


def test_headers_go_and_the_subject_stays():
    assert body_of(PLAIN) == "Café\n\nHello\n\nworld"
    assert body_of("Subject: only this\n\n \n") == ""
    assert body_of("no header at all") in ("", "no header at all")


def test_encoded_parts_are_decoded_and_of_two_forms_the_plain_one_is_taken():
    coded = base64.b64encode("Grüße".encode("latin-1")).decode()
    mail = (
        'Subject: s\nContent-Type: multipart/alternative; boundary="b"\n\n'
        "--b\nContent-Type: text/html\n\n<p>html</p>\n"
        '--b\nContent-Type: text/plain; charset="iso-8859-1"\nContent-Transfer-Encoding: base64\n\n'
        f"{coded}\n--b--\n"
    )
    assert body_of(mail) == "s\n\nGrüße"
    quoted = (
        "Content-Transfer-Encoding: quoted-printable\nContent-Type: text/plain; charset=no-such\n\na=3Db\n"
    )
    assert body_of(quoted) == "a=b"


def test_an_attachment_is_left_out():
    mail = (
        'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\nsee file\n'
        "--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\nsecret\n--b--\n"
    )
    assert body_of(mail) == "see file"


def test_mails_become_spam_and_ham():
    mails = {
        "package/data/spam-1/2.json": PLAIN.replace("Hello", "Buy"),
        "package/data/easy-ham-1/1.json": PLAIN,
        "package/data/easy-ham-1/3.json": PLAIN,
    }
    tgz = tar_of({name: json.dumps({"text": mail}).encode() for name, mail in mails.items()})
    found = read_spam(tgz)
    assert [(row.id, row.label) for row in found.rows] == [("easy-ham-1/1", "ham"), ("spam-1/2", "spam")]
    assert found.num_repeated == 1
    with pytest.raises(DataError, match=r"spam-1/2\.json"):
        read_spam(tar_of({"package/data/spam-1/2.json": b"{"}))
