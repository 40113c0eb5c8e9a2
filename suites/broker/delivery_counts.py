"""Leading records to a given delivery, and what a broker makes of batches on the way there."""

from __future__ import annotations

from collections.abc import Iterable

from fixtures.clients.cluster import WITHIN, attempts
from fixtures.clients.member import Ack, Range, release
from suites.broker.share import Catch, Consumer, Queue, Share


async def delivery_limit(share: Share) -> int:
    """Return the cluster's delivery limit; 5 where a broker does not tell (KIP-932)."""
    configs = await share.admin.broker_configs()
    return int(configs.get("group.share.delivery.count.limit") or 5)


def releases(ranges: Iterable[Range]) -> list[Ack]:
    """Return acknowledgements that release ranges just as they were acquired."""
    return [release(acquired.first, acquired.last) for acquired in ranges]


async def hold_at(consumer: Consumer, count: int, delivery: int, within: float = WITHIN) -> None:
    """Let ``count`` records be delivered and released until all are held on their nth delivery.

    Each record is held as soon as it is there. So it does not matter in which pieces they come: a
    broker may hand out ever smaller ones as records near the limit (KAFKA-17541).

    Raises:
        Stalled: they did not all get there, and nothing came any more.
        Undecided: they did not all get there.
    """
    held: set[int] = set()
    async for _ in attempts(within, pause=0.001):
        response = consumer.sound(await consumer.fetch())
        early = [r for r in response.only.ranges if r.count < delivery]
        held |= {o for r in response.only.ranges if r.count >= delivery for o in r.offsets}
        if early:
            await consumer.acked(*releases(early))
        if len(held) >= count:
            return
    raise await consumer.stopped(
        f"only {sorted(held)} were held on delivery {delivery}, not {count} records"
    )


async def sentinel_only(queue: Queue, consumer: Consumer) -> tuple[list[int], Catch]:
    """Produce a record and drain until it comes; return it alone, expected, and what came."""
    offset = await queue.produce(1)
    return [offset], await consumer.drain(until=offset)


def ladder(limit: int, size: int) -> list[int]:
    """Return how many of ``size`` records each delivery hands out when all are released each time.

    From max(2, ceil(limit / 2)) earlier deliveries on it is half as many as before, and on the last
    delivery one record. With a limit of 2 there is nothing between the first and the last.
    """
    sizes = []
    for earlier in range(limit):
        if limit > 2 and earlier >= max(2, -(-limit // 2)):
            size = 1 if earlier == limit - 1 else max(1, size // 2)
        sizes.append(size)
    return sizes


async def descend(consumer: Consumer, deliveries: int) -> list[int]:
    """Fetch and release that many times; return how many records each delivery brought.

    A delivery that does not come counts as none and is the last one.
    """
    sizes: list[int] = []
    for _ in range(deliveries):
        ranges: tuple[Range, ...] = ()
        async for _left in attempts(WITHIN):
            ranges = consumer.sound(await consumer.fetch(max_records=1000)).only.ranges
            if ranges:
                break
        sizes.append(sum(len(acquired.offsets) for acquired in ranges))
        if not ranges:
            break
        await consumer.acked(*releases(ranges))
    return sizes
