"""The manifest of a bundle: what it is called, what it answers, and the hash of each of its files.

Promises: a manifest has exactly one spelling in bytes, so one flipped byte anywhere in it is found;
its digest covers all of it, and through the hashes all files of the bundle; no path in it leads out of
the bundle.
What is not covered: signatures by a person or a company (a digest proves that nothing changed, not who
wrote it).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
    model_validator,
)

from textmill.core.config import Config
from textmill.core.errors import StoreError
from textmill.encode.config import LongText, WindowPool

MANIFEST = "manifest.json"
"""The file whose presence makes a folder a bundle; it is written last."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PATH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def check_name(name: str, what: str) -> str:
    """Return `name` if it may name a folder of the store; `what` it names is said in the error.

    Raises:
        StoreError: anything but 1 to 64 letters, digits, `_`, `.` and `-`, beginning with a letter or digit.
    """
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"A {what} must be 1 to 64 letters, digits, '_', '.' or '-', beginning with a letter or digit",
            got=repr(name[:100]),
            fix="Choose another name.",
        )
    return name


def check_path(path: str) -> str:
    """Return `path` if it is a plain relative path inside a bundle.

    Raises:
        ValueError: an absolute path, `..`, a hidden or empty part, or a character that is not portable.
    """
    if not all(_PATH_PART.fullmatch(part) for part in path.split("/")):
        raise ValueError(f"{path!r} is not a plain path inside the bundle")
    return path


BundlePath = Annotated[str, AfterValidator(check_path)]


class FileEntry(Config):
    """One file of a bundle."""

    sha256: Sha256
    """Hash of the whole file, hexadecimal."""
    size: int = Field(ge=0)
    """Length in bytes."""


class Signature(Config):
    """What a bundle reads and answers: the part that callers depend on."""

    task: Literal["classification", "pairs", "multilabel", "generation"]
    """What kind of answer it gives."""
    labels: tuple[str, ...] = ()
    """Class names in the order of the columns of the scores."""
    thresholds: tuple[Annotated[float, Field(gt=0, lt=1)], ...] | None = None
    """The score from which each label applies, in the order of `labels`; only with task = "multilabel"."""
    max_length: int = Field(ge=1)
    """Tokens of a row that are read; what becomes of a longer text says `long_text`."""
    long_text: LongText = "head"
    """What is read of a longer text."""
    window_overlap: float | None = Field(default=None, ge=0, lt=1)
    """With windows: the share of one that the next repeats."""
    window_pool: WindowPool | None = None
    """With windows: how their scores become one."""
    tokenizer: Sha256
    """Hash of model/tokenizer.json."""
    runtimes: tuple[str, ...]
    """Names of the runtimes that can open the bundle."""

    @model_validator(mode="after")
    def _fit_together(self) -> Signature:
        if self.thresholds is not None and self.task != "multilabel":
            raise ValueError(f'thresholds with task = "{self.task}"')
        if self.thresholds is not None and len(self.thresholds) != len(self.labels):
            raise ValueError(f"{len(self.thresholds)} thresholds for {len(self.labels)} labels")
        return self

    @model_serializer(mode="wrap")
    def _leave_out_later_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Keep the spelling, and so the digest, of versions that were published before these fields."""
        table: dict[str, Any] = handler(self)
        return {key: value for key, value in table.items() if table[key] != _SINCE_SHAPES.get(key, _ALWAYS)}


_ALWAYS = object()
_SINCE_SHAPES = {"thresholds": None, "long_text": "head", "window_overlap": None, "window_pool": None}
"""Fields of a signature that are not written where they say what versions without them do."""


class Facts(Config):
    """What the publisher knows about a bundle; the store adds name, version, time and hashes."""

    signature: Signature
    """What it reads and answers."""
    metrics: dict[str, FiniteFloat] = Field(default_factory=dict)
    """Metrics on the untouched test rows."""
    parent: int | None = None
    """The version it continues, if any."""
    data_fingerprint: str | None = None
    """Hash over ids, texts and labels of the data it was trained on."""
    variants: dict[str, BundlePath] = Field(default_factory=dict)
    """Other files with the same answers, by name (for example a quantized graph)."""


class Manifest(Facts):
    """A whole manifest, as `manifest.json` holds it (there with its digest)."""

    format: Literal[1] = 1
    """Version of this file format."""
    name: Annotated[str, StringConstraints(pattern=rf"^{_NAME.pattern}$")]
    """Name of the model in the store."""
    version: int = Field(ge=1)
    """Number of the version."""
    created: str
    """Time of publishing, UTC, ISO 8601."""
    textmill: str
    """The textmill that published it."""
    files: dict[BundlePath, FileEntry]
    """Every file of the bundle but the manifest itself, by path."""

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical manifest: equal digests mean equal bundles, byte by byte."""
        return hashlib.sha256(_canonical(self.model_dump(mode="json"))).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(entry.size for entry in self.files.values())

    def to_bytes(self) -> bytes:
        """Return the one spelling of this manifest: readable JSON that ends with the digest."""
        table = {**self.model_dump(mode="json"), "digest": self.digest}
        return (json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def parse_manifest(content: bytes, where: str) -> Manifest:
    """Return the manifest spelled by `content`.

    Args:
        content: the bytes of a `manifest.json`.
        where: its path, for messages.

    Raises:
        StoreError: no JSON, an unknown format, a field that breaks its rule, or one changed byte.
    """
    fix = "Publish the version again, or copy the whole bundle again."
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as err:
        raise StoreError(f"{where} must be JSON", got=f"{content[:40]!r} ({err})", fix=fix) from err
    if not isinstance(table, dict):
        raise StoreError(f"{where} must hold one JSON object", got=type(table).__name__, fix=fix)
    digest = table.pop("digest", None)
    try:
        manifest = Manifest.model_validate(table)
    except ValidationError as err:
        fault = err.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise StoreError(
            f"{where} must be a manifest that this textmill knows ({key}: {fault['msg'].lower()})",
            got=repr(fault["input"])[:120],
            fix=fix,
        ) from err
    if digest != manifest.digest or content != manifest.to_bytes():
        raise StoreError(
            f"{where} must be unchanged since it was published",
            got=f"content with the digest {manifest.digest[:12]}, where {str(digest)[:12]} is written",
            fix=fix,
        )
    return manifest


def _canonical(table: dict[str, Any]) -> bytes:
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()
