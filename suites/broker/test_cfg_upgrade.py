"""Three brokers that are upgraded one after the other while members go on consuming."""

import dataclasses

from fixtures.clients.bounds import bounds_of
from fixtures.clients.cluster import Cluster
from fixtures.interface.capability import Capability
from fixtures.interface.names import innermost
from fixtures.targets import Target, TargetOptions
from fixtures.targets.broker import Broker
from fixtures.targets.kafka import release_before, upgrade
from spec.verdict import EnvironmentFault
from suites import clusters
from suites.broker.failover.traffic import LOCK_MS, Traffic, judge_books
from suites.broker.kit import *

RECORDS = 8
DONE, RELEASED = (0, 1, 4), 2
"""Accepted records, a hole among them, and one released, before the first broker is upgraded."""

UNSETTLED = {2: 2, 3: 2, 5: 2, 6: 2, 7: 2}
"""What is left, and the highest delivery count that each may come with the next time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Old:
    target: Target
    env: Env
    version: str


@pytest.fixture
async def old(
    run_options: RunOptions, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Old]:
    clusters.require(run_options, Capability.LOCAL_PROCESS)
    version = innermost(run_options.target).version
    before = release_before(version)
    options = dataclasses.replace(run_options, target=run_options.target.replace(version, before))
    transcript = Transcript()
    transcripts.append(transcript)
    with contextlib.ExitStack() as stack:
        try:
            own = clusters.own_cluster(options, TargetOptions(brokers=3), files=True)
            target = stack.enter_context(own)
        except EnvironmentFault as fault:
            raise OutOfReach(f"{before} cannot be started here: {fault}") from None
        async with Cluster(target.info, transcript=transcript, rng=rng) as cluster:
            await cluster.any()
            yield Old(target, Env(cluster, rng, await bounds_of(cluster)), version)


async def _judge_part(judge: Judge, queue: Queue, number: int) -> None:
    """Judge what a broker that was just upgraded makes of the partition that it leads."""
    mixed = await queue.consumer(number, join=False)
    last, since = await queue.produce(1, number), time.monotonic()
    came = await watch(mixed, [*UNSETTLED, last], WITHIN + 30)
    what = f"offsets of partition {number} with {number + 1} brokers upgraded"
    judge["CFG-20"].equal([*UNSETTLED, last], sorted(came), what)
    high = {o: s.count for o, s in came.items() if o in UNSETTLED and s.count > UNSETTLED[o]}
    judge["CFG-20"].equal({}, high, "delivery counts that are too high")
    judge["CFG-20"].equal(2, came[RELEASED].count, "delivery count of the record released")
    result = error_name((await mixed.ack(*map(accept, sorted(came)))).ack_error)
    in_time(since, 30_000)
    judge["CFG-21"].equal("NONE", result, f"response to accepting all of partition {number}")
    await rewritten(mixed, await queue.produce(1, number))
    start = await queue.spso(last + 1, number)
    judge["CFG-20"].equal(last + 1, start, f"start offset of partition {number}")


@check("CFG-20", "CFG-21", solo={}, timeout=180)
async def test_rolling_upgrade(old: Old, judge: Judge) -> None:
    # CFG-20 CFG-21: Brokers of two releases serve one group, and nothing settled comes back.
    # During the upgrade another group consumes what is produced without a pause.
    env = old.env
    nodes = sorted(env.cluster.brokers)
    placed = [[node, *(other for other in nodes if other != node)] for node in nodes]
    queue = await env.queue(assignments=placed, lock_ms=30_000)
    member = await env.member(queue.group, queue.topic)
    for partition in queue.topic.partitions:
        await queue.produce(RECORDS, partition)
        session = await member.session(queue.topic.leaders[partition])
        consumer = Consumer(member, session, (queue.topic, partition))
        await consumer.acquire(RECORDS)
        acks = [*map(accept, DONE), release(RELEASED)]
        await consumer.acked(*sorted(acks, key=lambda ack: ack.first))
    busy = await env.queue(assignments=placed, lock_ms=LOCK_MS)
    await busy.consumer()

    async with Traffic(busy, env.rng) as traffic:
        for number in range(len(nodes)):
            await traffic.flowing()
            await good_beat(member)
            broker = old.target.brokers[number]
            assert isinstance(broker, Broker)
            cluster = queue.env.cluster
            cluster.away.add(broker.node_id)
            await asyncio.to_thread(upgrade, broker, old.version)
            cluster.away.discard(broker.node_id)
            topic = await cluster.topic(queue.topic.name, len(queue.topic.leaders))
            queue = dataclasses.replace(queue, topic=topic)
            usual = env.bounds.sessions.default
            code = in_session(member, await beat(member), usual).error_code
            what = f"response to a member with {number + 1} brokers upgraded"
            judge["CFG-21"].equal("NONE", error_name(code), what)
            await _judge_part(judge, queue, number)
        await traffic.flowing()
        produced = await traffic.drained()

    await judge_books(judge["CFG-21"], traffic, produced)
    judge["CFG-20"].saw(upgrades=len(nodes))
