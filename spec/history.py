"""The history of a run: what was produced, delivered, acknowledged, seen and broken, and when.

One Arrow schema for each table. A run's directory holds them twice over its life:

* While the run goes on, each process appends to *journals*: Arrow streams that a kill cuts but does
  not spoil. Clients deal in ranges, so three journals hold ranges of offsets: ``produced``,
  ``acquired`` and ``acknowledged``. All other journals look like their tables.
* At its end the journals are *compacted* to Parquet. ``acquired`` and ``acknowledged`` become
  ``deliveries``, one row for each delivery of each record. The tables of ``BUCKETED`` are laid out
  by record: one file for each bucket of logs, sorted, so that an engine which trusts the layout
  brings all that happened to a record together without a shuffle and without a sort.

Numbers stand for names: a *log* is a partition of a topic, a *share-partition* is a log as one
group sees it, and the table ``share_partitions`` says which is which.

All times are nanoseconds on the *run's clock*, the monotonic clock of the process that started the
run. Each process measures how far its own clock is from it, and the table ``clocks`` keeps that
measure together with the wall clock. Times come in pairs, ``sent`` and ``received``: what the
broker did lies between them, and nobody knows where. Other hosts have clocks of their own, which
``host_clocks`` keeps the measures of; times taken there are further apart by the errors of these.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Annotated, NamedTuple, Self, get_type_hints

import pyarrow as pa

SCHEMA = 1
BUCKETS = 8
NEVER = 2**62  # A time that does not come: no response, or no end known
MOST_DELIVERIES = 10  # The highest limit of all releases: so often may a record have come unseen


class Outcome(IntEnum):
    """What came of a request. ``UNKNOWN`` stays so for ever: it may have been carried out."""

    NONE = 0
    OK = 1
    FAILED = 2
    UNKNOWN = 3


class AckType(IntEnum):
    """How a delivery ended for its holder; 1 to 4 are the acknowledge types of the wire."""

    NONE = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    CLOSED = 5


class Transaction(IntEnum):
    """What became of the transaction that a record was produced in."""

    NONE = 0
    COMMITTED = 1
    ABORTED = 2
    OPEN = 3


I8 = Annotated[int, pa.int8()]
I16 = Annotated[int, pa.int16()]
I32 = Annotated[int, pa.int32()]
I64 = Annotated[int, pa.int64()]
Text = Annotated[str, pa.string()]
Flag = Annotated[bool, pa.bool_()]


class Produced(NamedTuple):
    """One batch as its producer sent it; ``first`` is -1 where no response told the offset."""

    log: I32
    first: I64
    records: I32
    producer: I32
    sequence: I64
    crc: I64
    sent: I64
    received: I64
    outcome: I8
    error: I16
    transaction: I8


class Acquired(NamedTuple):
    """Acquired offsets of one response that have consecutive payloads, or none at all."""

    op: I64
    share_partition: I32
    log: I32
    member: I32
    first: I64
    last: I64
    count: I16  # type: ignore[assignment]
    lock_ms: I32
    sent: I64
    acquired: I64
    after: I64
    present: Flag
    producer: I32
    sequence: I64
    crc: I64


class Acknowledged(NamedTuple):
    """What their holder did about offsets that the operation ``op`` acquired."""

    op: I64
    share_partition: I32
    log: I32
    first: I64
    last: I64
    kind: I8
    sent: I64
    received: I64
    outcome: I8
    error: I16


class Operation(NamedTuple):
    """A request and its end; ``waits_ms`` is how long the broker was allowed to think."""

    op: I64
    process: I32
    member: I32
    api: Text
    node: I32
    sent: I64
    received: I64
    max_wait_ms: I32
    outcome: I8
    error: I16


LOG_START = "log start"
"""The phase of a look at where a log begins, and at nothing else; see :class:`ShownOffsets`."""


class ShownOffsets(NamedTuple):
    """What an admin was shown of a share-partition, -1 where nothing was."""

    share_partition: I32
    sent: I64
    received: I64
    spso: I64
    lag: I64
    log_start: I64
    log_end: I64
    leader_epoch: I32
    phase: Text


class Persisted(NamedTuple):
    """A run of offsets in a record of __share_group_state; first -1 where the record has none."""

    share_partition: I32
    position: I64
    snapshot: Flag
    state_epoch: I32
    snapshot_epoch: I32
    leader_epoch: I32
    spso: I64
    first: I64
    last: I64
    state: I8
    count: I16  # type: ignore[assignment]


class SharePartition(NamedTuple):
    """A partition of a topic as one group sees it, and how the group is configured."""

    share_partition: I32
    log: I32
    slot: I16
    group: Text
    topic: Text
    topic_id: Text
    partition: I32
    first: I64
    delivery_limit: I16
    lock_ms: I32
    window: I32
    batch: I32
    committed_only: Flag
    dead_letters: Flag


class MemberEvent(NamedTuple):
    """What became of a member: joined, closed, dropped, left, killed."""

    member: I32
    name: Text
    group: Text
    process: I32
    behaviour: Text
    event: Text
    at: I64


class Reload(NamedTuple):
    """A broker loaded a share-partition again, at some time between the two; -1 may be any broker.

    Nothing can have been delivered before the first load, so that is none of these.
    """

    share_partition: I32
    node: I32
    since: I64
    until: I64
    why: Text


class UnseenResponse(NamedTuple):
    """A fetch whose response nobody saw may have acquired records between the two; one row each."""

    share_partition: I32
    since: I64
    until: I64


class FaultSpan(NamedTuple):
    """What was broken, from when to when, and the probe that saw it hit."""

    fault: I32
    kind: Text
    subject: Text
    since: I64
    until: I64
    proof: Text


class Phase(NamedTuple):
    phase: Text
    since: I64
    until: I64


class DeliveryLimit(NamedTuple):
    """A group's delivery limit was changed at some time between ``since`` and ``until``.

    It was that until somebody began to change it again at ``ends``.
    """

    share_partition: I32
    delivery_limit: I16
    since: I64
    until: I64
    ends: I64


class LockDuration(NamedTuple):
    """Locks may have lasted so long between the two, whatever responses said."""

    share_partition: I32
    lock_ms: I32
    since: I64
    until: I64


class Deletion(NamedTuple):
    """The records of a log below an offset were deleted, certainly if the outcome is OK."""

    log: I32
    before: I64
    sent: I64
    received: I64
    outcome: I8


class SeenDeadLetter(NamedTuple):
    """A record of a dead-letter topic, at its position there."""

    share_partition: I32
    offset: I64
    count: I16  # type: ignore[assignment]
    position: I64
    crc: I64


class ClockMeasure(NamedTuple):
    """By how much the clock of a process was behind the run's, give or take ``within``."""

    process: I32
    at: I64
    wall: I64
    behind: I64
    within: I64


