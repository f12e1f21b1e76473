"""Small folders to publish: plain files, no model inside."""

import json
from pathlib import Path

from textmill.store.manifest import Facts, Signature

FACTS = Facts(
    signature=Signature(
        task="classification", labels=("ham", "spam"), max_length=32, tokenizer="0" * 64, runtimes=("onnx",)
    ),
    metrics={"accuracy": 0.5},
    data_fingerprint="f" * 64,
)


def make_source(folder: Path, text: str = "weights", num_bytes: int = 0) -> Path:
    """Write a folder with a file in a subfolder, a larger file and an empty one."""
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text(json.dumps({"text": text}))
    (folder / "model.onnx").write_bytes(text.encode() * 50 + bytes(num_bytes))
    (folder / "empty.json").write_bytes(b"")
    return folder


def visible(root: Path) -> list[str]:
    """Return what a reader may see below a store: everything but locks, without staging of the living."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.name != ".lock")
