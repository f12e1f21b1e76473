"""The body of a predict request: what is asked, checked before anything is computed.

Promises: exactly the stated form is read and nothing is cast; each fault is one `RequestError` that
names the item; depth and size are bounded. The form is
`{"instances": ["text", ...]}`, or `{"text": "text"}` objects in place of the strings.
"""

from __future__ import annotations

import json
from typing import Any

from textmill.core.errors import RequestError
from textmill.serve.config import ServeConfig

_FORM = '{"instances": ["text", ...]}'
_FIX = f"Send {_FORM} as application/json."


def parse_instances(body: bytes, config: ServeConfig) -> list[str]:
    """Return the texts of a request.

    Raises:
        RequestError: 400 for a body that is no JSON or has another form, 413 for too much.
    """
    table = _parse_json(body)
    if not isinstance(table, dict):
        raise _wrong("The body must be a JSON object", _shown(table))
    if "instances" not in table:
        raise _wrong("The body must have the key instances", f"the keys {_shown(sorted(table))}")
    if len(table) > 1:
        others = sorted(key for key in table if key != "instances")
        raise _wrong("The body must have no key besides instances", f"also {_shown(others)}")
    instances = table["instances"]
    if not isinstance(instances, list):
        raise _wrong("instances must be a list", _shown(instances))
    if len(instances) > config.max_items:
        raise RequestError(
            f"A request must have at most {config.max_items} instances",
            got=f"{len(instances)}",
            fix="Send them in several requests.",
            status=413,
        )
    return [_text_of(item, index, config.max_chars) for index, item in enumerate(instances)]


def _text_of(item: Any, index: int, max_chars: int) -> str:
    text = item
    if type(item) is dict and list(item) == ["text"]:
        text = item["text"]
    if type(text) is not str:
        raise _wrong(
            'Each instance must be a text, or an object with the one key "text"', _shown(item, index)
        )
    if len(text) > max_chars:
        raise RequestError(
            f"A text must have at most {max_chars} characters",
            got=f"{len(text)} in item {index}",
            fix="Cut the text; the model reads its beginning only.",
            status=413,
        )
    return text


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError as err:
        raise _wrong("The body must not be nested deeply", "many brackets inside each other") from err
    except UnicodeDecodeError as err:
        raise _wrong("The body must be JSON in UTF-8", f"other bytes at position {err.start}") from err
    except ValueError as err:
        raise _wrong("The body must be JSON", f"{body[:40]!r} ({err})"[:200]) from err


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key twice in one object")
    return table


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _shown(value: Any, index: int | None = None) -> str:
    try:
        shown = json.dumps(value)
    except RecursionError:
        shown = "a deeply nested value"
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return shown if index is None else f"{shown} in item {index}"


def _wrong(rule: str, got: str) -> RequestError:
    return RequestError(rule, got=got, fix=_FIX)
