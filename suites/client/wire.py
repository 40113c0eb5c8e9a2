"""What the tap saw, in the words of the rules: what was acquired, what was acknowledged and how.

And in one line for each exchange, for findings and for whoever tries a program by hand.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from uuid import UUID

from fixtures.clients.member import AckType
from fixtures.hostile.changes import parts
from fixtures.proxies.exchange import Body, Exchange
from fixtures.wire.errors import error_name

Place = tuple[UUID, int]  # Topic id and partition.
SHARE = ("ShareFetch", "ShareAcknowledge")
HEARTBEAT = "ShareGroupHeartbeat"
_LONGEST = 100_000
_EPOCH = re.compile(r"share_session_epoch \d+")
# Fields that a line does not show; nor does it what is zero, empty or usual.
_LEFT_OUT = re.compile(
    "group_id|member_id|rack_id|error_message|throttle_time_ms|heartbeat_interval_ms|max_wait_ms|"
    "min_bytes|max_bytes|max_records|batch_size|acquisition_lock_timeout_ms|cluster_id|key_type|"
    "controller_id|include_(cluster|topic)_authorized_operations|allow_auto_topic_creation"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    topic_id: UUID
    partition: int
    offset: int
    count: int
    by: Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked:
    topic_id: UUID
    partition: int
    offset: int
    kind: int
    error: int | None  # What was answered; None if nothing was about this partition.
    by: Exchange

    def __str__(self) -> str:
        return (
            f"{AckType(self.kind).name} of offset {self.offset} by {self.by.api} "
            f"#{self.by.number} at session epoch {self.by.request['share_session_epoch']}"
        )


def acquired(exchanges: Iterable[Exchange]) -> list[Acquired]:
    return [
        Acquired(
            topic_id=topic_id,
            partition=part["partition_index"],
            offset=offset,
            count=each["delivery_count"],
            by=one,
        )
        for one in exchanges
        for topic_id, part in answers(one.response)
        for each in part.get("acquired_records") or []
        for offset in offsets(each)
    ]


def offsets(batch: Body) -> range:
    """Return the offsets of a range of acquired records, or of acknowledgements.

    Only scripts make long ones, of which clients make long ones; the end of these is left out.
    """
    first, last = batch["first_offset"], batch["last_offset"]
    return range(first, min(last, first + _LONGEST) + 1)


def acked(exchanges: Iterable[Exchange]) -> list[Acked]:
    return [ack for one in exchanges for ack in _acked(one)]


def _acked(one: Exchange) -> Iterator[Acked]:
    # Of a fetch the partition's own error is about its records. What is not set is 0 on the wire.
    error = "acknowledge_error_code" if one.api == "ShareFetch" else "error_code"
    answered = {
        (topic_id, part["partition_index"]): part.get(error, 0)
        for topic_id, part in answers(one.response)
    }
    top = (one.response or {}).get("error_code")
    for topic in one.request["topics"] or []:
        for part in topic["partitions"]:
            place = topic["topic_id"], part["partition_index"]
            for batch in part["acknowledgement_batches"] or []:
                kinds, first = batch["acknowledge_types"], batch["first_offset"]
                for offset in offsets(batch):
                    yield Acked(
                        topic_id=place[0],
                        partition=place[1],
                        offset=offset,
                        kind=kinds[offset - first] if len(kinds) > 1 else kinds[0],
                        error=top or answered.get(place),
                        by=one,
                    )


def answers(body: Body | None) -> Iterator[tuple[UUID, Body]]:
    for topic in (body or {}).get("responses") or []:
        for part in topic["partitions"]:
            yield topic["topic_id"], part


def carries_acks(one: Exchange) -> bool:
    return any(part["acknowledgement_batches"] for part in parts(one.request))


def named(one: Exchange) -> set[Place]:
    return {
        (topic["topic_id"], part["partition_index"])
        for topic in one.request["topics"] or []
        for part in topic["partitions"]
    }


def forgotten(one: Exchange) -> set[Place]:
    return _indexes(one.request.get("forgotten_topics_data"))


def assigned(heartbeats: Iterable[Exchange]) -> set[Place]:
    assignments = [(one.response or {}).get("assignment") or {} for one in heartbeats]
    return {place for each in assignments for place in _indexes(each.get("topic_partitions"))}


def _indexes(topics: list[Body] | None) -> set[Place]:
    return {(topic["topic_id"], index) for topic in topics or [] for index in topic["partitions"]}


def by_session(exchanges: Iterable[Exchange]) -> list[list[Exchange]]:
    found: dict[tuple[str, int], list[list[Exchange]]] = defaultdict(list)
    for one in exchanges:
        sessions = found[one.request["member_id"], one.node]
        if one.request["share_session_epoch"] == 0 or not sessions:
            sessions.append([])
        sessions[-1].append(one)
    return [session for sessions in found.values() for session in sessions]


def hasty(
    exchanges: Iterable[Exchange],
    pause: float = 0.05,
    failed: Callable[[Body | None], object] = lambda _: True,
) -> int:
    """Return how many times in a row a scripted answer that ``failed`` was followed at once.

    That tells who loops without a pause, also where the machine is too slow for a flood.
    """
    most = row = 0
    for before, after in pairwise(exchanges):
        at_once = before.scripted and after.sent - before.responded < pause
        row = row + 1 if at_once and failed(before.response) else 0
        most = max(most, row)
    return most


def busiest(exchanges: Iterable[Exchange], seconds: float = 1.0) -> int:
    times = sorted(one.sent for one in exchanges)
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] > seconds:
            start += 1
        most = max(most, end - start + 1)
    return most


def lines(exchanges: Iterable[Exchange]) -> Iterator[str]:
    """Yield one line for each exchange: the seconds since the first one, and what was said.

    A row that only its epochs tell apart has one line more.
    """
    began: float | None = None
    for _, row in groupby(map(_described, exchanges), lambda each: _EPOCH.sub("", each[1])):
        (first, sentence), *more = row
        began = first if began is None else began
        yield f"{first - began:7.3f}  {sentence}"
        if more:
            yield f"{more[-1][0] - began:7.3f}  the same, {len(more)} times more"


def _described(one: Exchange) -> tuple[float, str]:
    fine = ", ".join(_fields(one.response or {})) or "fine"
    response = "never answered" if one.response is None else fine
    scripted = f"   [script: {one.scripted}]" if one.scripted else ""
    asked = ", ".join(_fields(one.request))
    return one.sent, f"broker {one.node}  {one.api} v{one.version} {asked} → {response}{scripted}"


def _fields(body: Body) -> Iterator[str]:
    for name, value in body.items():
        if name in {"topics", "responses", "topic_partitions"}:
            yield from _topics(value or [])
        elif name == "assignment":
            found = ", ".join(_topics((value or {}).get("topic_partitions") or []))
            yield from [f"assigned {found or 'nothing'}"] if value is not None else []
        elif name == "forgotten_topics_data":
            yield from (f"forgets {told}" for told in _topics(value or []))
        elif name == "coordinators":
            yield from (f"broker {found['node_id']}{_error(found)}" for found in value)
        elif name == "error_code":
            yield from [error_name(value)] if value else []
        elif name == "share_session_epoch" or (
            value and not _LEFT_OUT.fullmatch(name) and not isinstance(value, (dict, list, bytes))
        ):
            yield f"{name} {value}"


def _topics(topics: Iterable[Body]) -> Iterator[str]:
    for topic in topics:
        known = str(topic["topic_id"])[:8] if (topic.get("topic_id") or UUID(int=0)).int else ""
        name = " ".join(filter(None, (topic.get("name"), known)))
        if not topic.get("partitions"):
            yield f"{name}{_error(topic)}"
        for part in topic.get("partitions") or []:
            yield f"{name}-{_part(part)}"


def _part(part: Body | int) -> str:
    if isinstance(part, int):
        return str(part)
    told = [str(part["partition_index"]) + _error(part)]
    if part.get("acknowledge_error_code"):
        told.append(f"acknowledging: {error_name(part['acknowledge_error_code'])}")
    for batch in part.get("acknowledgement_batches") or []:
        kinds = "+".join(AckType(kind).name for kind in batch["acknowledge_types"])
        told.append(f"{kinds} of {batch['first_offset']}-{batch['last_offset']}")
    for found in part.get("acquired_records") or []:
        count = found["delivery_count"]
        told.append(f"acquired {found['first_offset']}-{found['last_offset']}, delivery {count}")
    leader = part.get("current_leader") or {}
    if leader.get("leader_id", -1) >= 0:
        told.append(f"hint: broker {leader['leader_id']} with epoch {leader['leader_epoch']}")
    return " ".join(told)


def _error(body: Body) -> str:
    return f" {error_name(body['error_code'])}" if body.get("error_code") else ""
