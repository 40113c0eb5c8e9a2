"""Record batches: what goes in comes out, damage is noticed, lies can be told.

That the bytes are Kafka's is the subject of ``test_golden.py``.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.wire.codec import WireError
from fixtures.wire.records import (
    Compression,
    ControlType,
    Flaws,
    Record,
    TimestampType,
    batch_headers,
    compress,
    decode_batches,
    decompress,
    encode_batch,
    encode_marker,
)
from tests.strategies import CODECS, MANY, mutations, record_lists

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
    assert batch.producer_id == 9


def test_values_alone_get_offsets_and_one_timestamp() -> None:
    (batch,) = decode_batches(PLAIN)

    assert [(r.offset, r.timestamp, r.value) for r in batch.records] == [
        (40, 1000, b"one"),
        (41, 1000, b"two"),
        (42, 1000, b"three"),
    ]
    assert (batch.last_offset, batch.size, batch.transactional) == (42, len(PLAIN), False)


def test_a_compacted_batch_keeps_its_range() -> None:
    left = [Record(offset=103, value=b"x"), Record(offset=107, value=b"y")]

    (batch,) = decode_batches(encode_batch(left, base_offset=100, last_offset_delta=9))

    assert (batch.base_offset, batch.last_offset) == (100, 109)
    assert [record.offset for record in batch.records] == [103, 107]


@ALL_CODECS
def test_an_emptied_batch_has_no_records_and_no_codec(codec: Compression) -> None:
    (batch,) = decode_batches(encode_batch([], last_offset_delta=4, compression=codec))

    assert (batch.records, batch.last_offset) == ((), 4)
    assert batch.compression is Compression.NONE


def test_append_time_replaces_the_timestamps_of_all_records() -> None:
    records = [Record(timestamp=5), Record(timestamp=9), Record(timestamp=7)]

    (batch,) = decode_batches(encode_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME))

    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch.records] == [9, 9, 9]


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    (batch,) = decode_batches(encode_batch([Record(timestamp=5)], delete_horizon=10**12))

    assert batch.delete_horizon == 10**12
    assert batch.records[0].timestamp == 5


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_the_end_of_a_transaction_is_understood(kind: ControlType) -> None:
    data = encode_marker(kind, producer_id=7, producer_epoch=2, coordinator_epoch=3, base_offset=8)

    (batch,) = decode_batches(data)

    assert (batch.control, batch.transactional, batch.producer_epoch) == (True, True, 2)
    assert (batch.markers[0].type, batch.markers[0].coordinator_epoch) == (kind, 3)


def test_a_change_of_leader_is_understood() -> None:
    record = Record(key=bytes.fromhex("00000002"), value=bytes.fromhex("0000 00000005 0101 00"))

    (batch,) = decode_batches(encode_batch([record], control=True))

    assert batch.markers[0].type is ControlType.LEADER_CHANGE
    assert (batch.markers[0].leader_id, batch.markers[0].coordinator_epoch) == (5, -1)


def test_a_marker_of_a_later_kafka_is_no_error() -> None:
    (batch,) = decode_batches(encode_batch([Record(key=b"\x00\x00\x00\x63")], control=True))

    assert batch.markers[0].type is ControlType.UNKNOWN


def test_a_control_record_without_a_type_is_refused() -> None:
    (batch,) = decode_batches(encode_batch([Record(key=b"\x00")], control=True))

    with pytest.raises(WireError, match="a key of 1 bytes"):
        _ = batch.markers


def test_records_of_a_data_batch_are_no_markers() -> None:
    assert decode_batches(PLAIN)[0].markers == ()


def test_every_flipped_bit_behind_the_crc_is_noticed() -> None:
    for position in range(CRC_AT, len(PLAIN)):
        damaged = bytearray(PLAIN)
        damaged[position] ^= 1

        with pytest.raises(WireError, match="CRC"):
            decode_batches(bytes(damaged))


def test_the_crc_can_be_left_unchecked() -> None:
    (batch,) = decode_batches(encode_batch([b"x"], flaws=Flaws(crc=1)), check_crc=False)

    assert (batch.crc, batch.records[0].value) == (1, b"x")


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


def test_a_number_too_large_for_its_field_is_refused() -> None:
    with pytest.raises(WireError, match="cannot say this"):
        encode_batch([b"x"], producer_epoch=40000)


@MANY
@given(st.integers(0, len(PLAIN) - 1))
def test_a_batch_cut_short_is_reported_and_the_ones_before_it_are_kept(size: int) -> None:
    batches = decode_batches(PLAIN + PLAIN[:size])

    assert [batch.base_offset for batch in batches] == [40]
    assert batches.truncated == size


def test_no_bytes_hold_no_batches() -> None:
    assert decode_batches(None) == decode_batches(b"") == []
    assert decode_batches(None).truncated == 0


def test_headers_are_read_without_looking_inside() -> None:
    unreadable = encode_batch([b"x"], base_offset=43, flaws=Flaws(body=b"\xff", crc=0))

    headers = batch_headers(PLAIN + unreadable)

    assert [(header.base_offset, header.last_offset) for header in headers] == [(40, 42), (43, 43)]
    assert [header.size for header in headers] == [len(PLAIN), len(unreadable)]


@ALL_CODECS
@pytest.mark.parametrize("size", [0, 1, 1000, 32768, 32769, 300_000])
def test_each_codec_gives_back_any_amount(codec: Compression, size: int) -> None:
    data = b"shares " * (size // 7 + 1)

    assert decompress(codec, compress(codec, data[:size])) == data[:size]


def test_snappy_is_read_without_blocks_too() -> None:
    raw = b"\x05\x10hello"

    assert decompress(Compression.SNAPPY, raw) == b"hello"


def test_snappy_that_promises_gigabytes_is_not_believed() -> None:
    with pytest.raises(WireError, match="6 bytes of snappy promise 4294967295"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f\x00")


@MANY
@given(CODECS, st.binary(max_size=80))
def test_noise_breaks_no_codec(codec: Compression, noise: bytes) -> None:
    with contextlib.suppress(WireError):
        decompress(codec, noise)


@MANY
@given(st.data())
def test_no_bytes_break_the_reading_of_batches(data: st.DataObject) -> None:
    records = data.draw(record_lists())
    whole = encode_batch(records, compression=data.draw(CODECS))

    with contextlib.suppress(WireError):
        decode_batches(data.draw(mutations(whole)), check_crc=data.draw(st.booleans()))


@MANY
@given(st.data())
def test_no_records_break_the_reading_of_batches(data: st.DataObject) -> None:
    body = data.draw(mutations(encode_batch(data.draw(record_lists()))[61:]))
    flaws = Flaws(count=data.draw(st.integers(0, 9)), body=body)

    with contextlib.suppress(WireError):
        for batch in decode_batches(encode_batch([], flaws=flaws)):
            assert len(batch.records) == batch.count


@MANY
@given(st.binary(max_size=200))
def test_noise_holds_no_batches(noise: bytes) -> None:
    with contextlib.suppress(WireError):
        assert len(decode_batches(noise)) == 0
