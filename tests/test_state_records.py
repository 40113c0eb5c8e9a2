"""Records of the state topic: read from bytes as a share coordinator writes them."""

from __future__ import annotations

import uuid

import pytest

from fixtures.machine.maven import clients_jar, coordinator_jar
from fixtures.wire.codec import WireError, encode
from fixtures.wire.placing import partition_of
from fixtures.wire.records import Record
from fixtures.wire.schema import Schemas
from fixtures.wire.state_records import SNAPSHOT, UPDATE, decode_state, encode_value
from spec.model.durable import StateBatch
from spec.model.release import NEWEST
from suites.broker.state import as_model, replayed
from tests.release import RELEASE

TOPIC = uuid.UUID(int=7)
BATCH = {"first_offset": 3, "last_offset": 5, "delivery_state": 2, "delivery_count": 1}


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    """The record definitions of the newest release."""
    clients = clients_jar(RELEASE)
    return Schemas.from_jar(coordinator_jar(clients))


def written(schemas: Schemas, kind: str, **fields: object) -> Record:
    """Return a record as a share coordinator writes it; without fields it is a tombstone."""
    key = {"group_id": "g:1", "topic_id": TOPIC, "partition": 4}
    prefix = bytes([0, 0 if kind == SNAPSHOT else 1])
    value = encode(schemas.message(f"{kind}Value"), 0, fields)
    return Record(
        offset=9,
        key=prefix + encode(schemas.message(f"{kind}Key"), 0, key),
        value=b"\0\0" + value if fields else None,
    )


@pytest.mark.parametrize("kind", [SNAPSHOT, UPDATE])
def test_record_comes_back_as_it_was(schemas: Schemas, kind: str) -> None:
    record = written(schemas, kind, snapshot_epoch=2, start_offset=3, state_batches=[BATCH])

    state = decode_state(record, schemas)

    assert (state.kind, state.group, state.topic_id, state.partition) == (kind, "g:1", TOPIC, 4)
    assert encode_value(state, schemas) == record.value
    assert as_model(state).batches == (StateBatch(3, 5, 2, 1),)
    assert (as_model(state).state_epoch is None) == (kind == UPDATE)


def test_tombstone_ends_the_state(schemas: Schemas) -> None:
    snapshot = decode_state(written(schemas, SNAPSHOT, start_offset=3), schemas)
    tombstone = decode_state(written(schemas, SNAPSHOT), schemas)

    kept = replayed([snapshot], NEWEST)

    assert kept is not None
    assert kept.start == 3
    assert tombstone.tombstone
    assert replayed([snapshot, tombstone], NEWEST) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\x07abc", b"\0\0"])
def test_other_records_are_refused(schemas: Schemas, key: bytes | None) -> None:
    with pytest.raises(WireError):
        decode_state(Record(key=key, value=b"x"), schemas)


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("abc", 96354), ("polygenelubricants", 0), ("Grüße", 69215351)]
)
def test_hash_is_that_of_java(text: str, code: int) -> None:
    assert partition_of(text, 2**31) == code
