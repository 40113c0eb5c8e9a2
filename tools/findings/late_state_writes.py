"""State writes that come late, on the raw wire: findings 027, 028 and 029.

The scenarios are dropped (027), released (028) and stale (029). Three brokers of the release, with
proxies between them.
"""

from __future__ import annotations

import asyncio

from fixtures.clients.cluster import attempts
from fixtures.clients.member import accept, release
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.exchange import Action
from fixtures.proxies.rules import Direction, FrameRule, state_write_refused
from fixtures.wire.errors import ErrorCode
from suites.broker.share import Consumer, Queue, Share
from suites.broker.state import AVAILABLE, Store, shown
from tools.findings.program import Run, say

NODES = (1, 2, 3)
WRITES = frozenset({"WriteShareGroupState"})
ONCE = 10**9


def refusal() -> FrameRule:
    """Return a rule by which every state write is refused, as by a coordinator that is loading."""
    answer = state_write_refused(int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    return FrameRule(
        apis=WRITES, direction=Direction.REQUEST, action=Action.RESPOND, refusal=answer
    )


def set_rules(proxies: FrameProxies, *rules: FrameRule) -> None:
    """Let just these rules hold between brokers."""
    for node in NODES:
        proxies.set_rules(proxies.listener(node, INTERNAL), *rules)


async def dropped(share: Share, proxies: FrameProxies) -> Queue:
    """027: locks end while nothing can be stored, and everybody leaves; then come and accept."""
    queue = await share.queue(10, batches=10, replicas=3, lock_ms=2000)
    consumers = [await queue.consumer(), *[await queue.consumer(join=False) for _ in range(2)]]
    say("first", (await consumers[0].acquire(10)).counts)
    set_rules(proxies, rule := refusal())
    for one in consumers[1:]:
        say("next", (await one.acquire(10)).counts, "state writes refused:", rule.done)
    await consumers[0].member.leave()
    for one in consumers:
        await one.session.connection.close()
    last = await queue.consumer()
    say("after all have gone", (await last.acquire(10)).counts)
    set_rules(proxies)
    say("ACCEPT 0-9 answered", (await last.ack(accept(0, 9))).ack_error)
    key, before = Store(share).of(queue), None
    async for _ in attempts(30):
        epoch = (await key.summary()).leader_epoch
        if (now := shown(await key.read(leader_epoch=epoch))[2:]) != before:
            say("stored: start offset and batches", before := now)
        if any(batch.state == AVAILABLE for batch in now[1]):
            break
    return queue


async def released(share: Share, proxies: FrameProxies) -> Queue:
    """028: an acceptance is stored and answered with an error, and a release is answered NONE."""
    queue = await share.queue(30, batches=30, replicas=3, lock_ms=60_000)
    consumer = await queue.consumer()
    await consumer.acquire(10, max_records=10, batch_size=1)
    set_rules(proxies, FrameRule(apis=WRITES, direction=Direction.RESPONSE, action=Action.RESET))
    failed = await consumer.ack(accept(2, 4), timeout=60)
    set_rules(proxies)
    say("ACCEPT 2-4 with all answers lost:", failed.ack_error, failed.ack_message)
    say("RELEASE 2-4 answered", (await consumer.ack(release(2, 4))).ack_error)
    return queue


async def stale(share: Share, proxies: FrameProxies) -> Queue:
    """029: one state write is refused once, and others are stored before it is repeated."""
    queue = await share.queue(30, batches=30, replicas=3, lock_ms=60_000)
    one, two = await queue.consumer(), await queue.consumer(join=False)
    await one.acquire(10, max_records=10, batch_size=1)
    await two.acquire(10, max_records=10, batch_size=1)
    await one.acquire(10, max_records=10, batch_size=1)
    rule = refusal()
    rule.nth, rule.seen = ONCE, ONCE - 1  # the first frame it sees, and no other
    set_rules(proxies, rule)
    late = asyncio.create_task(two.ack(accept(10, 19)))
    async for _ in attempts():
        if rule.done:
            break
    say("ACCEPT 0-9 answered", (await one.ack(accept(0, 9))).ack_error)
    say("ACCEPT 20-29 answered", (await one.ack(accept(20, 29))).ack_error)
    say("shown to administrators", await queue.offsets())
    say("ACCEPT 10-19 answered", (await late).ack_error)
    say("shown to administrators", await queue.offsets())
    set_rules(proxies)
    return queue


async def play(run: Run) -> bool:
    """Play the scenario, elect another leader; tell whether it delivers otherwise than it should.

    Records whose acceptance was answered NONE must not come; released ones must.
    """
    async with run.world() as share:
        scenarios = {"dropped": dropped, "released": released, "stale": stale}
        queue = await scenarios[run.scenario](share, run.frame_proxies)
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
