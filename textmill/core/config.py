"""The base of every config, and how a table of plain values becomes one.

Promises: configs are frozen; unknown keys are refused with the nearest known key; a value of the
wrong type or range is refused with its full key, the value and the rule.
A config class lives beside its owner, with a docstring under each field (it becomes the
description in `textmill schema`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from textmill.core.errors import ProjectError, nearest


class Config(BaseModel):
    """Base of all configs: frozen, no unknown keys, field docstrings kept."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True
    )


C = TypeVar("C", bound=Config)


def parse_config(kind: type[C], table: Mapping[str, Any], where: str) -> C:
    """Return a config from a table of plain values.

    Args:
        kind: the config class.
        table: nested tables as a TOML or JSON file gives them.
        where: the name of the file, for messages.

    Raises:
        ProjectError: an unknown key, a wrong type or a value out of range; all faults are listed.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as err:
        raise _explain(kind, err.errors(), where) from err


def _explain(kind: type[BaseModel], faults: Sequence[Any], where: str) -> ProjectError:
    """Return one error for all faults; a value of a union is one fault with several rules."""
    rules: dict[str, list[str]] = {}
    for fault in faults:
        rules.setdefault(_key(kind, fault["loc"]), []).append(fault["msg"].lower())
    key, fault = next(iter(rules)), faults[0]
    more = "" if len(rules) == 1 else f" ({len(rules)} faults: {', '.join(rules)})"
    if fault["type"] == "extra_forbidden":
        return ProjectError(
            f"Every key in {where} must be known",
            got=f"the unknown key {key!r}{more}",
            fix=nearest(str(fault["loc"][-1]), _keys_at(kind, fault["loc"][:-1])),
        )
    if not fault["loc"]:
        return ProjectError(
            f"The keys of {where} must fit together",
            got=fault["msg"].removeprefix("Value error, ") + more,
            fix="`textmill schema` prints every key with its rule.",
        )
    if fault["type"] == "missing":
        return ProjectError(
            f"The key {key!r} is needed in {where}",
            got=f"a file without it{more}",
            fix=f"Add {key} = ... to {where}.",
        )
    return ProjectError(
        f"The key {key!r} in {where} must fit its rule ({', or '.join(rules[key])})",
        got=f"{_shown(fault['input'])}{more}",
        fix=f"Change {key}; `textmill schema` prints every key with its rule.",
    )


def apply_overrides(table: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return a copy of `table` with `key.sub=value` overrides applied.

    A value is read as TOML where it is TOML (`3e-5`, `true`, `[1, 2]`) and as a plain string otherwise.

    Raises:
        ProjectError: an override without `=`, or below a key that holds a plain value.
    """
    result: dict[str, Any] = json.loads(json.dumps(table, default=str))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise ProjectError(
                "An override must look like key=value",
                got=repr(override),
                fix="Write for example --set train.lr=3e-5",
            )
        *path, last = (part.strip() for part in key.split("."))
        place = result
        for part in path:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ProjectError(
                    "An override must name a key inside a table",
                    got=f"{override!r}, where {part!r} is a plain value",
                    fix="`textmill schema` prints all keys.",
                )
        place[last] = _plain_value(text.strip())
    return result


def _plain_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _key(kind: type[BaseModel], path: Sequence[str | int]) -> str:
    """Return the key as the file spells it, without the names of union branches that pydantic adds."""
    parts = []
    for part in path:
        parts.append(str(part))
        inner = _table_of(kind, part)
        if inner is None:
            break
        kind = inner
    return ".".join(parts)


def _keys_at(kind: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    for part in path:
        inner = _table_of(kind, part)
        if inner is None:
            return []
        kind = inner
    return list(kind.model_fields)


def _table_of(kind: type[BaseModel], part: str | int) -> type[BaseModel] | None:
    field = kind.model_fields.get(str(part))
    if field is None:
        return None
    candidates = [field.annotation, *get_args(field.annotation)]
    nested = [each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)]
    return nested[0] if nested else None


def _shown(value: object, limit: int = 120) -> str:
    shown = repr(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
