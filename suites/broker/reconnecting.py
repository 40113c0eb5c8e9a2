"""Consumers that follow a partition from leader to leader, and keep what they received.

Brokers die under them. A response that never came leaves the outcome open: what was acquired comes
back by itself, and what was acknowledged may be settled or not.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from fixtures.clients.cluster import attempts, eventually
from fixtures.clients.member import Ack, Part, accept
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import error_name
from spec.verdict import Undecided
from suites.broker.locks import EARLY
from suites.broker.share import Consumer, Queue

TAKEN_OVER = 30.0
"""Seconds until somebody has taken over from a broker that is gone; a tenth of it is usual.

A broker in good health needs them, too, so they are never cut short.
"""

PATIENCE = 8.0
"""Seconds that one request of a roaming consumer may take; a frozen broker never answers."""


async def located(queue: Queue, within: float = TAKEN_OVER) -> Queue:
    """Return a queue with its present leaders, once none of them is a broker that is away."""
    cluster = queue.share.cluster

    async def ask() -> Queue | None:
        with contextlib.suppress(CallFailed):
            topic = await cluster.topic(queue.topic.name, len(queue.topic.leaders))
            return None if cluster.away.intersection(topic.leaders) else replace(queue, topic=topic)
        return None

    return await eventually(f"leaders of {queue.topic.name}", ask, within)


async def append(queue: Queue, count: int = 1, partition: int = 0) -> int:
    """Append records wherever the partition is led from; return the last batch's first offset.

    A batch whose answer got lost is written again, so that there may be more than asked for.
    """

    async def ask() -> int | None:
        with contextlib.suppress(CallFailed):
            return await (await located(queue)).produce(count, partition)
        return None

    return await eventually(f"producing to {queue.topic.name}-{partition}", ask, TAKEN_OVER)


@dataclass(slots=True)
class ReconnectingConsumer:
    """A consumer of one partition that begins anew, at its present leader, after every error."""

    queue: Queue
    partition: int = 0
    told: list[str] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    at: Consumer | None = None
    until: float = math.inf
    """When the first lock of what is held runs out (monotonic)."""

    async def fetch(self, max_wait_ms: int = 200, max_records: int = 500) -> Part | None:
        """Fetch once; ``None`` when there was no good response."""
        with contextlib.suppress(CallFailed):
            consumer = await self._at_leader()
            asked_at = time.monotonic()
            response = await consumer.fetch(
                max_wait_ms=max_wait_ms, max_records=max_records, timeout=PATIENCE
            )
            if not response.errors:
                self.held |= set(response.offsets)
                if response.offsets and response.lock_ms > 0:
                    self.until = min(self.until, asked_at + response.lock_ms / 1000 * EARLY)
                return response.only
            self.told += [error_name(code) for code in response.errors]
        await self.leave()
        return None

    async def ack(self, *acks: Ack) -> str:
        """Acknowledge what was fetched last; return the result's name, empty if none came."""
        if self.at is None:
            raise Undecided("nothing is held that could be acknowledged")
        with contextlib.suppress(CallFailed):
            part = await self.at.ack(*acks, timeout=4 * PATIENCE)
            if part.ack_error:
                self.told.append(error_name(part.ack_error))
                await self.leave()
            for ack in acks:
                self.held -= set(range(ack.first, ack.last + 1))
            return error_name(part.ack_error)
        await self.leave()
        return ""

    async def finish(self) -> str:
        """Accept everything that is held; return the result's name, empty if none came.

        Raises:
            Undecided: it was refused, and we were so slow that the locks had run out.
        """
        until = self.until
        result = await self.ack(*(accept(offset) for offset in sorted(self.held)))
        if result != "NONE" and time.monotonic() > until:
            raise Undecided(f"the locks ran out before the ACCEPT, which got {result or 'nothing'}")
        self.until = math.inf
        return result

    async def take(self, wanted: Collection[int], within: float = TAKEN_OVER) -> dict[int, int]:
        """Fetch until every wanted offset came or time is up; return the first count of each."""
        seen: dict[int, int] = {}
        async for _ in attempts(within):
            if part := await self.fetch():
                seen = part.counts | seen
            if seen.keys() >= set(wanted):
                break
        return seen

    async def leave(self) -> None:
        """Drop the connection; the next request goes to whoever leads the partition then."""
        if self.at is not None:
            await self.at.session.connection.close()
            self.at = None
            self.held.clear()
            self.until = math.inf

    async def _at_leader(self) -> Consumer:
        if self.at is None:
            self.queue = await located(self.queue)
            self.at = await self.queue.consumer(self.partition, join=False)
        return self.at
