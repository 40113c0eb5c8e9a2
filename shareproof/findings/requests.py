"""Single requests and their answers, and state writes that are sent together."""

import asyncio
from typing import Any

from fixtures.clients.cluster import Cluster, attempts
from fixtures.clients.member import Ack, AckType, Part, accept, each
from fixtures.wire.connection import CallTimeout, Connection
from fixtures.wire.errors import error_name
from fixtures.wire.schema import Schemas
from fixtures.wire.security import Security
from shareproof.findings.program import ONCE, Run, limit_records, say, stored
from spec.verdict import Undecided
from suites.broker.share import Consumer, Queue
from suites.broker.state import STATE_TOPIC, WRITE

LISTENER, PASSWORD = "USERS", "finding"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.users.plain.sasl.jaas.config": f'{MODULE} required user_nobody="{PASSWORD}";',
}
PATIENCE = 10.0  # seconds without a response; the others take milliseconds


async def ask(connection: Connection, api: str, **body: Any) -> bool:
    try:
        response = await connection.call(api, timeout=PATIENCE, **body)
    except CallTimeout:
        say(f"  {api}: no response within {PATIENCE:g} s")
        return False
    say(f"  {api}: a response, error {error_name(getattr(response, 'error_code', 0))}")
    return True


async def answered(cluster: Cluster, users: list[str] | None) -> tuple[bool, bool]:
    say("users", users)
    node = min(cluster.brokers)
    asked, other = await cluster.dial(node), await cluster.dial(node)
    first = await ask(asked, "DescribeUserScramCredentials", users=users)
    say("  the same connection:")
    behind = await ask(asked, "Metadata", topics=[])
    say("  another connection:")
    await ask(other, "Metadata", topics=[])
    return first, behind


async def unanswered_refusal(run: Run) -> bool:
    """A refusal that never comes, and what waits behind it on the connection: finding 070.

    Exit code 1 if the second request gets no response, nor what follows on its connection.
    """
    nobody = Security(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", user="nobody", password=PASSWORD
    )
    info = run.target.info.at(LISTENER, nobody)
    async with Cluster(info, schemas=Schemas.from_jar(info.schema_jar)) as cluster:
        await answered(cluster, [])
        return await answered(cluster, None) == (False, False)


MANY, FEW = 200, 10
LARGEST = "1000"
HELD = 2.0  # seconds for which the first state write is held up


def told(part: Part) -> str:
    return f"{error_name(part.ack_error)} {part.ack_message or ''}".strip()


async def holder(queue: Queue, count: int, *, join: bool) -> tuple[Consumer, int, int]:
    """Return a consumer that holds the next so many records, with the first and the last."""
    consumer = await queue.consumer(join=join)
    caught = await consumer.acquire(count, max_records=count, batch_size=1)
    offsets = caught.offsets
    if offsets != list(range(offsets[0], offsets[0] + count)):
        raise Undecided(f"acquired {offsets}")
    return consumer, offsets[0], offsets[-1]


def in_turns(first: int, last: int) -> Ack:
    pair = (AckType.ACCEPT, AckType.REJECT)
    return each(first, [pair[number % 2] for number in range(last - first + 1)])


async def written_together(run: Run) -> bool:
    """Two state writes of one share-partition in one request: finding 051.

    Exit code 1 if the large one is answered NONE and its records are given again after the leader
    has loaded the share- partition anew.
    """
    async with run.world() as share:
        total = 2 * (MANY + FEW)
        queue = await share.queue(total, batches=total, lock_ms=60_000)
        start, *_ = await holder(queue, FEW, join=True)
        alone, first, last = await holder(queue, MANY, join=False)
        await limit_records(share, STATE_TOPIC, LARGEST)
        say(f"{first}-{last} in turns, sent alone:", told(await alone.ack(in_turns(first, last))))
        large, first, last = await holder(queue, MANY, join=False)
        small, *few = await holder(queue, FEW, join=False)
        rule = run.intercept(WRITE, 1, delay=HELD, once=True)
        tasks = [asyncio.create_task(start.ack(accept(0)))]
        async for _ in attempts():
            if rule.done:
                break
        tasks.append(asyncio.create_task(large.ack(in_turns(first, last))))
        await asyncio.sleep(HELD / 4)  # the large one is to be the first of the two
        tasks.append(asyncio.create_task(small.ack(accept(*few))))
        answers = [told(part) for part in await asyncio.gather(*tasks)]
        say("held up, 0:", answers[0])
        say(f"gathered behind it, {first}-{last} in turns:", answers[1])
        say(f"gathered behind it, {few[0]}-{few[1]}:", answers[2])
        say("state writes in all:", rule.seen - ONCE + 1, "; stored:", await stored(queue))
        for consumer in (start, alone, large, small):
            await consumer.session.connection.close()
        heir = await queue.consumer()
        counts: dict[int, int] = {}
        async for _ in attempts(5.0):
            counts |= (await heir.fetch()).only.counts
        again = sorted(offset for offset in counts if first <= offset <= last)
        say(f"the next member is given {len(again)} of {first}-{last} again")
        await share.disband()
        return answers[1] == "NONE" and bool(again)
