"""The codec, record batches and state records: what goes in comes out, and no input breaks them."""

import contextlib
import uuid
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.machine.maven import clients_jar, coordinator_jar
from fixtures.wire.codec import Raw, Struct, WireError, decode, default_of, encode
from fixtures.wire.frame import decode_request, decode_response, encode_request, encode_response
from fixtures.wire.records import (
    Compression,
    ControlType,
    Flaws,
    Record,
    batch_headers,
    compress,
    decode_batches,
    decompress,
    encode_batch,
)
from fixtures.wire.schema import FieldSpec, MessageSpec, Schemas, StructSpec, parse_message
from fixtures.wire.state_records import SNAPSHOT, UPDATE, decode_state, encode_value, partition_of
from spec.model.durable import StateBatch
from spec.model.release import NEWEST
from suites.broker.state import as_model, replayed
from tests.golden.oracle import random_body
from tests.release import RELEASE, message_versions, schemas

MANY = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Enough examples for a codec, the same at every run: a referee has no lucky days."""


def bodies(spec: MessageSpec, version: int) -> st.SearchStrategy[dict[str, Any]]:
    def drawn(seed: int) -> dict[str, Any]:
        rnd = Random(seed)
        body: dict[str, Any] = _thinned(random_body(spec.body, version, rnd), rnd)
        tags = {rnd.randint(1000, 2**31 - 1): rnd.randbytes(3) for _ in range(rnd.randint(0, 2))}
        return body | ({"_tags": tags} if version in spec.flexible else {})

    return st.integers(0, 2**32).map(drawn)


def _thinned(value: Any, rnd: Random) -> Any:
    if isinstance(value, list):
        return [_thinned(each, rnd) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _thinned(each, rnd) for name, each in value.items() if rnd.random() < 0.7}


def completed(spec: StructSpec, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
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
    spec, version = draw(st.sampled_from(message_versions()))
    return spec, version, draw(bodies(spec, version))


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
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


# --- Messages ---------------------------------------------------------------------------------

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


def test_defaults_and_tags_of_a_small_message() -> None:
    decoded = decode(SMALL, 2, encode(SMALL, 2, {}))
    assert (decoded.number, decoded.name, decoded.topic_ids) == (-1, "", [])
    assert (decoded.extra.depth, decoded.late) == (16, None)
    assert encode(SMALL, 1, {"extra": {"depth": 16}}) == encode(SMALL, 1, {}), "it takes no bytes"
    assert encode(SMALL, 1, {"extra": {"depth": 17}}) != encode(SMALL, 1, {})
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


@pytest.mark.parametrize("of_request", [True, False], ids=["request", "response"])
@MANY
@given(data=st.data(), noise=st.binary(max_size=300))
def test_no_bytes_break_the_decoding_of_messages(
    data: st.DataObject, noise: bytes, of_request: bool
) -> None:
    api = data.draw(st.sampled_from(sorted(schemas().apis.values())))
    spec = schemas().request(api) if of_request else schemas().response(api)
    version = data.draw(st.integers(spec.valid.low, spec.valid.high))
    body = data.draw(bodies(spec, version))
    if of_request:
        frame = encode_request(schemas(), api, version, correlation_id=1, client_id="c", body=body)
    else:
        frame = encode_response(schemas(), api, version, correlation_id=1, body=body)
    for damaged in (data.draw(mutations(frame)), noise):
        with contextlib.suppress(WireError):
            if of_request:
                decode_request(schemas(), damaged)
            else:
                decode_response(schemas(), api, version, damaged)


def test_a_definition_that_is_not_there_is_named() -> None:
    with pytest.raises(LookupError, match="no message ShareJugglingRequest"):
        Schemas({}).request("ShareJuggling")


# --- Record batches ---------------------------------------------------------------------------

PLAIN = encode_batch([b"one", b"two", b"three"], base_offset=40, base_timestamp=1000)
CRC_AT = 17
ALL_CODECS = pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name.lower())


@MANY
@given(record_lists(100), CODECS, st.integers(0, 50))
def test_any_records_come_back_as_they_were(
    records: list[Record], codec: Compression, behind: int
) -> None:
    last = records[-1].offset + behind if records else 100 + behind
    data = encode_batch(
        records, base_offset=100, last_offset_delta=last - 100, compression=codec, producer_id=9
    )
    (batch,) = decode_batches(data)
    assert list(batch.records) == records
    assert (batch.base_offset, batch.last_offset, batch.count) == (100, last, len(records))
    assert (batch.producer_id, batch.size, batch.transactional) == (9, len(data), False)
    assert batch.compression is (codec if records else Compression.NONE)


def test_control_records() -> None:
    change = Record(key=bytes.fromhex("00000002"), value=bytes.fromhex("0000 00000005 0101 00"))
    records = (change, Record(key=b"\x00\x00\x00\x63"), Record(key=b"\x00"))
    leader, later, bad = (decode_batches(encode_batch([one], control=True))[0] for one in records)
    assert leader.markers[0].type is ControlType.LEADER_CHANGE
    assert (leader.markers[0].leader_id, leader.markers[0].coordinator_epoch) == (5, -1)
    assert later.markers[0].type is ControlType.UNKNOWN
    with pytest.raises(WireError, match="a key of 1 bytes"):
        _ = bad.markers
    assert decode_batches(PLAIN)[0].markers == ()


def test_every_flipped_bit_behind_the_crc_is_noticed() -> None:
    for position in range(CRC_AT, len(PLAIN)):
        damaged = bytearray(PLAIN)
        damaged[position] ^= 1
        with pytest.raises(WireError, match="CRC"):
            decode_batches(bytes(damaged))


def test_the_crc_can_be_left_unchecked_and_numbers_have_to_fit() -> None:
    (batch,) = decode_batches(encode_batch([b"x"], flaws=Flaws(crc=1)), check_crc=False)
    assert (batch.crc, batch.records[0].value) == (1, b"x")
    with pytest.raises(WireError, match="cannot say this"):
        encode_batch([b"x"], producer_epoch=40000)


@pytest.mark.parametrize(
    ("flaws", "complaint"),
    [
        (Flaws(crc=0), "CRC"),
        (Flaws(magic=1), "magic 1"),
        (Flaws(length=20), "a batch of 32 bytes"),
        (Flaws(length=-1), "a batch of 11 bytes"),
        (Flaws(count=1), "follow the last of 1 records"),
        (Flaws(count=3), "mid-record"),
        (Flaws(count=-1), "-1 records"),
        (Flaws(count=2**31 - 1), "2147483647 records"),
        (Flaws(attributes=5), "no codec has number 5"),
        (Flaws(attributes=Compression.GZIP), "gzip"),
        (Flaws(attributes=Compression.SNAPPY), "snappy"),
        (Flaws(attributes=Compression.LZ4), "lz4"),
        (Flaws(attributes=Compression.ZSTD), "zstd"),
        (Flaws(body=b"\x02"), "2 records in 1 bytes"),
    ],
)
def test_lies_are_written_and_found_out(flaws: Flaws, complaint: str) -> None:
    data = encode_batch([b"a" * 30, b"b" * 30], flaws=flaws)
    with pytest.raises(WireError, match=complaint):
        decode_batches(data)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("01", "a record of -1 bytes"),
        ("7e 00 00 00 01 01 00", "a record of 63 bytes"),
        ("0c 00 00 00 01 01 02", "1 headers in 0 bytes"),
        ("0c 00 00 00 01 08 00", "mid-record"),
        ("0c 00 00 00 03 01 00", "a length of -2"),
        ("0c 00 00 00 01 01 0e", "7 headers in 0 bytes"),
        ("10 00 00 00 01 01 02 01 01", "a header without a key"),
        ("14 00 00 ffffffffff01 01 01 00", "does not fit 32 bits"),
        ("0e 00 00 00 01 01 00 00", "a record ends at 7 instead of 8"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(body: str, complaint: str) -> None:
    data = encode_batch([], flaws=Flaws(count=1, body=bytes.fromhex(body)))
    with pytest.raises(WireError, match=complaint):
        decode_batches(data)


@MANY
@given(st.integers(0, len(PLAIN) - 1))
def test_a_batch_cut_short_is_reported_and_the_ones_before_it_are_kept(size: int) -> None:
    batches = decode_batches(PLAIN + PLAIN[:size])
    assert [batch.base_offset for batch in batches] == [40]
    assert batches.truncated == size


def test_headers_are_read_without_looking_inside() -> None:
    unreadable = encode_batch([b"x"], base_offset=43, flaws=Flaws(body=b"\xff", crc=0))
    headers = batch_headers(PLAIN + unreadable)
    assert [(header.base_offset, header.last_offset) for header in headers] == [(40, 42), (43, 43)]
    assert [header.size for header in headers] == [len(PLAIN), len(unreadable)]
    assert decode_batches(None) == decode_batches(b"") == []
    assert decode_batches(None).truncated == 0


@ALL_CODECS
@pytest.mark.parametrize("size", [0, 1, 1000, 32768, 32769, 300_000])
def test_each_codec_gives_back_any_amount(codec: Compression, size: int) -> None:
    data = b"shares " * (size // 7 + 1)
    assert decompress(codec, compress(codec, data[:size])) == data[:size]


def test_snappy_is_read_without_blocks_and_not_believed_about_gigabytes() -> None:
    assert decompress(Compression.SNAPPY, b"\x05\x10hello") == b"hello"
    with pytest.raises(WireError, match="6 bytes of snappy promise 4294967295"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f\x00")


@MANY
@given(CODECS, st.binary(max_size=200))
def test_noise_breaks_no_codec_and_holds_no_batches(codec: Compression, noise: bytes) -> None:
    with contextlib.suppress(WireError):
        decompress(codec, noise)
    with contextlib.suppress(WireError):
        assert len(decode_batches(noise)) == 0


@MANY
@given(st.data())
def test_no_bytes_break_the_reading_of_batches(data: st.DataObject) -> None:
    records = data.draw(record_lists())
    whole = encode_batch(records, compression=data.draw(CODECS))
    with contextlib.suppress(WireError):
        decode_batches(data.draw(mutations(whole)), check_crc=data.draw(st.booleans()))
    body = data.draw(mutations(encode_batch(records)[61:]))
    flaws = Flaws(count=data.draw(st.integers(0, 9)), body=body)
    with contextlib.suppress(WireError):
        for batch in decode_batches(encode_batch([], flaws=flaws)):
            assert len(batch.records) == batch.count


# --- Records of the state topic ---------------------------------------------------------------

TOPIC = uuid.UUID(int=7)
BATCH = {"first_offset": 3, "last_offset": 5, "delivery_state": 2, "delivery_count": 1}


@pytest.fixture(scope="module")
def state_schemas() -> Schemas:
    clients = clients_jar(RELEASE)
    return Schemas.from_jar(coordinator_jar(clients))


def written(state_schemas: Schemas, kind: str, **fields: object) -> Record:
    key = {"group_id": "g:1", "topic_id": TOPIC, "partition": 4}
    prefix = bytes([0, 0 if kind == SNAPSHOT else 1])
    value = encode(state_schemas.message(f"{kind}Value"), 0, fields)
    return Record(
        offset=9,
        key=prefix + encode(state_schemas.message(f"{kind}Key"), 0, key),
        value=b"\0\0" + value if fields else None,
    )


@pytest.mark.parametrize("kind", [SNAPSHOT, UPDATE])
def test_record_comes_back_as_it_was(state_schemas: Schemas, kind: str) -> None:
    record = written(state_schemas, kind, snapshot_epoch=2, start_offset=3, state_batches=[BATCH])
    state = decode_state(record, state_schemas)
    assert (state.kind, state.group, state.topic_id, state.partition) == (kind, "g:1", TOPIC, 4)
    assert encode_value(state, state_schemas) == record.value
    assert as_model(state).batches == (StateBatch(3, 5, 2, 1),)
    assert (as_model(state).state_epoch is None) == (kind == UPDATE)


def test_tombstone_ends_the_state(state_schemas: Schemas) -> None:
    snapshot = decode_state(written(state_schemas, SNAPSHOT, start_offset=3), state_schemas)
    tombstone = decode_state(written(state_schemas, SNAPSHOT), state_schemas)
    kept = replayed([snapshot], NEWEST)
    assert kept is not None
    assert kept.start == 3
    assert tombstone.tombstone
    assert replayed([snapshot, tombstone], NEWEST) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\x07abc", b"\0\0"])
def test_other_records_are_refused(state_schemas: Schemas, key: bytes | None) -> None:
    with pytest.raises(WireError):
        decode_state(Record(key=key, value=b"x"), state_schemas)


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("abc", 96354), ("polygenelubricants", 0), ("Grüße", 69215351)]
)
def test_hash_is_that_of_java(text: str, code: int) -> None:
    assert partition_of(text, 2**31) == code