class HostClockMeasure(NamedTuple):
    """The same of a process on another host; ``at`` is on its own clock."""

    process: I32
    at: I64
    behind: I64
    within: I64


ROWS: Mapping[str, type[NamedTuple]] = {
    "produced": Produced,
    "operations": Operation,
    "offsets": ShownOffsets,
    "persisted": Persisted,
    "share_partitions": SharePartition,
    "members": MemberEvent,
    "reloads": Reload,
    "unseen_responses": UnseenResponse,
    "faults": FaultSpan,
    "phases": Phase,
    "limits": DeliveryLimit,
    "locks": LockDuration,
    "deletions": Deletion,
    "dead_letters": SeenDeadLetter,
    "clocks": ClockMeasure,
    "host_clocks": HostClockMeasure,
    "acquired": Acquired,
    "acknowledged": Acknowledged,
}
"""What a row of each journal is."""


def _schema(row: type[NamedTuple]) -> pa.Schema:
    hints = get_type_hints(row, include_extras=True)
    return pa.schema([pa.field(name, hints[name].__metadata__[0]) for name in row._fields])


JOURNALS: Mapping[str, pa.Schema] = {name: _schema(row) for name, row in ROWS.items()}


def _table(columns: str) -> pa.Schema:
    return pa.schema([tuple(column.split(" ")) for column in columns.split(", ")])


