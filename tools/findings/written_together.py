"""Two state writes of one share-partition in one request: finding 051.

The state topic takes records of 1000 bytes at most, so that a state write about many records in
turns fails and a small one does not. The large acknowledgement is sent alone; then, of other
records, while a proxy holds an earlier state write up, and followed by a small one. The
leader sends what has gathered in one request. Exit code 1 if the large one is answered NONE and its
records are given again after the leader has loaded the share-partition anew. One broker. Run it
from a clone.
"""

from __future__ import annotations

import asyncio

from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.cluster import attempts
from fixtures.clients.configs import alter as alter_configs
from fixtures.clients.member import Ack, AckType, Part, accept, each
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.rules import Direction, FrameRule
from fixtures.wire.errors import error_name
from spec.verdict import Undecided
from suites.broker.share import Consumer, Queue, Share
from suites.broker.state import STATE_TOPIC, WRITE
from tools.findings.program import Run, say, stored

MANY, FEW = 200, 10
LIMIT, LARGEST = "max.message.bytes", "1000"
ONCE = 10**9
HELD = 2.0
"""Seconds for which the first state write is held up."""


def told(part: Part) -> str:
    """Return what an acknowledgement was answered."""
    return f"{error_name(part.ack_error)} {part.ack_message or ''}".strip()


async def limit(share: Share) -> None:
    """Let the state topic take small records only."""
    await alter_configs(share.cluster, TOPIC_RESOURCE, STATE_TOPIC, {LIMIT: LARGEST})
    async for _ in attempts():
        if (await share.admin.configs(TOPIC_RESOURCE, STATE_TOPIC))[LIMIT] == LARGEST:
            return


async def holder(queue: Queue, count: int, *, join: bool) -> tuple[Consumer, int, int]:
    """Return a consumer that holds the next so many records, with the first and the last."""
    consumer = await queue.consumer(join=join)
    caught = await consumer.acquire(count, max_records=count, batch_size=1)
    offsets = caught.offsets
    if offsets != list(range(offsets[0], offsets[0] + count)):
        raise Undecided(f"acquired {offsets}")
    return consumer, offsets[0], offsets[-1]


def in_turns(first: int, last: int) -> Ack:
    """Return an acknowledgement that accepts and rejects in turns."""
    pair = (AckType.ACCEPT, AckType.REJECT)
    return each(first, [pair[number % 2] for number in range(last - first + 1)])


async def play(run: Run) -> bool:
    """Play; tell whether an acknowledgement that was answered NONE was not stored."""
    async with run.world() as share:
        total = 2 * (MANY + FEW)
        queue = await share.queue(total, batches=total, lock_ms=60_000)
        start, *_ = await holder(queue, FEW, join=True)
        alone, first, last = await holder(queue, MANY, join=False)
        await limit(share)
        say(f"{first}-{last} in turns, sent alone:", told(await alone.ack(in_turns(first, last))))
        large, first, last = await holder(queue, MANY, join=False)
        small, *few = await holder(queue, FEW, join=False)
        rule = FrameRule(
            apis=frozenset({WRITE}),
            direction=Direction.REQUEST,
            delay=HELD,
            nth=ONCE,
            seen=ONCE - 1,  # the first frame it sees, and no other
        )
        run.frame_proxies.set_rules(run.frame_proxies.listener(1, INTERNAL), rule)
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
