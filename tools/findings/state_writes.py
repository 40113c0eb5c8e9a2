"""State writes that come late, together, or while their topic is deleted."""

import asyncio
from collections import Counter

from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.cluster import attempts
from fixtures.clients.configs import alter as alter_configs
from fixtures.clients.member import Ack, AckType, Member, Part, Session, accept, each, release
from fixtures.proxies.exchange import Action
from fixtures.proxies.rules import Direction, FrameRule, state_write_refused
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import Undecided
from suites.broker.share import Consumer, Queue, Share
from suites.broker.state import AVAILABLE, STATE_TOPIC, WRITE, Store, read_result
from tools.findings.program import ONCE, Run, say, stored

NODES = (1, 2, 3)


def refuse(run: Run, *, once: bool = False) -> FrameRule:
    """Refuse state writes, all or the first one, as a coordinator does that is loading."""
    answer = state_write_refused(int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    return run.intercept(WRITE, *NODES, action=Action.RESPOND, refusal=answer, once=once)


async def dropped(share: Share, run: Run) -> Queue:
    """027: locks end while nothing can be stored, and everybody leaves; then come and accept."""
    queue = await share.queue(10, batches=10, replicas=3, lock_ms=2000)
    consumers = [await queue.consumer(), *[await queue.consumer(join=False) for _ in range(2)]]
    say("first", (await consumers[0].acquire(10)).counts)
    rule = refuse(run)
    for one in consumers[1:]:
        say("next", (await one.acquire(10)).counts, "state writes refused:", rule.done)
    await consumers[0].member.leave()
    for one in consumers:
        await one.session.connection.close()
    last = await queue.consumer()
    say("after all have gone", (await last.acquire(10)).counts)
    run.let_pass(*NODES)
    say("ACCEPT 0-9 answered", (await last.ack(accept(0, 9))).ack_error)
    key, before = Store(share).of(queue), None
    async for _ in attempts(30):
        epoch = (await key.summary()).leader_epoch
        if (now := read_result(await key.read(leader_epoch=epoch))[2:]) != before:
            say("stored: start offset and batches", before := now)
        if any(batch.state == AVAILABLE for batch in now[1]):
            break
    return queue


async def released(share: Share, run: Run) -> Queue:
    """028: an acceptance is stored and answered with an error, and a release is answered NONE."""
    queue = await share.queue(30, batches=30, replicas=3, lock_ms=60_000)
    consumer = await queue.consumer()
    await consumer.acquire(10, max_records=10, batch_size=1)
    run.intercept(WRITE, *NODES, direction=Direction.RESPONSE, action=Action.RESET)
    failed = await consumer.ack(accept(2, 4), timeout=60)
    run.let_pass(*NODES)
    say("ACCEPT 2-4 with all answers lost:", failed.ack_error, failed.ack_message)
    say("RELEASE 2-4 answered", (await consumer.ack(release(2, 4))).ack_error)
    return queue


async def stale(share: Share, run: Run) -> Queue:
    """029: one state write is refused once, and others are stored before it is repeated."""
    queue = await share.queue(30, batches=30, replicas=3, lock_ms=60_000)
    one, two = await queue.consumer(), await queue.consumer(join=False)
    await one.acquire(10, max_records=10, batch_size=1)
    await two.acquire(10, max_records=10, batch_size=1)
    await one.acquire(10, max_records=10, batch_size=1)
    rule = refuse(run, once=True)
    late = asyncio.create_task(two.ack(accept(10, 19)))
    async for _ in attempts():
        if rule.done:
            break
    say("ACCEPT 0-9 answered", (await one.ack(accept(0, 9))).ack_error)
    say("ACCEPT 20-29 answered", (await one.ack(accept(20, 29))).ack_error)
    say("shown to administrators", await queue.offsets())
    say("ACCEPT 10-19 answered", (await late).ack_error)
    say("shown to administrators", await queue.offsets())
    run.let_pass(*NODES)
    return queue


async def late_state_writes(run: Run) -> bool:
    """State writes that come late, on the raw wire: findings 027, 028 and 029.

    The scenarios are dropped (027), released (028) and stale (029). Three brokers of the
    release, with proxies between them.
    """
    async with run.world() as share:
        scenarios = {"dropped": dropped, "released": released, "stale": stale}
        queue = await scenarios[run.scenario](share, run)
        new = next(node for node in NODES if node != queue.topic.leaders[0])
        topic = await share.admin.move_leader(queue.topic, new)
        member = await share.member(queue.group)
        consumer = Consumer(member, await member.session(new), (topic, 0))
        got: dict[int, int] = {}
        async for _ in attempts(6):
            for part in (await consumer.fetch()).parts:
                got |= part.counts
        say("the next leader delivers, with these counts,", got)
        await share.disband()
    released_ones = {2, 3, 4}
    accepted = {"dropped": range(10), "released": (), "stale": range(30)}[run.scenario]
    lost = run.scenario == "released" and not released_ones <= got.keys()
    return lost or any(offset in got for offset in accepted)


MANY, FEW = 200, 10
LIMIT, LARGEST = "max.message.bytes", "1000"
HELD = 2.0  # seconds for which the first state write is held up


def told(part: Part) -> str:
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
        await limit(share)
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


SERVER_ERROR = "UNKNOWN_SERVER_ERROR"
ROUNDS, GROUPS, PARTITIONS, RECORDS = 10, 4, 12, 400

Results = Counter[str]


async def held(share: Share, run: Run) -> Results:
    """Delete the topic while a state write is on its way."""
    queue = await share.queue(2, batches=2, lock_ms=60_000)
    consumer = await queue.consumer()
    await consumer.acquire(2)
    rule = run.intercept(WRITE, 1, delay=3.0)
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


async def topic_going(run: Run) -> bool:
    """Acknowledgements that are under way while their topic is deleted: finding 046.

    Exit code 1 if UNKNOWN_SERVER_ERROR is among them.
    """
    async with run.world() as share:
        results = await (held(share, run) if run.proxies else race(share))
    for told, count in sorted(results.items()):
        say(f"{count:6} x {told}")
    return any(told.startswith(SERVER_ERROR) for told in results)