TABLES: Mapping[str, pa.Schema] = {
    # A record that somebody produced. Offset -1: no response said where it went. The CRC is that of
    # the record batch as the producer sealed it, -1 where the log may rewrite it.
    "produced": _table(
        "log int32, offset int64, producer int32, sequence int64, crc int64, sent int64, "
        "received int64, outcome int8, error int16, transaction int8"
    ),
    # One delivery of one record to one member. The lock cannot have ended by itself before
    # "holds_until" and must have by "ends_by"; "freed" is when its session began to end, if that
    # came first. "after" is the highest offset that the same response had listed before, or -1.
    # "node" is the broker that responded. "loads_before_fetch" counts the loads of the
    # share-partition by that broker that were certainly over before the fetch was sent, and
    # "loads_by_ack" those that may have begun before the response to the acknowledgement; where
    # they agree, no load came between, and the same state in that broker's memory served both.
    # "unseen_before_fetch" counts likewise the fetches whose responses nobody saw, so that what
    # they acquired is not here, and "unseen_meanwhile" those that may have acquired this very
    # record before, since it was produced. The record was certainly in the log until "kept_until".
    # "in_lock": its only acknowledgement was answered OK certainly inside its lock; of several an
    # earlier one may have ended the delivery, without a response. "proven": it was, with no load of
    # the share-partition possible in between. Brokers respond OK to anything below the start
    # offset, so no other OK says anything, and none does about a record that the log's start may
    # have passed by then.
    # "others_in_response" is how many other records of the share-partition came in the same
    # response. A row also says what it would take a look at its neighbours to know: the "next"
    # columns are those of the delivery of the record to the same group that was seen next, null if
    # there is none, "lowest_after" is the lowest count of all that were seen later, and
    # "highest_before" the highest of all that were seen before. "lowest_beside" is, for the first,
    # the lowest count of those seen later that may have been given out before it, and "overtaken"
    # says that one seen before was fetched later, was given out by a later leader, or that an
    # acknowledgement by its holder may have ended the record, or this delivery, or its session
    # ended while the next one was on its way. "next_loaded" is when the load began whose state the
    # next one's broker had as the fetch was sent, at the latest. "passed_over_s":
    # where the record came again long after it was free, in how many seconds meanwhile records
    # behind it came. "explained", of the first delivery of a record: some order of all that is
    # known of it is legal; null where not enough is known.
    "deliveries": _table(
        "log int32, offset int64, share_partition int32, member int32, op int64, sent int64, "
        "acquired int64, count int16, lock_ms int32, after int64, present bool, producer int32, "
        "sequence int64, crc int64, kind int8, ack_sent int64, ack_received int64, outcome int8, "
        "error int16, attempts int16, renewals int16, freed int64, holds_until int64, "
        "ends_by int64, node int32, loaded int64, loads_before_fetch int32, loads_by_ack int32, "
        "unseen_before_fetch int32, unseen_meanwhile int32, kept_until int64, in_lock bool, "
        "proven bool, others_in_response int32, passed_over_s int32, undisturbed bool, "
        "overtaken bool, highest_before int16, lowest_after int16, lowest_beside int16, "
        "next_op int64, next_sent int64, next_acquired int64, next_count int16, next_node int32, "
        "next_loaded int64, next_loads_before_fetch int32, next_loads_by_acquire int32, "
        "next_unseen_by_acquire int32, next_proven_kind int8, next_ack_sent int64, "
        "next_attempts int16, next_holds_until int64, explained bool"
    ),
    **{
        name: schema
        for name, schema in JOURNALS.items()
        if name not in ("produced", "acquired", "acknowledged")
    },
}

BUCKETED: Mapping[str, tuple[str, ...]] = {
    "produced": ("log", "offset"),
    "deliveries": ("log", "offset", "share_partition", "acquired"),
}
"""Tables laid out by log, and the order of their rows."""

