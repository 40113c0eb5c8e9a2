"""Share-partitions whose state is initialised twice: findings 047 and 053, and no defect.

In the scenario ``unanswered`` (one broker) nobody answers the group coordinator's first
InitializeShareGroupState for half a minute, and all later ones are; the topic is older than the
group, and nobody has set share.auto.offset.reset. In ``partial`` and ``altered`` (three brokers)
one share coordinator refuses for 16 seconds what the others take, when a member joins, and when an
administrator sets start offsets. The proxies between the brokers do all this. Exit code 1 if a
member is given what it has accepted on a partition that was assigned to it, what is older than its
group, or what is below a start offset whose setting was answered NONE.
"""

from __future__ import annotations

import asyncio
import time

from fixtures.clients.cluster import SHARE, attempts, share_key
from fixtures.clients.member import Member, accept
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.exchange import Action
from fixtures.proxies.rules import Direction, FrameRule, state_write_refused
from fixtures.wire.errors import ErrorCode, error_name
from suites.broker.share import Consumer, Queue
from suites.broker.state import INITIALIZE
from tools.findings.program import Run, say, stored

RECORDS = 10
PARTITIONS = 6
UNANSWERED = 29.0
"""Seconds without a response: a little less than group.share.initialize.retry.interval.ms."""

REFUSED = 16.5
"""Seconds of refusals: a request that fails is tried at 0, 1, 3, 7 and 15 seconds."""

OFTEN = 0.02


def set_rules(proxies: FrameProxies, node: int, *rules: FrameRule) -> None:
    """Let just these rules hold for what other brokers send to one."""
    proxies.set_rules(proxies.listener(node, INTERNAL), *rules)


async def beat(member: Member, queue: Queue, *, joining: bool = False) -> None:
    """Send a heartbeat; say so if an assignment came."""
    before = member.assigned
    fields = {"subscribed_topic_names": [queue.topic.name]} if joining else {}
    answer = await member.heartbeat(**fields)
    if answer.error_code:
        say("heartbeat answered", error_name(answer.error_code), answer.error_message)
    if member.assigned != before or joining:
        say(f"{member.member_id} is assigned", sorted(index for _, index in member.assigned))


async def given(queue: Queue, member: Member, partition: int, within: float) -> dict[int, int]:
    """Return what a member is given of a partition over a new connection, and its counts."""
    where = (queue.topic, partition)
    session = await member.new_session(queue.topic.leaders[partition])
    consumer = Consumer(member, session, where)
    counts: dict[int, int] = {}
    async for _ in attempts(within):
        answer = await consumer.fetch()
        counts |= answer.only.counts
        if counts:
            break
    if counts:
        part = await consumer.ack(accept(min(counts), max(counts)))
        say(f"  partition {partition}: given {counts}; accepting answered", error_name(part.error))
    await consumer.close()
    await session.connection.close()
    return counts


async def unanswered(run: Run) -> bool:
    """Leave the first initialisation without a response; tell whether acceptances are lost."""
    async with run.world() as share:
        await (await share.queue(1)).consumer()  # the state topic is there from now on
        queue = await share.queue(RECORDS, batches=RECORDS, reset=None)
        rule = FrameRule(
            apis=frozenset({INITIALIZE}), direction=Direction.REQUEST, action=Action.DROP
        )
        set_rules(run.frame_proxies, 1, rule)
        member = await share.member(queue.group)
        await beat(member, queue, joining=True)
        since = time.monotonic()
        while not member.assigned and time.monotonic() < since + 60:
            if rule.done and time.monotonic() > since + UNANSWERED:
                set_rules(run.frame_proxies, 1)
            await asyncio.sleep(OFTEN)  # the pace of heartbeats of a group with many members
            await beat(member, queue)
        say(f"{rule.done} InitializeShareGroupState went unanswered; stored:", await stored(queue))
        session = await member.session(1)
        consumer = Consumer(member, session, (queue.topic, 0))
        caught = (await consumer.fetch()).only.counts
        newest = await queue.produce(RECORDS, batches=RECORDS)
        while len(caught) < RECORDS:
            caught |= (await consumer.fetch()).only.counts
        last = min(caught) + RECORDS // 2 - 1
        part = await consumer.ack(accept(min(caught), last))
        say(f"of the records 0-{RECORDS - 1}, older than the group, and the newer ones it is given")
        say(" ", caught, f"; ACCEPT {min(caught)}-{last} answered", error_name(part.error))
        before = await stored(queue)
        say("stored:", before)
        async for _ in attempts(10.0):
            if (after := await stored(queue)) != before:
                say("stored:", after)
                break
        await consumer.depart()
        heir = await share.member(queue.group)
        await heir.join(queue.topic)
        counts = await given(queue, heir, 0, 3.0)
        say(f"the next member is given {counts or 'nothing'}; the log has 0 to {newest + 9}")
        await share.disband()
        owed = newest + RECORDS - 1 - last
        return len(counts) != owed or min(caught) < RECORDS


