"""State writes that come late: what was promised meanwhile holds, under the next leader, too.

A leader repeats a state write that failed for up to half a minute. Others are stored in between,
and what the client was told of those has to outlive the one that comes last.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fixtures.clients.cluster import attempts
from fixtures.clients.member import accept, release
from spec.verdict import Undecided
from suites.broker.failover.in_sync import demand, in_force
from suites.broker.failover.stage import Stage
from suites.broker.roaming import Roamer, located
from suites.broker.share import Catch, Consumer, Queue
from suites.broker.stored import ACKNOWLEDGED, AVAILABLE, read_state, write_state
from suites.judge import Judge

LOCK_MS = 4000
RECORDS = 5
REPEATED_FOR = 20.0
"""Seconds in which a write that failed is repeated a few times: after one, two, four seconds."""

FAILING_FOR = 8.5
"""Seconds in which a write fails that is to come late."""


@contextlib.asynccontextmanager
async def _short_of_replicas(stage: Stage, away: int, *, wanted: bool) -> AsyncIterator[None]:
    """Have no state write succeed for as long as the block runs, if that is wanted."""
    if not wanted:
        yield
        return
    before = await demand(stage, "3")
    try:
        await in_force(stage, "3")
        await stage.stop(away)
        yield
    finally:
        await demand(stage, before)
        await in_force(stage, before)


async def _taken_over(queue: Queue, first: Consumer, times: int) -> list[Consumer]:
    """Let records time out under one consumer after the other; their counts are 1, 2 and so on."""
    consumers = [first]
    for count in range(2, times + 1):
        consumer = await queue.consumer(join=False)
        _demand_counts(await consumer.acquire(RECORDS), count)
        consumers.append(consumer)
    return consumers


def _demand_counts(catch: Catch, count: int) -> None:
    if catch.counts != dict.fromkeys(range(1, RECORDS + 1), count):
        raise Undecided(f"delivery counts are not all {count}: {catch.counts}")


@pytest.mark.draft("in its outage nobody can fetch, and without one it shows little")
@pytest.mark.requirement("COO-36")
@pytest.mark.timeout(150)
@pytest.mark.parametrize("outage", [False, True], ids=["calm", "outage"])
async def test_late_write_of_an_ended_lock(stage: Stage, judge: Judge, outage: bool) -> None:
    """COO-36: What is stored late of an ended lock takes no later acceptance back."""
    away = await stage.victim()
    leader, other = stage.share.rng.sample([n for n in stage.nodes if n != away], 2)
    queue = await stage.queue(leader, other, state=other, group=leader, lock_ms=LOCK_MS)
    first = await queue.consumer()
    # The state is loaded and stored while it can be. A write that is under way when the replicas go
    # is appended and not committed, and all reads of the coordinator wait behind it.
    before = await queue.produce(1)
    await first.drain(until=before)
    await first.acked(accept(before))
    async with _short_of_replicas(stage, away, wanted=outage):
        await queue.produce(RECORDS)
        _demand_counts(await first.acquire(RECORDS), 1)
        # Each lock that ends is a state write. With the last connection of the group the leader
        # forgets the share-partition, and the next consumer gets what is stored.
        for consumer in await _taken_over(queue, first, 3):
            await consumer.depart()
        # Who joins an empty group waits for state writes of its coordinator; who fetches does not.
        last = await queue.consumer(join=False)
        caught = await last.acquire(RECORDS)
        if outage:
            _demand_counts(caught, 1)
    await last.acked(accept(1, RECORDS))

    taken_back: list[int] = []
    async for _ in attempts(REPEATED_FOR if outage else 1.0):
        state = await read_state(queue)
        available = [b for b in state.state_batches if b.delivery_state == AVAILABLE]
        taken_back = [o for b in available for o in range(b.first_offset, b.last_offset + 1)]
        if taken_back:
            break
    await stage.led_by(queue.topic.name, 0, other)
    sentinel = await (await located(queue)).produce(1)
    seen = await Roamer(await located(queue)).take([sentinel])

    again = sorted(seen.keys() - {sentinel})
    told = f"delivered again after an ACCEPT was answered NONE, stored as available: {taken_back}"
    judge.equal("COO-36", [], again, told)
    judge.saw("COO-36", accepted=RECORDS, outages=int(outage))


@pytest.mark.requirement("COO-38")
@pytest.mark.timeout(150)
async def test_late_write_of_an_acknowledgement(stage: Stage, judge: Judge) -> None:
    """COO-38: An acknowledgement that is stored late takes none back that were stored before."""
    away = await stage.victim()
    leader, other = stage.share.rng.sample([n for n in stage.nodes if n != away], 2)
    queue = await stage.queue(leader, other, state=other, group=leader)
    await queue.produce(30, batches=30)
    one, two = await queue.consumer(), await queue.consumer(join=False)
    ten = {"max_records": 10, "batch_size": 1}
    first = (await one.acquire(10, **ten)).offsets
    second = (await two.acquire(10, **ten)).offsets
    third = (await one.acquire(10, **ten)).offsets
    if [*first, *second, *third] != list(range(30)):
        raise Undecided(f"acquired {first}, {second} and {third}")

    async with _short_of_replicas(stage, away, wanted=True):
        late = asyncio.create_task(two.ack(accept(second[0], second[-1]), timeout=60.0))
        # A write that fails is tried again after about 1, 3, 7 and 15 seconds. Of these gaps the
        # last is long enough for two acknowledgements on a busy machine.
        await asyncio.wait({late}, timeout=FAILING_FOR)
    await one.acked(accept(first[0], first[-1]))
    await one.acked(accept(third[0], third[-1]))
    before = int((await read_state(queue)).start_offset)
    if late.done():
        raise Undecided("the write that was to be late was not")
    last = await late
    after = int((await read_state(queue)).start_offset)

    judge.holds("COO-38", after >= before, f"the stored start offset went from {before} to {after}")
    await stage.led_by(queue.topic.name, 0, other)
    sentinel = await (await located(queue)).produce(1)
    seen = await Roamer(await located(queue)).take([sentinel])
    promised = {*first, *third, *(() if last.ack_error else second)}
    again = sorted(seen.keys() & promised)
    judge.equal("COO-38", [], again, "delivered again after an ACCEPT was answered NONE")
    judge.saw("COO-38", accepted=len(promised))


@pytest.mark.requirement("COO-37")
@pytest.mark.timeout(90)
@pytest.mark.parametrize("stored", [False, True], ids=["calm", "unanswered"])
async def test_release_after_an_acceptance_that_failed(
    stage: Stage, judge: Judge, stored: bool
) -> None:
    """COO-37: A record that is released after its acceptance failed is delivered again."""
    leader, other = stage.share.rng.sample(stage.nodes, 2)
    queue = await stage.queue(leader, other)
    await queue.produce(RECORDS)
    consumer = await queue.consumer()
    await consumer.acquire(RECORDS)
    if stored:
        # What is left of an ACCEPT whose state writes are carried out and whose answers are all
        # lost: the client is told that it failed, and has the records still.
        await write_state(queue, 0, [(1, 3, ACKNOWLEDGED, 1)])
    await consumer.acked(release(1, 3))

    await stage.led_by(queue.topic.name, 0, other)
    sentinel = await (await located(queue)).produce(1)
    seen = await Roamer(await located(queue)).take([sentinel])

    missing = sorted({1, 2, 3} - seen.keys())
    judge.equal("COO-37", [], missing, "never delivered after a RELEASE was answered NONE")
    judge.saw("COO-37", released=3, acceptances_without_an_answer=int(stored))
