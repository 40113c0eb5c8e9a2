"""The codec: what goes in comes out, what cannot be is refused, and no input breaks it.

That the bytes are Kafka's is the subject of ``test_golden.py``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.wire.codec import Raw, Struct, WireError, decode, encode
from fixtures.wire.frame import decode_request, decode_response, encode_request, encode_response
from fixtures.wire.schema import MessageSpec, Schemas, parse_message
from tests.golden.bodies import random_body
from tests.release import message_versions, schemas
from tests.strategies import MANY, bodies, cases, completed, mutations

Case = tuple[MessageSpec, int, dict[str, Any]]

SMALL = parse_message(
    """
    // A message of our own, so that these tests say all there is to know about it.
    {"type": "request", "name": "SmallRequest", "apiKey": 4711, "validVersions": "0-2",
     "flexibleVersions": "1+", "fields": [
       {"name": "Number", "type": "int16", "versions": "0+", "default": "-1"},
       {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "2+"},
       {"name": "TopicIds", "type": "[]uuid", "versions": "0+", "nullableVersions": "1+"},
       {"name": "Extra", "type": "Extra", "versions": "1+", "taggedVersions": "1+", "tag": 0,
        "fields": [{"name": "Depth", "type": "int32", "versions": "1+", "default": "0x10"}]},
       {"name": "Late", "type": "Late", "versions": "2+", "nullableVersions": "2+",
        "default": "null", "fields": [{"name": "Why", "type": "bool", "versions": "2+"}]}
    ]}
    """
)


@MANY
@given(cases())
def test_any_body_comes_back_as_it_was(case: Case) -> None:
    spec, version, body = case

    decoded = decode(spec, version, encode(spec, version, body))

    assert decoded.to_dict() == completed(spec.body, version, body)
    assert decode(spec, version, encode(spec, version, decoded)) == decoded


def test_every_version_of_every_message_round_trips() -> None:
    for spec, version in message_versions():
        body = random_body(spec.body, version, Random(spec.name))

        assert decode(spec, version, encode(spec, version, body)).to_dict() == body


def test_a_body_without_fields_means_the_defaults() -> None:
    for spec, version in message_versions():
        decoded = decode(spec, version, encode(spec, version, {}))

        assert decoded.to_dict() == completed(spec.body, version, {})


def test_defaults_are_those_of_the_definition() -> None:
    decoded = decode(SMALL, 2, encode(SMALL, 2, {}))

    assert (decoded.number, decoded.name, decoded.topic_ids) == (-1, "", [])
    assert decoded.extra.depth == 16
    assert decoded.late is None


def test_a_tagged_field_with_its_default_takes_no_bytes() -> None:
    assert encode(SMALL, 1, {"extra": {"depth": 16}}) == encode(SMALL, 1, {})
    assert encode(SMALL, 1, {"extra": {"depth": 17}}) != encode(SMALL, 1, {})


def test_unknown_tags_are_kept_and_can_be_written_again() -> None:
    data = encode(SMALL, 1, {"_tags": {99: b"xyz", 7: b""}})

    decoded = decode(SMALL, 1, data)

    assert decoded.unknown_tags == {7: b"", 99: b"xyz"}
    assert encode(SMALL, 1, decoded) == data


@pytest.mark.parametrize(
    ("version", "body", "complaint"),
    [
        (0, {"nmae": "x"}, "no field nmae"),
        (0, {"extra": {}}, "no field extra in version 0"),
        (0, {"name": None}, "name is not nullable"),
        (0, {"topic_ids": None}, "topic_ids is not nullable"),
        (0, {"topic_ids": [None]}, "topic_ids"),
        (0, {"number": 40000}, "number: 40000 is no int16"),
        (0, {"number": "one"}, "number: 'one' is no int16"),
        (0, {"name": "x" * 40000}, "name"),
        (0, {"name": "\ud800"}, "name"),
        (1, {"extra": 3}, "a struct is wanted, not 3"),
        (9, {}, "no version 9, only 0-2"),
    ],
)
def test_what_cannot_be_written_is_refused(
    version: int, body: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(WireError, match=complaint):
        encode(SMALL, version, body)


def test_raw_bytes_take_the_place_of_any_value() -> None:
    short = encode(SMALL, 0, {"number": 5, "name": Raw(b"\x7f\xff")})
    element = encode(SMALL, 0, {"topic_ids": [Raw(b"?")]})
    tagged = encode(SMALL, 1, {"extra": Raw(b"")})

    assert short == b"\x00\x05\x7f\xff\x00\x00\x00\x00"
    assert element == b"\xff\xff\x00\x00\x00\x00\x00\x01?"
    assert tagged == b"\xff\xff\x01\x01\x01\x00\x00"


@pytest.mark.parametrize(
    ("version", "data", "complaint"),
    [
        (0, "0001", "2 bytes wanted at 2"),
        (0, "0001 ffff 00000000", "name has length -1"),
        (0, "0001 0000 7fffffff", "2147483647 elements, 0 bytes are left"),
        (0, "0001 0000 ffffffff", "-1 elements"),
        (0, "0001 0000 00000000 00", "leaves 1 bytes unread"),
        (0, "0001 0001 ff 00000000", "not UTF-8"),
        (1, "0001 01 ffffffffff01", "does not fit 32 bits"),
        (1, "0001 01 ffffffff1f", "does not fit 32 bits"),
        (1, "0001 01 01 02 09 00 09 00", "out of order"),
        (1, "0001 01 01 01 00 06 000000000000", "extra leaves 1 bytes"),
    ],
)
def test_what_contradicts_the_definition_is_refused(
    version: int, data: str, complaint: str
) -> None:
    with pytest.raises(WireError, match=complaint):
        decode(SMALL, version, bytes.fromhex(data))


@MANY
@given(cases(), st.data())
def test_a_message_cut_short_is_never_taken_for_whole(case: Case, data: st.DataObject) -> None:
    spec, version, body = case
    whole = encode(spec, version, body)
    if not whole:
        return
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(WireError):
        decode(spec, version, whole[:cut])


@MANY
@given(st.data())
def test_no_bytes_break_the_decoding_of_requests(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(schemas().apis.values())))
    spec = schemas().request(api)
    version = data.draw(st.integers(spec.valid.low, spec.valid.high))
    body = data.draw(bodies(spec, version))
    frame = encode_request(schemas(), api, version, correlation_id=1, client_id="c", body=body)

    _survives(lambda damaged: decode_request(schemas(), damaged), data.draw(mutations(frame)))


@MANY
@given(st.data())
def test_no_bytes_break_the_decoding_of_responses(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(schemas().apis.values())))
    spec = schemas().response(api)
    version = data.draw(st.integers(spec.valid.low, spec.valid.high))
    body = data.draw(bodies(spec, version))
    frame = encode_response(schemas(), api, version, correlation_id=1, body=body)

    def read(damaged: bytes) -> Struct:
        return decode_response(schemas(), api, version, damaged)

    _survives(read, data.draw(mutations(frame)))


@MANY
@given(st.binary(max_size=300))
def test_noise_does_not_break_the_decoding_of_requests(noise: bytes) -> None:
    _survives(lambda damaged: decode_request(schemas(), damaged), noise)


def test_a_definition_that_is_not_there_is_named() -> None:
    with pytest.raises(LookupError, match="no message ShareJugglingRequest"):
        Schemas({}).request("ShareJuggling")


def _survives(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(WireError):
        read(data)
