"""Acknowledgements that are under way while their topic is deleted: finding 046.

In the scenario ``held`` (one broker) a proxy holds a state write up for three seconds, and
the topic is deleted meanwhile. In ``race`` (three brokers, no proxies) several groups acknowledge
record after record of many partitions until they are told that the topic is gone, ten times. Each
result is shown with how often it came. Exit code 1 if UNKNOWN_SERVER_ERROR is among them.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from fixtures.clients.cluster import attempts
from fixtures.clients.member import Member, Session, accept
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.rules import Direction, FrameRule
from fixtures.wire.errors import error_name
from suites.broker.share import Queue, Share
from suites.broker.state import WRITE
from tools.findings.program import Run, say

SERVER_ERROR = "UNKNOWN_SERVER_ERROR"
ROUNDS, GROUPS, PARTITIONS, RECORDS = 10, 4, 12, 400

Results = Counter[str]


async def held(share: Share, proxies: FrameProxies) -> Results:
    """Delete the topic while a state write is on its way."""
    queue = await share.queue(2, batches=2, lock_ms=60_000)
    consumer = await queue.consumer()
    await consumer.acquire(2)
    apis = frozenset({WRITE})
    rule = FrameRule(apis=apis, direction=Direction.REQUEST, delay=3.0)
    proxies.set_rules(proxies.listener(1, INTERNAL), rule)
    acking = asyncio.create_task(consumer.ack(accept(0), timeout=60.0))
    async for _ in attempts():
        if rule.done:
            break
    say("ACCEPT 0 is sent, and its state write on its way")
    await share.admin.delete_topics(queue.topic.name)
    say("DeleteTopics answered NONE")
    part = await acking
    say("ACCEPT 0 answered", error_name(part.ack_error), part.ack_message)
    return Counter([f"{error_name(part.ack_error)} {part.ack_message or ''}".strip()])


async def until_gone(session: Session, queue: Queue, mine: list[int], results: Results) -> None:
    """Acknowledge one record of every partition at a time until each has told an error."""
    left = set(mine)
    for offset in range(RECORDS):
        acks = {(queue.topic, partition): [accept(offset)] for partition in left}
        answer = await session.acknowledge(acks, timeout=60.0)
        if answer.error:
            results[f"{error_name(answer.error)} {answer.message or ''}".strip()] += 1
            return
        for part in answer.parts:
            told = f"{error_name(part.ack_error)} {part.ack_message or ''}".strip()
            results[told] += 1
            if part.ack_error:
                left.discard(part.partition)
        if not left:
            return


async def members(queue: Queue) -> list[tuple[Member, Session, list[int]]]:
    """Return a member of each group for each leader, holding all records of its partitions."""
    share, topic = queue.share, queue.topic
    found = []
    for number in range(GROUPS):
        group = queue if not number else await share.sibling(queue)
        member = await share.member(group.group, topic)
        for node in sorted(set(topic.leaders)):
            mine = [p for p in topic.partitions if topic.leaders[p] == node]
            session = await member.session(node)
            named = [(topic, p) for p in mine]
            held: Counter[int] = Counter()
            while any(held[p] < RECORDS for p in mine):
                answer = await session.fetch(*named, max_records=RECORDS * len(mine))
                named = []
                for part in answer.parts:
                    held[part.partition] += len(part.offsets)
            found.append((member, session, mine))
    return found


async def race(share: Share) -> Results:
    """Delete topics under acknowledgements, one after the other."""
    results: Results = Counter()
    for number in range(ROUNDS):
        queue = await share.queue(partitions=PARTITIONS, lock_ms=60_000, replicas=1)
        for partition in queue.topic.partitions:
            await queue.produce(RECORDS, partition)
        settlers = await members(queue)
        here: Results = Counter()
        acking = [
            asyncio.create_task(until_gone(session, queue, mine, here))
            for _, session, mine in settlers
        ]
        async for _ in attempts():
            if here["NONE"] > PARTITIONS * GROUPS:
                break
        await share.admin.delete_topics(queue.topic.name)
        await asyncio.gather(*acking)
        say(f"topic {number + 1}:", dict(here))
        results += here
        for member, session, _ in settlers:
            await session.connection.close()
            await member.leave()
    return results


async def play(run: Run) -> bool:
    """Play the scenario; tell whether somebody was told of a server error."""
    async with run.world() as share:
        results = await (held(share, run.frame_proxies) if run.proxies else race(share))
    for told, count in sorted(results.items()):
        say(f"{count:6} x {told}")
    return any(told.startswith(SERVER_ERROR) for told in results)
