"""Random message bodies from a seed, and the JSON that Kafka's own converters read.

Values lean to the edges of their types, because that is where two serializers differ. Bodies are
whole, tagged fields included, so that what is decoded can be compared with ``==``.
"""

import base64
import uuid
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from fixtures.wire.codec import Struct, default_of
from fixtures.wire.schema import FieldSpec, StructSpec

_TEXTS = (
    "",
    "a",
    "orders-1",
    "Größe",
    "日本",
    "\N{GRINNING FACE}",
    "x" * 126,
    "y" * 127,
    "z" * 200,
)
_LENGTHS = (0, 0, 1, 1, 2, 3)
_NULLS = 0.2
_DEFAULTS = 0.4


def random_body(spec: StructSpec, version: int, rnd: Random) -> dict[str, Any]:
    present = (field for field in spec.fields if version in field.versions)
    return {field.name: _value(field, version, rnd) for field in present}


def _value(field: FieldSpec, version: int, rnd: Random) -> Any:
    if version in field.tagged and rnd.random() < _DEFAULTS:
        default = default_of(field, version)
        return default.to_dict() if isinstance(default, Struct) else default
    if version in field.nullable and rnd.random() < _NULLS:
        return None
    if field.element is not None:
        return [_single(field, field.element, version, rnd) for _ in range(rnd.choice(_LENGTHS))]
    return _single(field, field.type, version, rnd)


def _single(field: FieldSpec, kind: str, version: int, rnd: Random) -> Any:
    if field.struct is not None:
        return random_body(field.struct, version, rnd)
    return _OTHERS[kind](rnd) if kind in _OTHERS else _integer(kind, rnd)


def _bytes(rnd: Random) -> bytes:
    return rnd.randbytes(rnd.choice((0, 1, 127, 128, 300)))


_OTHERS: Mapping[str, Callable[[Random], Any]] = {
    "bool": lambda rnd: rnd.random() < 0.5,
    "string": lambda rnd: rnd.choice(_TEXTS),
    "bytes": _bytes,
    "records": _bytes,
    "uuid": lambda rnd: uuid.UUID(bytes=rnd.choice((bytes(16), rnd.randbytes(16)))),
    "float64": lambda rnd: rnd.choice((0.0, 1.5, -1e300, rnd.random())),
}


def _integer(kind: str, rnd: Random) -> int:
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    high -= not kind.startswith("u")
    return rnd.choice((0, 1, low, high, rnd.randint(low, high)))


def java_json(spec: StructSpec, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.name: field for field in spec.fields if version in field.versions}
    return {_camel(name): _json(fields[name], version, value) for name, value in body.items()}


def _json(field: FieldSpec, version: int, value: Any) -> Any:
    if isinstance(value, list):
        return [_json(field, version, item) for item in value]
    if isinstance(value, dict):
        assert field.struct is not None
        return java_json(field.struct, version, value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):  # Kafka's Uuid.toString
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)
