"""The body of a predict request: what is asked, checked before anything is computed.

Promises: exactly the stated form is read and nothing is cast; each fault is one `RequestError` that
names the item; depth and size are bounded. The form is
`{"instances": ["text", ...]}`, or `{"text": "text"}` objects in place of the strings; for a model of pairs
`{"instances": [{"text": "first", "text_pair": "second"}, ...]}` and nothing else. A list of two strings is
no pair: a client that sends the words of one text would get an answer to it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from textmill.core.errors import RequestError
from textmill.serve.config import ServeConfig

if TYPE_CHECKING:
    from textmill.core.types import Text

_FORM = '{"instances": ["text", ...]}'
_PAIR_FORM = '{"instances": [{"text": "first text", "text_pair": "second text"}, ...]}'
_PAIR_RULE = 'Each instance must be a pair, an object with the keys "text" and "text_pair"'


class _Wrong(Exception):
    """A body of another form; which form is right depends on the model."""

    def __init__(self, rule: str, got: str) -> None:
        super().__init__(rule, got)
        self.rule, self.got = rule, got


def parse_instances(body: bytes, config: ServeConfig, *, is_pairs: bool = False) -> list[Text]:
    """Return the texts of a request.

    Args:
        body: as it was sent.
        config: the limits.
        is_pairs: whether the model that answers reads pairs of texts.

    Raises:
        RequestError: 400 for a body that is no JSON or has another form, 413 for too much.
    """
    try:
        instances = _instances_of(_parse_json(body))
        _check_size(len(instances), config)
        if is_pairs:
            return [_pair_of(item, index, config.max_chars) for index, item in enumerate(instances)]
        return [_text_of(item, index, config.max_chars) for index, item in enumerate(instances)]
    except _Wrong as wrong:
        fix = f"Send {_PAIR_FORM if is_pairs else _FORM} as application/json."
        raise RequestError(wrong.rule, got=wrong.got, fix=fix) from wrong


def _instances_of(table: Any) -> list[Any]:
    if not isinstance(table, dict):
        raise _Wrong("The body must be a JSON object", _shown(table))
    if "instances" not in table:
        raise _Wrong("The body must have the key instances", f"the keys {_shown(sorted(table))}")
    if len(table) > 1:
        others = sorted(key for key in table if key != "instances")
        raise _Wrong("The body must have no key besides instances", f"also {_shown(others)}")
    instances = table["instances"]
    if not isinstance(instances, list):
        raise _Wrong("instances must be a list", _shown(instances))
    return instances


def _check_size(num_items: int, config: ServeConfig) -> None:
    if num_items > config.max_items:
        raise RequestError(
            f"A request must have at most {config.max_items} instances",
            got=f"{num_items}",
            fix="Send them in several requests.",
            status=413,
        )


def _text_of(item: Any, index: int, max_chars: int) -> str:
    if type(item) is dict and "text_pair" in item:
        raise _Wrong("Each instance must be one text: this model reads no pairs", _shown(item, index))
    text = item["text"] if type(item) is dict and list(item) == ["text"] else item
    if type(text) is not str:
        raise _Wrong(
            'Each instance must be a text, or an object with the one key "text"', _shown(item, index)
        )
    return _bounded(text, f"in item {index}", max_chars)


def _pair_of(item: Any, index: int, max_chars: int) -> tuple[str, str]:
    if type(item) is not dict or item.keys() - {"text", "text_pair"}:
        raise _Wrong(_PAIR_RULE, _shown(item, index))
    parts = []
    for key in ("text", "text_pair"):
        if key not in item:
            raise _Wrong(_PAIR_RULE, f'no "{key}" in item {index}')
        if type(item[key]) is not str:
            raise _Wrong(f'The "{key}" of an instance must be a text', _shown(item[key], index))
        parts.append(_bounded(item[key], f'as the "{key}" of item {index}', max_chars))
    return parts[0], parts[1]


def _bounded(text: str, place: str, max_chars: int) -> str:
    if len(text) > max_chars:
        raise RequestError(
            f"A text must have at most {max_chars} characters",
            got=f"{len(text)} {place}",
            fix="Send a shorter text, or the part of it that tells most.",
            status=413,
        )
    return text


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError as err:
        raise _Wrong("The body must not be nested deeply", "many brackets inside each other") from err
    except UnicodeDecodeError as err:
        raise _Wrong("The body must be JSON in UTF-8", f"other bytes at position {err.start}") from err
    except ValueError as err:
        raise _Wrong("The body must be JSON", f"{body[:40]!r} ({err})"[:200]) from err


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
