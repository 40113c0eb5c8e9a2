"""Time in checks: watching when locked records come back, without ever sleeping.

A lock is judged from both sides. It may not end before its duration has passed since the request
that took it was sent, and it has to have ended a generous while after the response. Between the two
lies all the slowness of machines, which proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fixtures.clients.cluster import RETRIABLE, WITHIN, attempts
from spec.verdict import Stalled, Undecided
from suites.broker.share import BYSTANDING, Consumer, Queue, Share, goes_on

SLACK = 15.0
"""Seconds after a lock's end by which the record has to be available again."""

EARLY = 0.95
"""Share of a lock's duration that has to pass in any case; the rest is for timers' ticks."""

RENEW_ONLY = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
"""What a ShareFetch that renews has to carry (KIP-1222)."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The first delivery of an offset that a watch saw: when (monotonic) and its count."""

    at: float
    count: int


async def comes_again(consumer: Consumer, wanted: Collection[int], lock_ms: int) -> dict[int, int]:
    """Return the counts with which offsets come, freed at once or only when their lock is over.

    Raises:
        Undecided: some did not come, which says nothing of how deliveries are counted.
    """
    seen = await watch(consumer, wanted, lock_ms / 1000 + SLACK)
    if missing := sorted(set(wanted) - seen.keys()):
        raise Undecided(f"offsets {missing} did not come though their lock of {lock_ms} ms is over")
    return {offset: seen[offset].count for offset in wanted}


async def watch(
    consumer: Consumer, wanted: Iterable[int], within: float, **options: int
) -> dict[int, Sighting]:
    """Fetch until every wanted offset came or ``within`` seconds are over; return all that came.

    Unlike :meth:`Consumer.acquire` it leaves the judgement of what is missing to the check, and it
    sits out the errors that a new leader answers for a moment.

    Raises:
        Undecided: some did not come, and a bystander on the same broker got nothing either.
    """
    missing = set(wanted)
    seen: dict[int, Sighting] = {}
    async for left in attempts(within):
        wait = max(1, min(500, int(left * 1000)))
        response = await consumer.fetch(**({"max_wait_ms": wait} | options))
        if response.only.error in RETRIABLE:
            continue
        consumer.sound(response)
        for offset, count in response.only.counts.items():
            seen.setdefault(offset, Sighting(time.monotonic(), count))
        missing -= seen.keys()
        if not missing:
            break
    if missing and within >= BYSTANDING:
        node = consumer.where[0].leaders[consumer.where[1]]
        if not await goes_on(consumer.member.cluster, node):
            raise Undecided(f"{sorted(missing)} did not come, nor did the record of a bystander")
    return seen


async def linger(consumer: Consumer, seconds: float) -> None:
    """Let time pass as a consumer does: in a fetch that finds nothing.

    Raises:
        Undecided: records came, which the check's set-up should have made impossible.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        response = consumer.sound(await consumer.fetch(max_wait_ms=max(1, int(left * 1000))))
        if response.offsets:
            raise Undecided(f"{response.offsets} came while nothing should have been available")


def in_time(since: float, lock_ms: int) -> None:
    """Demand of ourselves that a lock taken after ``since`` still ran until now.

    Raises:
        Undecided: we were too slow, so that an expired lock would explain whatever was answered.
    """
    if time.monotonic() - since > lock_ms / 1000 * EARLY:
        raise Undecided(f"the harness needed longer than the lock's {lock_ms} ms for its part")


async def two_partitions(share: Share, records: int, lock_ms: int) -> Queue:
    """Return a queue for :func:`outlast`: two partitions with one leader, records in the first."""
    node = min(share.cluster.brokers)
    return await share.queue(records, assignments=[[node], [node]], lock_ms=lock_ms)


async def outlast(queue: Queue, lock_ms: int) -> None:
    """Wait until every lock that partition 0 gave before now has run out, taking none of them.

    A record of partition 1 is acquired now, from the same broker: when that one is available again,
    the earlier locks are over too, however slow the broker's clock and ours.
    """
    offset = await queue.produce(1, partition=1)
    holder = await queue.consumer(1, join=False)
    await holder.acquire(1)
    other = await queue.consumer(1, join=False)
    if offset not in await watch(other, [offset], lock_ms / 1000 + SLACK):
        raise Stalled("the lock of the sentinel on partition 1 never ran out")


async def reconfigure(
    queue: Queue, consumer: Consumer, lock_ms: int, **configs: str | None
) -> None:
    """Change group configs of a live group and wait until the partition's leader goes by them.

    The lock duration is changed along with them, to a value not used before, because a fetch shows
    it: a broker describes configs a moment before it acts on them. The fetch asks for no records.
    """
    wanted = {"share.record.lock.duration.ms": str(lock_ms)}
    wanted |= {name.replace("_", "."): value for name, value in configs.items()}  # type: ignore[misc]
    await queue.share.admin.group_config(queue.group, wanted)
    async for _ in attempts(WITHIN):
        response = consumer.sound(await consumer.fetch(max_records=0, max_wait_ms=0))
        if response.lock_ms == lock_ms:
            return
    raise Undecided(f"the leader did not go by a lock duration of {lock_ms} ms")