async def partial(run: Run) -> bool:
    """Refuse the initialisation of some partitions; tell what comes of the others."""
    async with run.world() as share:
        await (await share.queue(1)).consumer()
        queue = await share.queue(partitions=PARTITIONS)
        for partition in queue.topic.partitions:
            await queue.produce(RECORDS, partition)
        homes = {
            p: await share.cluster.coordinator(share_key(queue.group, queue.topic.id, p), SHARE)
            for p in queue.topic.partitions
        }
        away = homes[0]
        early = [p for p, node in homes.items() if node != away]
        say(f"broker {away} keeps the state of {[p for p in homes if p not in early]} and refuses")
        code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        rule = FrameRule(
            apis=frozenset({INITIALIZE}),
            direction=Direction.REQUEST,
            action=Action.RESPOND,
            refusal=state_write_refused(code),
        )
        set_rules(run.frame_proxies, away, rule)
        member = await share.member(queue.group)
        await beat(member, queue, joining=True)
        since = time.monotonic()
        taken: dict[int, dict[int, int]] = {}
        owned: set[int] = set()
        while time.monotonic() < since + 60 and len(member.assigned) < PARTITIONS:
            if time.monotonic() > since + REFUSED:
                set_rules(run.frame_proxies, away)
            for partition in early:
                if partition in taken or not (await stored(queue, partition)).startswith("state"):
                    continue
                if counts := await given(queue, member, partition, 0.5):
                    taken[partition] = counts
                    owned |= {partition} & {index for _, index in member.assigned}
                    say(f"  stored of {partition}:", await stored(queue, partition))
            await asyncio.sleep(0.25)  # the pace of heartbeats
            await beat(member, queue)
        say(f"refused {rule.done} times; stored, accepted before they were assigned:")
        again: dict[int, list[int]] = {}
        for partition, accepted in taken.items():
            say(f"  of {partition}:", await stored(queue, partition))
            counts = await given(queue, member, partition, 2.0)
            if repeated := sorted(accepted.keys() & counts.keys()):
                again[partition] = repeated
        say("accepted and given again, by partition:", again or "nothing")
        say("of these, assigned when they were accepted:", sorted(owned & again.keys()))
        await share.disband()
        return bool(owned & again.keys())


async def altered(run: Run) -> bool:
    """Set start offsets of which some are refused; tell whether the others hold."""
    async with run.world() as share:
        await (await share.queue(1)).consumer()
        queue = await share.queue(partitions=PARTITIONS)
        for partition in queue.topic.partitions:
            await queue.produce(RECORDS, partition)
        away = await share.cluster.coordinator(share_key(queue.group, queue.topic.id, 0), SHARE)
        rule = FrameRule(
            apis=frozenset({INITIALIZE}),
            direction=Direction.REQUEST,
            action=Action.RESPOND,
            refusal=state_write_refused(int(ErrorCode.COORDINATOR_NOT_AVAILABLE)),
        )
        set_rules(run.frame_proxies, away, rule)
        connection = await share.cluster.dial(await share.cluster.coordinator(queue.group))
        half = RECORDS // 2
        wanted = [{"partition_index": p, "start_offset": half} for p in queue.topic.partitions]
        answer = await connection.call(
            "AlterShareGroupOffsets",
            timeout=90.0,
            group_id=queue.group,
            topics=[{"topic_name": queue.topic.name, "partitions": wanted}],
        )
        set_rules(run.frame_proxies, away)
        parts = answer.responses[0].partitions
        told = {part.partition_index: error_name(part.error_code) for part in parts}
        say(f"setting the start offsets to {half} was answered", told)
        member = await share.member(queue.group)
        await beat(member, queue, joining=True)
        since = time.monotonic()
        while time.monotonic() < since + 60 and len(member.assigned) < PARTITIONS:
            await asyncio.sleep(0.25)  # the pace of heartbeats
            await beat(member, queue)
        undone = []
        for partition in (p for p, error in told.items() if error == "NONE"):
            say(f"stored of {partition}:", await stored(queue, partition))
            if min(await given(queue, member, partition, 5.0), default=half) < half:
                undone.append(partition)
        say("partitions whose new start offset was answered NONE and does not hold:", undone)
        await share.disband()
        return bool(undone)


async def play(run: Run) -> bool:
    """Play the scenario; tell whether the defect was seen."""
    scenarios = {"altered": altered, "partial": partial, "unanswered": unanswered}
    return await scenarios[run.scenario](run)
