"""TOML tables as frozen dataclasses: how all data of the specification is read and refused."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_WORDS = {
    str: "a string",
    bool: "true or false",
    int: "a number",
    date: "a date such as 2027-06-30",
}


class SpecError(ValueError):
    """The specification's own data is wrong; the message names the file and the entry."""


def parse(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{where}: {error}") from None


def record(kind: type[T], raw: object, label: str, **known: Any) -> T:
    """Return a table as a dataclass, whose fields say which keys it must and may have.

    ``known`` are fields that stand elsewhere. Raises SpecError, in which ``label`` names the table.
    """
    if not isinstance(raw, Mapping):
        raise SpecError(f"{label} must be a table, not {raw!r}")
    allowed = {one.name: one for one in fields(cast("Any", kind)) if one.name not in known}
    if unknown := raw.keys() - allowed:
        raise SpecError(f"{label}: unknown keys {sorted(unknown)}")
    for name, one in allowed.items():
        if name not in raw and one.default is MISSING and one.default_factory is MISSING:
            raise SpecError(f"{label}: {name} is missing")
    hints = _hints(cast("Any", kind))
    given = {name: _value(hints[name], value, f"{label}: {name}") for name, value in raw.items()}
    return kind(**known, **given)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, raw: object, label: str) -> Any:
    kind, inside = get_origin(hint), get_args(hint)
    if kind is tuple:
        if not isinstance(raw, list) or not all(isinstance(one, inside[0]) for one in raw):
            raise SpecError(f"{label} must be a list of names")
        if len(set(raw)) != len(raw):
            raise SpecError(f"{label} names something twice")
        return tuple(raw)
    if kind is Mapping or hint is Any:
        return raw
    plain = inside[0] if kind is UnionType else hint
    if issubclass(plain, Enum):
        if raw not in [each.value for each in plain]:
            words = ", ".join(each.value for each in plain)
            raise SpecError(f"{label} must be one of {words}, not {raw!r}")
        return plain(raw)
    strange = isinstance(raw, bool) if plain is int else isinstance(raw, datetime)
    if strange or not isinstance(raw, plain):
        raise SpecError(f"{label} must be {_WORDS[plain]}")
    return raw
