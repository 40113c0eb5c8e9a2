"""Hypothesis strategies for whatever the message definitions allow, and for record batches.

Every field may be left out, because a body that names no field has to be whole all the same;
:func:`completed` says what such a body means.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from fixtures.wire.codec import Struct, default_of
from fixtures.wire.records import Compression, Record
from fixtures.wire.schema import FieldSpec, MessageSpec, StructSpec
from tests.release import message_versions

MANY = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Enough examples for a codec, the same at every run: a referee has no lucky days."""

_UNKNOWN_TAGS = st.integers(1000, 2**31 - 1)
_INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_TEXT = st.text(max_size=8) | st.sampled_from(["x" * 126, "y" * 127, "é" * 100])
_BYTES = st.binary(max_size=12) | st.just(b"\x00" * 200)
_OTHERS: Mapping[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1)),
    "string": _TEXT,
    "bytes": _BYTES,
    "records": _BYTES,
}


def bodies(spec: MessageSpec, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return bodies of a message in a version."""
    return _struct(spec.body, version, version in spec.flexible)


@cache
def _struct(spec: StructSpec, version: int, flexible: bool) -> st.SearchStrategy[dict[str, Any]]:
    fields = {
        field.name: _field(field, version, flexible)
        for field in spec.fields
        if version in field.versions
    }
    if flexible:
        fields["_tags"] = st.dictionaries(_UNKNOWN_TAGS, st.binary(max_size=4), max_size=2)
    return st.fixed_dictionaries({}, optional=fields)


def _field(field: FieldSpec, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    kind = field.element or field.type
    if field.struct is not None:
        value: st.SearchStrategy[Any] = _struct(field.struct, version, flexible)
    else:
        value = _OTHERS[kind] if kind in _OTHERS else st.integers(*_INTEGERS[kind])
    if field.element is not None:
        value = st.lists(value, max_size=3)
    return st.none() | value if version in field.nullable else value


def completed(spec: StructSpec, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body means, in the form that decoded messages take as plain values."""
    present = [field for field in spec.fields if version in field.versions]
    whole = {field.name: _completed(field, version, body) for field in present}
    return whole | ({"_tags": body["_tags"]} if body.get("_tags") else {})


def _completed(field: FieldSpec, version: int, body: Mapping[str, Any]) -> Any:
    value = body[field.name] if field.name in body else default_of(field, version)
    if isinstance(value, Struct):
        return value.to_dict()
    if field.struct is None or value is None:
        return value
    if isinstance(value, list):
        return [completed(field.struct, version, item) for item in value]
    return completed(field.struct, version, value)


@st.composite
def cases(draw: st.DrawFn) -> tuple[MessageSpec, int, dict[str, Any]]:
    """Return any message in any version with a body."""
    spec, version = draw(st.sampled_from(message_versions()))
    return spec, version, draw(bodies(spec, version))


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Return data with some bytes replaced, cut out, doubled or lost at the end."""
    damaged = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(damaged)))
        end = draw(st.integers(start, min(start + 8, len(damaged))))
        damaged[start:end] = draw(st.binary(max_size=8))
    return bytes(damaged)


CODECS = st.sampled_from(Compression)
_NULLABLE_BYTES = st.none() | st.binary(max_size=40)
_STEPS = st.integers(1, 5)


@st.composite
def record_lists(draw: st.DrawFn, base_offset: int = 0) -> list[Record]:
    """Return records with growing offsets, gaps between them, and timestamps in any order."""
    records = []
    offset = base_offset - 1
    for _ in range(draw(st.integers(0, 8))):
        offset += draw(_STEPS)
        records.append(
            Record(
                offset=offset,
                timestamp=draw(st.integers(0, 2**42)),
                key=draw(_NULLABLE_BYTES),
                value=draw(_NULLABLE_BYTES),
                headers=tuple(
                    draw(st.lists(st.tuples(st.text(max_size=5), _NULLABLE_BYTES), max_size=2))
                ),
            )
        )
    return records
