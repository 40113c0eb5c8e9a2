"""Requests of administrators that the share coordinator takes late: findings 048 and 049.

The scenarios are altered (048), deleted and group (049). One broker of the release, with a proxy in
front of the listener by which it speaks to itself: for four seconds it refuses what the scenario is
about as a share coordinator does that is loading. Exit code 1 if the group was harmed that had
members by then.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fixtures.clients.cluster import attempts
from fixtures.clients.member import accept, release
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.exchange import Action
from fixtures.proxies.rules import Direction, FrameRule, state_write_refused
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import Undecided
from suites.broker.share import Consumer, Queue
from suites.broker.state import DELETE, INITIALIZE
from tools.findings.program import Run, say, stored

RECORDS = 20
HALF = RECORDS // 2
TRIES = 3
"""How many tries are refused: at once, after one and after three seconds. The next is at seven."""

STUCK_FOR = 35.0
"""Seconds for which a new member is watched: longer than group.share.initialize.retry.interval."""


def refuse(proxies: FrameProxies, api: str | None) -> FrameRule | None:
    """Let brokers be refused an API as by a coordinator that is loading, or let all be well."""
    answer = state_write_refused(int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    rule = api and FrameRule(
        apis=frozenset({api}), direction=Direction.REQUEST, action=Action.RESPOND, refusal=answer
    )
    proxies.set_rules(proxies.listener(1, INTERNAL), *([rule] if rule else []))
    return rule or None


async def asked(queue: Queue, api: str, **fields: Any) -> Struct:
    """Send an administrator's request on a connection of its own."""
    cluster = queue.share.cluster
    connection = await cluster.dial(await cluster.coordinator(queue.group))
    return await connection.call(api, timeout=90.0, **fields)


def request(queue: Queue, scene: str) -> tuple[str, dict[str, Any]]:
    """Return API and fields of the scene's request."""
    name, group = queue.topic.name, queue.group
    if scene == "altered":
        part = {"partition_index": 0, "start_offset": 0}
        topics: list[dict[str, Any]] = [{"topic_name": name, "partitions": [part]}]
        return "AlterShareGroupOffsets", {"group_id": group, "topics": topics}
    if scene == "deleted":
        return "DeleteShareGroupOffsets", {"group_id": group, "topics": [{"topic_name": name}]}
    return "DeleteGroups", {"groups_names": [group]}


def errors_of(answer: Struct) -> str:
    """Return a response's errors."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "error_code" in value:
                found.append(error_name(value["error_code"]))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(answer.to_dict())
    return ", ".join(found)


async def use(queue: Queue) -> None:
    """Accept the first half of the records, release the other, and go."""
    consumer = await queue.consumer()
    await consumer.acquire(RECORDS)
    await consumer.acked(accept(0, HALF - 1), release(HALF, RECORDS - 1))
    await consumer.depart()


async def given(consumer: Consumer, within: float) -> tuple[dict[int, int], str]:
    """Fetch until something comes; return the delivery counts, or the last error there was."""
    counts: dict[int, int] = {}
    last = "nothing, without an error"
    async for _ in attempts(within):
        answer = await consumer.fetch()
        for part in answer.parts:
            counts |= part.counts
            if part.error:
                last = f"{error_name(part.error)}: {part.message}"
        if answer.error:
            last = error_name(answer.error)
        if counts:
            break
    return counts, last


async def play(run: Run) -> bool:
    """Play the scenario; tell whether the group was harmed."""
    async with run.world() as share:
        queue = await share.queue(RECORDS, batches=RECORDS, lock_ms=60_000)
        await use(queue)
        say(f"0-{HALF - 1} are accepted, nobody is in the group; stored:", await stored(queue))
        api, fields = request(queue, run.scenario)
        rule = refuse(run.frame_proxies, INITIALIZE if run.scenario == "altered" else DELETE)
        assert rule is not None
        late = asyncio.create_task(asked(queue, api, **fields))
        async for _ in attempts():
            if rule.done >= TRIES:
                break
        refuse(run.frame_proxies, None)
        say(f"{api} is under way, and was refused {rule.done} times; stored:", await stored(queue))
        consumer = await queue.consumer()
        first = HALF if run.scenario == "altered" else 0
        caught = await consumer.acquire(RECORDS - first)
        say("a new member is assigned the partition, and given", caught.counts)
        part = await consumer.ack(accept(first, RECORDS - 1))
        say(f"ACCEPT {first}-{RECORDS - 1} answered", error_name(part.ack_error))
        if late.done():
            raise Undecided("the request that was to be late was not")
        say("stored:", await stored(queue))
        say(f"{api} answered", errors_of(await late))
        say("stored:", await stored(queue))
        accepted = not part.ack_error
        if run.scenario == "altered":
            return await harmed_by_alteration(queue, consumer, first) and accepted
        return await harmed_by_deletion(queue, consumer) and accepted


async def harmed_by_alteration(queue: Queue, consumer: Consumer, first: int) -> bool:
    """Load the share-partition anew; tell whether accepted records come again."""
    await consumer.depart()
    counts, _ = await given(await queue.consumer(), 10.0)
    say("the next member is given", counts)
    return any(offset in counts for offset in range(first, RECORDS))


async def harmed_by_deletion(queue: Queue, consumer: Consumer) -> bool:
    """Go on with the member, and then with a new one; tell whether that one gets nothing."""
    await queue.produce(5, batches=5)
    counts, last = await given(consumer, 10.0)
    say("five more are produced; the member is given", counts or last)
    if counts:
        part = await consumer.ack(accept(RECORDS))
        say(f"ACCEPT {RECORDS} answered", error_name(part.ack_error), part.ack_message)
    await consumer.member.leave()
    await consumer.session.connection.close()
    heir = await queue.consumer()
    counts, last = await given(heir, STUCK_FOR)
    say("the next member is assigned the partition, and given", counts or last)
    return not counts
