"""Small packages in the forms of the registries."""

from __future__ import annotations

import io
import tarfile
import zipfile


def tar_of(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return sink.getvalue()


def deb_of(files: dict[str, bytes]) -> bytes:
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar_of({"./control": b"Package: x\n"}, "w:xz"),
        "data.tar.xz": tar_of({f"./{name}": content for name, content in files.items()}, "w:xz"),
    }
    sink = b"!<arch>\n"
    for name, content in parts.items():
        sink += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        sink += content + b"\n" * (len(content) % 2)
    return sink
