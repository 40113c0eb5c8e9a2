"""Our bytes beside those of the release's own Java classes.

What is not covered: releases other than the newest. The codec has no code for any one message or
release, it follows the definitions, so one release stands for all.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from random import Random
from typing import Any

import pytest

from fixtures.wire.codec import decode, encode
from fixtures.wire.frame import request_header_version, response_header_version
from fixtures.wire.records import (
    Compression,
    ControlType,
    Record,
    RecordBatch,
    TimestampType,
    decode_batches,
    encode_batch,
    encode_marker,
)
from fixtures.wire.schema import SHARE_APIS, MessageSpec
from tests.golden.oracle import Answer, Question, java_answers, java_json, random_body
from tests.release import message_versions, schemas

SEED = 932
BODIES = 3
UNKNOWN_TAG = 9999
CODECS = list(Compression)


@dataclass(frozen=True)
class MessageCase:
    spec: MessageSpec
    version: int
    body: dict[str, Any]
    tags: dict[int, bytes]

    @cached_property
    def ours(self) -> bytes:
        tagged = {"_tags": self.tags} if self.tags else {}
        return encode(self.spec, self.version, self.body | tagged)

    @property
    def question(self) -> Question:
        return {
            "op": "message",
            "name": self.spec.name,
            "version": self.version,
            "json": java_json(self.spec.body, self.version, self.body),
            "tags": [{"tag": tag, "bytes": _text(data)} for tag, data in self.tags.items()],
        }


def message_case(spec: MessageSpec, version: int, number: int) -> MessageCase:
    rnd = Random(f"{SEED} {spec.name} {version} {number}")
    tags = {UNKNOWN_TAG: rnd.randbytes(3)} if number and version in spec.flexible else {}
    return MessageCase(spec, version, random_body(spec.body, version, rnd), tags)


def some_records(count: int) -> list[Record]:
    return [
        Record(
            offset=1000 + number,
            timestamp=1_700_000_000_000 + 17 * (number % 7),
            key=None if number % 3 == 0 else b"k%d" % number,
            value=None if number % 11 == 0 else b"value %d " % number * (number % 50),
            headers=(("trace", b"\x00\xff"), ("größe", None)) if number % 4 == 0 else (),
        )
        for number in range(count)
    ]


RECORDS = some_records(400)
GAPS = [record for record in RECORDS if record.offset % 5 in (1, 3)]


def our_batches() -> dict[str, bytes]:
    batches = {
        codec.name: encode_batch(
            RECORDS,
            base_offset=1000,
            compression=codec,
            producer_id=77,
            producer_epoch=3,
            base_sequence=5,
        )
        for codec in CODECS
    }
    batches["gaps"] = encode_batch(GAPS, base_offset=990, last_offset_delta=500)
    batches["empty"] = encode_batch([], base_offset=7, last_offset_delta=3)
    batches["append time"] = encode_batch(
        RECORDS[:3], base_offset=1000, timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    batches["horizon"] = encode_batch(RECORDS[:3], base_offset=1000, delete_horizon=12345)
    batches["two"] = batches["NONE"] + batches["ZSTD"]
    return batches


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _record_json(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[key, _text(value)] for key, value in record.headers],
    }


def _batch_json(batch: RecordBatch) -> dict[str, Any]:
    horizon = batch.delete_horizon
    append = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "leaderEpoch": batch.leader_epoch,
        "codec": batch.compression.name.lower(),
        "timestampType": "LOG_APPEND_TIME" if append else "CREATE_TIME",
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "transactional": batch.transactional,
        "control": batch.control,
        "deleteHorizon": -1 if horizon is None else horizon,
        "records": [_record_json(record) for record in batch.records],
    }


def _build(codec: Compression) -> Question:
    return {
        "op": "build",
        "codec": codec.name.lower(),
        "baseOffset": 1000,
        "producerId": 77,
        "producerEpoch": 3,
        "baseSequence": 5,
        "leaderEpoch": -1,
        "records": [_record_json(record) for record in RECORDS],
    }


MARKER = {"baseOffset": 10, "timestamp": 123, "producerId": 5, "producerEpoch": 6}
MARKERS = (ControlType.COMMIT, ControlType.ABORT)


def _marker(kind: ControlType) -> Question:
    return MARKER | {"op": "marker", "type": kind.name, "coordinatorEpoch": 7, "leaderEpoch": -1}


def api_versions() -> Iterator[tuple[int, str, int]]:
    for key, api in schemas().apis.items():
        valid = schemas().request(api).valid
        yield from ((key, api, version) for version in range(valid.low, valid.high + 1))


@dataclass(frozen=True)
class Golden:
    messages: list[tuple[MessageCase, Answer]]
    defaults: list[tuple[MessageSpec, int, Answer]]
    headers: list[tuple[int, str, int, Answer]]
    built: dict[Compression, bytes]
    markers: dict[ControlType, bytes]
    read: dict[str, Answer]


@pytest.fixture(scope="module")
def golden() -> Golden:
    cases = [
        message_case(spec, version, number)
        for spec, version in message_versions()
        for number in range(BODIES)
    ]
    calls = list(api_versions())
    batches = our_batches()
    answers = iter(
        java_answers(
            chain(
                (case.question for case in cases),
                ({"op": "default", "name": s.name, "version": v} for s, v in message_versions()),
                ({"op": "headers", "apiKey": k, "version": v} for k, _, v in calls),
                map(_build, CODECS),
                map(_marker, MARKERS),
                ({"op": "read", "bytes": _text(data)} for data in batches.values()),
            )
        )
    )
    return Golden(
        messages=[(case, next(answers)) for case in cases],
        defaults=[(*each, next(answers)) for each in message_versions()],
        headers=[(*call, next(answers)) for call in calls],
        built={codec: base64.b64decode(next(answers)["bytes"]) for codec in CODECS},
        markers={kind: base64.b64decode(next(answers)["bytes"]) for kind in MARKERS},
        read={name: next(answers) for name in batches},
    )


def _bytes(answer: Answer) -> bytes:
    assert "error" not in answer, answer["error"]
    return base64.b64decode(answer["bytes"])


def test_java_writes_and_reads_the_same_bytes_for_every_message_and_version(golden: Golden) -> None:
    different = [
        f"{case.spec.name} v{case.version}: {case.ours.hex()} / {answer}"
        for case, answer in golden.messages
        if "bytes" not in answer or case.ours != base64.b64decode(answer["bytes"])
    ]
    assert different == []
    assert len(golden.messages) == BODIES * len(message_versions())
    assert {spec.name for spec, _ in message_versions()} >= {f"{api}Response" for api in SHARE_APIS}
    for case, answer in golden.messages:
        body = decode(case.spec, case.version, _bytes(answer)).to_dict()
        assert body.pop("_tags", {}) == case.tags
        assert body == case.body, f"{case.spec.name} v{case.version}"


def test_a_message_of_which_nothing_is_said_is_java_s_new_message(golden: Golden) -> None:
    different = [
        f"{spec.name} v{version}: {encode(spec, version, {}).hex()} / {answer}"
        for spec, version, answer in golden.defaults
        if encode(spec, version, {}) != _bytes(answer)
    ]
    assert different == []


def test_frames_have_the_header_versions_that_java_uses(golden: Golden) -> None:
    for _, api, version, answer in golden.headers:
        versions = {
            "request": request_header_version(schemas(), api, version),
            "response": response_header_version(schemas(), api, version),
        }
        assert versions == answer, f"{api} v{version}"


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_a_batch_of_java_is_read_with_all_its_records(golden: Golden, codec: Compression) -> None:
    (batch,) = decode_batches(golden.built[codec])
    assert batch.compression is codec
    assert list(batch.records) == RECORDS
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 3, 5)


def test_an_uncompressed_batch_is_java_s_byte_for_byte(golden: Golden) -> None:
    assert our_batches()["NONE"] == golden.built[Compression.NONE]


@pytest.mark.parametrize("name", sorted(our_batches()))
def test_java_reads_our_batches_as_we_do(golden: Golden, name: str) -> None:
    batches = decode_batches(our_batches()[name])
    assert golden.read[name] == {"batches": [_batch_json(batch) for batch in batches]}


@pytest.mark.parametrize("kind", MARKERS, ids=lambda kind: kind.name.lower())
def test_a_transaction_marker_is_java_s_byte_for_byte(golden: Golden, kind: ControlType) -> None:
    ours = encode_marker(
        kind, producer_id=5, producer_epoch=6, coordinator_epoch=7, base_offset=10, timestamp=123
    )
    assert ours == golden.markers[kind]
    (batch,) = decode_batches(ours)
    assert (batch.control, batch.transactional, batch.producer_epoch) == (True, True, 6)
    assert (batch.markers[0].type, batch.markers[0].coordinator_epoch) == (kind, 7)