ADDED = ("explained",)
"""The last columns of ``deliveries``, which older histories of this schema lack: null in these."""

OPTIONAL = frozenset(
    name
    for name in TABLES["deliveries"].names
    if name in ADDED or name.startswith(("next_", "highest_", "lowest_"))
)
"""Columns of ``BUCKETED`` that are null where there is no such neighbour; no others ever are."""

TIMES = frozenset({"sent", "received", "acquired", "since", "until", "ends", "at"})
"""Columns of journals that are times, so that they can be brought to the run's clock."""

LATEST = frozenset({"received", "acquired", "until"})
"""Those of ``TIMES`` by which something had happened; the others are before it happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    table: str
    path: str
    rows: int
    size: int
    crc: int
    bucket: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a compacted history consists of.

    ``cut`` names journals whose process did not live to close them, and ``broken`` those that could
    not be read to their last byte: absence from such a history proves nothing. ``clock_error`` is
    by how many nanoseconds the times of other hosts than the leader's may be wrong.
    """

    files: tuple[File, ...]
    cut: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    buckets: int = BUCKETS
    schema: int = SCHEMA
    clock_error: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            raw = json.loads(text)
            if raw["schema"] != SCHEMA:
                raise ValueError(f"history of schema {raw['schema']}, this release reads {SCHEMA}")
            files = tuple(File(**file) for file in raw.pop("files"))
            cut, broken = tuple(raw.pop("cut")), tuple(raw.pop("broken"))
            found = cls(files=files, cut=cut, broken=broken, **raw)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no manifest of a history: {error}") from None
        if wrong := found.wrong():
            raise ValueError(f"no manifest of a history: {wrong}")
        return found

    def wrong(self) -> str:
        if not _is_number(self.buckets, 1):
            return f"{self.buckets!r} buckets"
        if not _is_number(self.clock_error, 0):
            return f"clocks that are wrong by {self.clock_error!r} ns"
        for file in self.files:
            numbers = (file.rows, file.size, file.crc)
            if file.table not in TABLES or not isinstance(file.path, str):
                return f"a file {file.path!r} of a table {file.table!r}"
            if not all(_is_number(number, 0) for number in numbers):
                return f"rows, size or checksum of {file.path}"
            bucketed = file.table in BUCKETED
            if not _is_number(file.bucket, -1) or bucketed != (0 <= file.bucket < self.buckets):
                return f"{file.path} is in bucket {file.bucket!r} of {self.buckets}"
        paths = [file.path for file in self.files]
        return next((f"{path} twice" for path in paths if paths.count(path) > 1), "")


def _is_number(value: object, lowest: int) -> bool:
    return isinstance(value, int) and value >= lowest


def bucket_of(log: int, buckets: int = BUCKETS) -> int:
    """Return the bucket of a log.

    It is the hash that Spark gives an INT column (Murmur3 x86 32, seed 42): files that are named by
    another one would be read as if rows were missing.
    """
    word = _multiply(_rotate(_multiply(log & 0xFFFFFFFF, 0xCC9E2D51), 15), 0x1B873593)
    mixed = (_multiply(_rotate(42 ^ word, 13), 5) + 0xE6546B64) & 0xFFFFFFFF
    mixed ^= 4
    mixed = _multiply(mixed ^ (mixed >> 16), 0x85EBCA6B)
    mixed = _multiply(mixed ^ (mixed >> 13), 0xC2B2AE35)
    mixed ^= mixed >> 16
    return (mixed - 2**32 if mixed >= 2**31 else mixed) % buckets


def log_numbers() -> Iterator[int]:
    """Yield rising numbers for logs that fill the buckets evenly, whatever their hash thinks."""
    number = 0
    while True:
        waiting = set(range(BUCKETS))
        while waiting:
            bucket = bucket_of(number)
            if bucket in waiting:
                waiting.remove(bucket)
                yield number
            number += 1


def _multiply(left: int, right: int) -> int:
    return (left * right) & 0xFFFFFFFF


def _rotate(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & 0xFFFFFFFF
