"""Frozen dataclasses to what JSON can hold, and back.

A field that equals its default is left out, and may be missing. Unknown keys are dropped: a later
release may add some.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_T = TypeVar("_T")


def to_plain(value: object) -> Any:
    if is_dataclass(value):
        pairs = ((field, getattr(value, field.name)) for field in fields(value))
        return {
            field.name: to_plain(one)
            for field, one in pairs
            if field.default is MISSING or one != field.default
        }
    if isinstance(value, Mapping):
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(one) for one in value]
    return value.value if isinstance(value, Enum) else value


def text_of(value: object) -> str:
    return json.dumps(to_plain(value), indent=1, ensure_ascii=False) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Write a file beside its place and rename it: a reader never meets half a file."""
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def from_plain(kind: type[_T], plain: Any) -> _T:
    return cast("_T", _made(kind, plain))


def _made(kind: Any, plain: Any) -> Any:
    if is_dataclass(kind):
        hints = hints_of(cast("type", kind))
        given = {name: _made(hint, plain[name]) for name, hint in hints.items() if name in plain}
        return cast("Any", kind)(**given)
    origin, args = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        (inner,) = (each for each in args if each is not NoneType)
        return None if plain is None else _made(inner, plain)
    if origin is tuple:
        return tuple(_made(args[0], each) for each in plain)
    if origin is Mapping:
        return {name: _made(args[1], each) for name, each in plain.items()}
    return kind(plain) if isinstance(kind, type) and issubclass(kind, Enum) else plain


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
