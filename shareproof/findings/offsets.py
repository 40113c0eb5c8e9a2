"""Where share-partitions begin, and what administrators set; and what all programs are given."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from fixtures.clients.cluster import SHARE, attempts
from fixtures.clients.member import Ack, Member, accept, release
from fixtures.interface.info import ClusterInfo
from fixtures.proxies.broker_proxies import (
    INTERNAL,
    Direction,
    FrameProxies,
    FrameRule,
    state_write_refused,
)
from fixtures.proxies.exchange import Action
from fixtures.targets import Target
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.security import PLAINTEXT
from fixtures.wire.state_records import share_key
from spec.verdict import Undecided
from suites.broker.env import Consumer, Env, Queue, open_env
from suites.broker.leaders import ReconnectingConsumer
from suites.broker.state import DELETE, INITIALIZE, SUMMARY, Store, read_result

DIRECT = "DIRECT"  # the listener that leads past the proxies
OLD = 5  # how many records are older than the groups
NEW = 5
_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    target: Target
    scenario: str
    proxies: FrameProxies | None

    def intercept(self, api: str, *nodes: int, **how: Any) -> FrameRule:
        rule = FrameRule(apis=frozenset({api}), direction=Direction.REQUEST, **how)
        self._set_rules(nodes, rule)
        return rule

    def let_pass(self, *nodes: int) -> None:
        self._set_rules(nodes)

    def _set_rules(self, nodes: Sequence[int], *rules: FrameRule) -> None:
        assert self.proxies is not None, "the program's entry must ask for proxies"
        for node in nodes:
            self.proxies.set_rules(self.proxies.listener(node, INTERNAL), *rules)

    @property
    def info(self) -> ClusterInfo:
        return self.target.info.at(DIRECT, PLAINTEXT) if self.proxies else self.target.info

    def open_env(self) -> AbstractAsyncContextManager[Env]:
        return open_env(self.info, random.Random(), [])


def say(*what: object) -> None:
    print(f"{time.monotonic() - _BEGAN:6.2f} s ", *what, flush=True)


async def stored(queue: Queue, partition: int = 0) -> str:
    """Return what the share coordinator has: state epoch, start offset, state batches."""
    key = Store(queue.env).of(queue, partition)
    epoch = (await key.summary()).leader_epoch
    error, state_epoch, start, batches = read_result(await key.read(leader_epoch=epoch))
    if error != "NONE":
        return error
    return f"state epoch {state_epoch}, start offset {start}, {[tuple(b) for b in batches]}"


async def unstored_start(run: Run) -> bool:
    """A start offset at the log's end, before anything was acknowledged: finding 052.

    Exit code 1 if records that came after the group's first fetch are not given to the member that
    comes last.
    """
    async with run.open_env() as env:
        replicas = 1 if run.scenario == "idle" else 3
        reset = "earliest" if run.scenario == "earliest" else None
        queue = await env.queue(OLD, reset=reset, replicas=replicas, lock_ms=60_000)
        consumer = await queue.consumer()
        first = consumer.sound(await consumer.fetch()).only.counts
        say(f"the log has 0-{OLD - 1}; the first fetch of the group is given", first or "nothing")
        say("stored:", await stored(queue))
        topic = queue.topic
        if run.scenario == "idle":
            await consumer.depart()
            say("the member has gone")
        await queue.produce(NEW, batches=NEW)
        last = OLD + NEW - 1
        say(f"{OLD}-{last} are produced")
        if run.scenario != "idle":
            say("the member is given", (await consumer.drain(until=last)).offsets)
            say("stored:", await stored(queue))
            new = next(node for node in sorted(env.cluster.brokers) if node != topic.leaders[0])
            topic = await env.admin.move_leader(topic, new)
            say(f"broker {new} leads, and nothing was acknowledged")
        heir = ReconnectingConsumer(replace(queue, topic=topic))
        async for _ in attempts():
            if part := await heir.fetch():
                break
        counts = part.counts if part else {}
        sentinel = await env.admin.produce(topic, 1)
        counts |= await heir.take([sentinel])
        say(f"{sentinel} is produced; the last member is given", counts)
        lost = [offset for offset in range(OLD, OLD + NEW) if offset not in counts]
        await env.disband()
    return bool(lost)


async def unread(run: Run) -> bool:
    """Start offsets that the share coordinator does not tell: finding 123.

    Exit code 1 if they are described as unset, without an error.
    """
    async with run.open_env() as env:
        queue, consumer = await env.with_holder(OLD)
        await consumer.acked(accept(0, 2))
        say("0-2 are accepted;", await seen(queue))
        refuse(run, SUMMARY, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        since = time.monotonic()
        group = {"group_id": queue.group, "topics": None}
        answer = await asked(queue, "DescribeShareGroupOffsets", groups=[group])
        part = answer.groups[0].topics[0].partitions[0] if answer.groups[0].topics else None
        say(f"the state is not told; described after {time.monotonic() - since:.0f} s:", part)
        run.let_pass(1)
        say("the state is told again;", await seen(queue))
        await env.disband()
    return part is not None and not part.error_code and part.start_offset == -1


LAG_RECORDS, HELD, BEFORE = 20, 3, 15
LOCK = 3.0
ACCEPT = (1,)


async def seen(queue: Queue) -> str:
    found = await queue.offsets()
    return f"start offset {found.start}, lag {found.lag}; stored: {await stored(queue)}"


async def deleted_lag(run: Run) -> bool:
    """Records that were deleted while somebody held them stay in the lag: finding 054.

    Exit code 1 if the lag is not 0 ten seconds after the lock.
    """
    async with run.open_env() as env:
        queue = await env.queue(0, lock_ms=int(LOCK * 1000))
        await queue.produce(LAG_RECORDS)
        holder, other = await queue.consumer(), await queue.consumer()
        got = await holder.acquire(LAG_RECORDS)
        await holder.acked(Ack(0, HELD - 1, ACCEPT), Ack(HELD + 1, LAG_RECORDS - 1, ACCEPT))
        say(f"given {got.offsets}; all but {HELD} are accepted;", await seen(queue))
        start = await env.admin.delete_records(queue.topic, BEFORE)
        say(f"the log begins at {start} now;", await seen(queue))
        before = ""
        async for _ in attempts(LOCK + 10.0):
            other.sound(await other.fetch(max_wait_ms=500))
            if (now := await seen(queue)) != before:
                say(now)
            before = now
        if (lag := (await queue.offsets()).lag) == -1:
            raise Undecided("it tells no lag: KIP-1226 came with 4.2")
        await queue.produce(1)
        last = (await other.acquire(1)).offsets
        await other.acked(Ack(last[0], last[-1], ACCEPT))
        say(f"{last} is produced and accepted;", await seen(queue))
        await env.disband()
    return lag != 0


LATE_RECORDS = 20
HALF = LATE_RECORDS // 2
TRIES = 3
"""How many tries are refused: at once, after one and after three seconds. The next is at seven."""

STUCK_FOR = 35.0
"""Seconds for which a new member is watched: longer than group.share.initialize.retry.interval."""


def refuse(
    run: Run, api: str, node: int = 1, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE
) -> FrameRule:
    """Let brokers be refused an API as by a coordinator that is not there, or that is loading."""
    answer = state_write_refused(int(error))
    return run.intercept(api, node, action=Action.RESPOND, refusal=answer)


async def asked(queue: Queue, api: str, **fields: Any) -> Struct:
    cluster = queue.env.cluster
    connection = await cluster.dial(await cluster.coordinator(queue.group))
    return await connection.call(api, timeout=90.0, **fields)


def request(queue: Queue, scene: str) -> tuple[str, dict[str, Any]]:
    name, group = queue.topic.name, queue.group
    if scene == "altered":
        part = {"partition_index": 0, "start_offset": 0}
        topics: list[dict[str, Any]] = [{"topic_name": name, "partitions": [part]}]
        return "AlterShareGroupOffsets", {"group_id": group, "topics": topics}
    if scene == "deleted":
        return "DeleteShareGroupOffsets", {"group_id": group, "topics": [{"topic_name": name}]}
    return "DeleteGroups", {"groups_names": [group]}


async def use(queue: Queue) -> None:
    consumer = await queue.consumer()
    await consumer.acquire(LATE_RECORDS)
    await consumer.acked(accept(0, HALF - 1), release(HALF, LATE_RECORDS - 1))
    await consumer.depart()


async def given_late(consumer: Consumer, within: float) -> tuple[dict[int, int], str]:
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


async def late_administration(run: Run) -> bool:
    """Requests of administrators that the share coordinator takes late: findings 048 and 049.

    Exit code 1 if the group was harmed that had members by then.
    """
    async with run.open_env() as env:
        queue = await env.queue(LATE_RECORDS, batches=LATE_RECORDS, lock_ms=60_000)
        await use(queue)
        say(f"0-{HALF - 1} are accepted, nobody is in the group; stored:", await stored(queue))
        api, fields = request(queue, run.scenario)
        write = INITIALIZE if run.scenario == "altered" else DELETE
        rule = refuse(run, write, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        late = asyncio.create_task(asked(queue, api, **fields))
        async for _ in attempts():
            if rule.done >= TRIES:
                break
        run.let_pass(1)
        say(f"{api} is under way, and was refused {rule.done} times; stored:", await stored(queue))
        if late.done():
            raise Undecided("the request that was to be late was not")
        consumer = await queue.consumer()
        if late.done():
            say(f"{api} was answered before a new member was assigned the partition")
            return False
        first = HALF if run.scenario == "altered" else 0
        caught = await consumer.acquire(LATE_RECORDS - first)
        say("a new member is assigned the partition, and given", caught.counts)
        part = await consumer.ack(accept(first, LATE_RECORDS - 1))
        say(f"ACCEPT {first}-{LATE_RECORDS - 1} answered", error_name(part.ack_error))
        say("stored:", await stored(queue))
        say(f"{api} answered", (await late).to_dict())
        say("stored:", await stored(queue))
        accepted = not part.ack_error
        if run.scenario == "altered":
            return await harmed_by_alteration(queue, consumer, first) and accepted
        return await harmed_by_deletion(queue, consumer) and accepted


async def harmed_by_alteration(queue: Queue, consumer: Consumer, first: int) -> bool:
    await consumer.depart()
    counts, _ = await given_late(await queue.consumer(), 10.0)
    say("the next member is given", counts)
    return any(offset in counts for offset in range(first, LATE_RECORDS))


async def harmed_by_deletion(queue: Queue, consumer: Consumer) -> bool:
    await queue.produce(5, batches=5)
    counts, last = await given_late(consumer, 10.0)
    say("five more are produced; the member is given", counts or last)
    if counts:
        part = await consumer.ack(accept(LATE_RECORDS))
        say(f"ACCEPT {LATE_RECORDS} answered", error_name(part.ack_error), part.ack_message)
    await consumer.member.leave()
    await consumer.session.connection.close()
    heir = await queue.consumer()
    counts, last = await given_late(heir, STUCK_FOR)
    say("the next member is assigned the partition, and given", counts or last)
    return not counts


EACH = 10
PARTITIONS = 6
UNANSWERED = 29.0
"""Seconds without a response: a little less than group.share.initialize.retry.interval.ms."""

OFTEN = 0.02


async def beat(member: Member, queue: Queue, *, joining: bool = False) -> None:
    before = member.assigned
    fields = {"subscribed_topic_names": [queue.topic.name]} if joining else {}
    answer = await member.heartbeat(**fields)
    if answer.error_code:
        say("heartbeat answered", error_name(answer.error_code), answer.error_message)
    if member.assigned != before or joining:
        say(f"{member.member_id} is assigned", sorted(index for _, index in member.assigned))


async def given_again(
    queue: Queue, member: Member, partition: int, within: float
) -> dict[int, int]:
    where = (queue.topic, partition)
    session = await member.new_session(queue.topic.leaders[partition])
    consumer = Consumer(member, session, where)
    counts, _ = await given_late(consumer, within)
    if counts:
        part = await consumer.ack(accept(min(counts), max(counts)))
        say(f"  partition {partition}: given {counts}; accepting answered", error_name(part.error))
    await consumer.close()
    await session.connection.close()
    return counts


# Share-partitions whose state is initialised twice: findings 047 and 053. Exit code 1 if a member
# is given what it has accepted, what is older than its group, or what is below a start offset whose
# setting was answered NONE.


async def unanswered(run: Run) -> bool:
    """Leave the first initialisation without a response; tell whether acceptances are lost.

    Two retries race after half a minute: that of the request, and that of the next heartbeat.
    """
    for _ in range(3):
        if await _unanswered(run):
            return True
    return False


async def _unanswered(run: Run) -> bool:
    async with run.open_env() as env:
        await (await env.queue(1)).consumer()  # the state topic is there from now on
        queue = await env.queue(EACH, batches=EACH, reset=None)
        rule = run.intercept(INITIALIZE, 1, action=Action.DROP)
        member = await env.member(queue.group)
        await beat(member, queue, joining=True)
        since = time.monotonic()
        while not member.assigned and time.monotonic() < since + 60:
            if rule.done and time.monotonic() > since + UNANSWERED:
                run.let_pass(1)
            await asyncio.sleep(OFTEN)  # the pace of heartbeats of a group with many members
            await beat(member, queue)
        say(f"{rule.done} InitializeShareGroupState went unanswered; stored:", await stored(queue))
        session = await member.session(1)
        consumer = Consumer(member, session, (queue.topic, 0))
        caught = (await consumer.fetch()).only.counts
        newest = await queue.produce(EACH, batches=EACH)
        while len(caught) < EACH:
            caught |= (await consumer.fetch()).only.counts
        last = min(caught) + EACH // 2 - 1
        part = await consumer.ack(accept(min(caught), last))
        say(f"of the records 0-{EACH - 1}, older than the group, and the newer ones it is given")
        say(" ", caught, f"; ACCEPT {min(caught)}-{last} answered", error_name(part.error))
        before = await stored(queue)
        say("stored:", before)
        async for _ in attempts(10.0):
            if (after := await stored(queue)) != before:
                say("stored:", after)
                break
        await consumer.depart()
        heir = await env.member(queue.group)
        await heir.join(queue.topic)
        counts = await given_again(queue, heir, 0, 3.0)
        say(f"the next member is given {counts or 'nothing'}; the log has 0 to {newest + 9}")
        await env.disband()
        owed = newest + EACH - 1 - last
        return len(counts) != owed or min(caught) < EACH


async def altered(run: Run) -> bool:
    """Set start offsets of which some are refused; tell whether the others hold."""
    async with run.open_env() as env:
        await (await env.queue(1)).consumer()
        queue = await env.queue(partitions=PARTITIONS)
        for partition in queue.topic.partitions:
            await queue.produce(EACH, partition)
        away = await env.cluster.coordinator(share_key(queue.group, queue.topic.id, 0), SHARE)
        refuse(run, INITIALIZE, away)
        connection = await env.cluster.dial(await env.cluster.coordinator(queue.group))
        half = EACH // 2
        wanted = [{"partition_index": p, "start_offset": half} for p in queue.topic.partitions]
        answer = await connection.call(
            "AlterShareGroupOffsets",
            timeout=90.0,
            group_id=queue.group,
            topics=[{"topic_name": queue.topic.name, "partitions": wanted}],
        )
        run.let_pass(away)
        if not answer.responses:
            raise Undecided("AlterShareGroupOffsets has no result for any partition: finding 008")
        parts = answer.responses[0].partitions
        told = {part.partition_index: error_name(part.error_code) for part in parts}
        say(f"setting the start offsets to {half} was answered", told)
        member = await env.member(queue.group)
        await beat(member, queue, joining=True)
        since = time.monotonic()
        while time.monotonic() < since + 60 and len(member.assigned) < PARTITIONS:
            await asyncio.sleep(0.25)  # the pace of heartbeats
            await beat(member, queue)
        undone = []
        for partition in (p for p, error in told.items() if error == "NONE"):
            say(f"stored of {partition}:", await stored(queue, partition))
            if min(await given_again(queue, member, partition, 5.0), default=half) < half:
                undone.append(partition)
        say("partitions whose new start offset was answered NONE and does not hold:", undone)
        await env.disband()
        return bool(undone)
