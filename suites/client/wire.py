"""What the tap saw, in the words of the rules: what was acquired, what was acknowledged and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import UUID

from fixtures.clients.member import AckType
from fixtures.hostile.changes import parts
from fixtures.proxies.exchange import Exchange

SHARE = ("ShareFetch", "ShareAcknowledge")
HEARTBEAT = "ShareGroupHeartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """One offset that a response said was acquired."""

    topic_id: UUID
    partition: int
    offset: int
    count: int
    by: Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked:
    """One offset that a request acknowledged. ``error`` is what the client was answered about it.

    It is None if there was no response, or none about this partition.
    """

    topic_id: UUID
    partition: int
    offset: int
    kind: int
    error: int | None
    by: Exchange

    def __str__(self) -> str:
        return (
            f"{AckType(self.kind).name} of offset {self.offset} by {self.by.api} "
            f"#{self.by.number} at session epoch {self.by.request['share_session_epoch']}"
        )


def acquired(exchanges: Iterable[Exchange]) -> list[Acquired]:
    """Return what share fetches brought, in the order of the responses."""
    found = []
    for one in exchanges:
        for topic_id, part in _parts(one.response):
            for acquired_range in part.get("acquired_records") or []:
                first, last = acquired_range["first_offset"], acquired_range["last_offset"]
                found += [
                    Acquired(
                        topic_id=topic_id,
                        partition=part["partition_index"],
                        offset=offset,
                        count=acquired_range["delivery_count"],
                        by=one,
                    )
                    for offset in range(first, last + 1)
                ]
    return found


def acked(exchanges: Iterable[Exchange]) -> list[Acked]:
    """Return every acknowledgement that was sent, in order."""
    return [ack for one in exchanges for ack in _acked(one)]


def _acked(one: Exchange) -> Iterator[Acked]:
    # Of a fetch the partition's own error is about its records. What is not set is 0 on the wire.
    error = "acknowledge_error_code" if one.api == "ShareFetch" else "error_code"
    answered = {
        (topic_id, part["partition_index"]): part.get(error, 0)
        for topic_id, part in _parts(one.response)
    }
    top = (one.response or {}).get("error_code")
    for topic in one.request["topics"] or []:
        for part in topic["partitions"]:
            place = topic["topic_id"], part["partition_index"]
            for batch in part["acknowledgement_batches"] or []:
                kinds = batch["acknowledge_types"]
                for index, offset in enumerate(
                    range(batch["first_offset"], batch["last_offset"] + 1)
                ):
                    yield Acked(
                        topic_id=place[0],
                        partition=place[1],
                        offset=offset,
                        kind=kinds[index] if len(kinds) > 1 else kinds[0],
                        error=top or answered.get(place),
                        by=one,
                    )


def _parts(body: dict[str, Any] | None) -> Iterator[tuple[UUID, dict[str, Any]]]:
    for topic in (body or {}).get("responses") or []:
        for part in topic["partitions"]:
            yield topic["topic_id"], part


def carries_acks(one: Exchange) -> bool:
    """Tell whether a request acknowledges anything."""
    return any(part["acknowledgement_batches"] for part in parts(one.request))


def named(one: Exchange) -> set[tuple[UUID, int]]:
    """Return the partitions that a request names."""
    return {
        (topic["topic_id"], part["partition_index"])
        for topic in one.request["topics"] or []
        for part in topic["partitions"]
    }


def forgotten(one: Exchange) -> set[tuple[UUID, int]]:
    """Return the partitions that a fetch forgets."""
    return {
        (topic["topic_id"], index)
        for topic in one.request.get("forgotten_topics_data") or []
        for index in topic["partitions"]
    }


def hasty(exchanges: Iterable[Exchange], pause: float = 0.05) -> int:
    """Return how many times in a row a scripted answer was followed by an attempt at once.

    That tells who loops without a pause, also where the machine is too slow for a flood.
    """
    most = row = 0
    for before, after in pairwise(exchanges):
        at_once = bool(before.scripted) and after.sent - before.responded < pause
        row = row + 1 if at_once else 0
        most = max(most, row)
    return most


def busiest(exchanges: Iterable[Exchange], seconds: float = 1.0) -> int:
    """Return the most requests that were sent within any span of ``seconds``."""
    times = sorted(one.sent for one in exchanges)
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] > seconds:
            start += 1
        most = max(most, end - start + 1)
    return most
