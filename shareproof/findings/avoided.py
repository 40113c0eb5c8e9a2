"""Work-arounds of findings: the steps of each once as they are, and once with what avoids it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fixtures.clients.cluster import attempts
from fixtures.clients.member import accept, reject
from fixtures.clients.transactions import TransactionalProducer
from fixtures.clients.users import BYTE_RATE, REQUEST_SHARE
from fixtures.wire.errors import ErrorCode
from fixtures.wire.records import Compression, encode_batch
from shareproof.findings.offsets import refuse
from shareproof.findings.program import Run, say
from suites.broker.deadletters import boxed, dead_topic, rejecting
from suites.broker.env import Env
from suites.broker.settings import LITTLE, held_to

Steps = Callable[[Run, Env, bool], Coroutine[Any, Any, list[int]]]
PATIENCE = 10.0  # seconds


def tried(steps: Steps) -> Callable[[Run], Coroutine[Any, Any, bool]]:
    """Return a program: the defect is seen if steps return records with the work-around, too."""

    async def play(run: Run) -> bool:
        async with run.open_env() as env:
            plain = await steps(run, env, False)
            say("as it is, these have suffered:", plain or "none")
            avoided = await steps(run, env, True)
            say("with the work-around:", avoided or "none")
        return bool(avoided)

    play.__name__ = steps.__name__
    return play


@tried
async def quotas(_: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 019, and quotas that no fetch reaches: records that nobody was ever given."""
    queue = await env.queue(10, lock_ms=1000)
    payer, other = await queue.consumer(), await queue.consumer(join=False)
    given: set[int] = set()
    limits = {REQUEST_SHARE: 100_000.0, BYTE_RATE: 1e9} if avoided else {REQUEST_SHARE: LITTLE}
    async with held_to(env, payer, **limits):
        async for _left in attempts(PATIENCE, 0.5):
            given.update((await payer.fetch(max_wait_ms=300)).offsets)
    async for _left in attempts(3):
        given.update((await other.fetch()).offsets)
    return sorted({*range(10)} - given)


@tried
async def transactions(_: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 108, and read_uncommitted: records that did not come."""
    level = "read_uncommitted" if avoided else "read_committed"
    queue, former = await env.with_holder(3, group_config={"share.isolation.level": level})
    await former.acked(accept(0, 2))
    async with TransactionalProducer.open(env.cluster) as producer:
        first = await producer.append(queue.topic, 12)
        last = await queue.produce(4) + 3
        await env.admin.delete_records(queue.topic, first + 5)
        await producer.abort()
    await former.depart()
    consumer, given = await queue.consumer(join=False), set[int]()
    async for _left in attempts(PATIENCE):
        given.update((await consumer.fetch()).offsets)
    return sorted({*range(last - 3, last + 1)} - given)


@tried
async def locks(run: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 109, and a lock that outlasts the attempts of a state write: a new record."""
    queue, holder, other = await env.with_pair(
        records=10, batches=10, lock_ms=60_000 if avoided else 1000
    )
    await holder.acquire(5, max_records=5)
    refuse(run, "WriteShareGroupState", 1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pending = asyncio.create_task(holder.ack(reject(0, 4), timeout=90))
    await asyncio.sleep(0.5)  # until the write is under way
    await env.admin.delete_records(queue.topic, 7)
    await other.acquire(3)
    say("the rejection gets", (await pending).ack_error)
    run.let_pass(1)
    await holder.close()
    new, given = await queue.produce(1), set[int]()
    async for _left in attempts(PATIENCE):
        given.update((await other.fetch()).offsets)
    return [] if new in given else [new]


@tried
async def copies(_: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 014, and a topic that takes a whole batch, decompressed: letters without a copy."""
    limit = 1_000_000 if avoided else 20_000
    box = await boxed(
        env, dead=await dead_topic(env, configs={"max.message.bytes": str(limit)}), copy=True
    )
    values = [b"%d " % number + bytes(1000) for number in range(40)]
    await env.admin.append(box.queue.topic, encode_batch(values, compression=Compression.GZIP))
    await rejecting(box, len(values))
    letters = {one.offset: one.record.value for one in await box.arrived(range(len(values)))}
    return [offset for offset, value in enumerate(values) if letters.get(offset) != value]
