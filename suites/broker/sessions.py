"""What the session checks share: who gets released records, and worlds with several partitions."""

from __future__ import annotations

from fixtures.clients.cluster import WITHIN, attempts
from fixtures.clients.member import Response, Session, Where
from suites.broker.share import Catch, Consumer, Queue


async def taken(consumer: Consumer, *offsets: int, within: float = WITHIN) -> dict[int, int]:
    """Fetch until some offsets are acquired or time is up; return all counts acquired by then."""
    catch = Catch()
    async for _ in attempts(within):
        catch.add(consumer.sound(await consumer.fetch()))
        if set(offsets) <= catch.counts.keys():
            break
    return catch.counts


async def others(queue: Queue, consumer: Consumer) -> dict[int, int]:
    """Return what another consumer can have at once, by the sentinel that is produced last."""
    sentinel = await queue.produce(1, consumer.where[1])
    counts = (await consumer.drain(until=sentinel)).counts
    return {offset: count for offset, count in counts.items() if offset != sentinel}


async def acquired(
    session: Session, *partitions: Where, count: int, within: float = WITHIN, named: bool = True
) -> dict[Where, list[int]]:
    """Fetch from several partitions until ``count`` records are acquired; return them by place.

    The error of a whole fetch ends it, with what was acquired by then.

    Partitions are named in the first of the fetches only, and not at all if not ``named``.
    """
    found: dict[Where, list[int]] = {where: [] for where in partitions}
    names = partitions if named else ()
    async for _ in attempts(within):
        response = await session.fetch(*names)
        for where in partitions:
            found[where] += offsets_in(response, where)
        names = ()
        if response.error or sum(map(len, found.values())) >= count:
            break
    return found


def offsets_in(response: Response, where: Where) -> list[int]:
    """Return the offsets that a response acquired from one partition."""
    part = response.part(where[0].id, where[1])
    return part.offsets if part else []


def error_in(response: Response, where: Where) -> int | None:
    """Return the fetch error of one partition, ``None`` when the response leaves it out."""
    part = response.part(where[0].id, where[1])
    return None if part is None else part.error
