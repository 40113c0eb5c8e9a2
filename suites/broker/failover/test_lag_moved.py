"""The lag while the brokers that know it move, fall silent, or have not finished with a record."""

from suites.broker.failover.cluster import OFFSETS, STATE, FailoverCluster, state_partition
from suites.broker.kit import *

pytestmark = [pytest.mark.feature("lag"), pytest.mark.timeout(180)]

UNKNOWN = -1


async def _consumed(queue: Queue, count: int, *done: int) -> Consumer:
    await queue.produce(count)
    consumer = await queue.holder(count)
    await consumer.acked(*map(accept, done))
    return consumer


@check("LAG-08", meets="reload", moves=True)
async def test_coordinators_move(stage: FailoverCluster, judge: Judge) -> None:
    queue = await stage.queue(stage.env.rng.choice(stage.nodes))
    consumer = await _consumed(queue, 10, 0, 1, 5, 6, 7)
    await queue.lag(5)
    found = await queue.offsets()
    before = (found.start, found.lag)
    if found.lag != 5:
        raise Undecided(f"the lag is {found.lag} and not 5 before anything moved")

    layout = await stage.layout()
    groups = partition_of(queue.group, len(layout.offsets))
    states = state_partition(layout, queue.group, queue.topic)
    for name, partition in ((OFFSETS, groups), (STATE, states)):
        topic: Topic = await stage.cluster.topic(name)
        old = topic.leaders[partition]
        new = stage.env.rng.choice([node for node in stage.nodes if node != old])
        await stage.env.admin.move_leader(topic, new, partition)
        seen = await poll(queue.offsets, lambda seen: not seen.error)
        what = f"start offset and lag with {name} led by {new}, not {old}"
        judge.equal(before, (seen.start, seen.lag), what)
    await consumer.acked(accept(2))
    judge.equal(4, await queue.lag(4), "lag after one more, by the new coordinators")


@check("LAG-13", meets="second partition")
async def test_end_that_nobody_knows(stage: FailoverCluster, judge: Judge) -> None:
    dead = await stage.victim()
    alive = stage.env.rng.choice([node for node in stage.nodes if node != dead])
    queue = await stage.queue(alive, state=alive, group=alive)
    topic = await stage.env.admin.create_partitions(queue.topic, 3, assignments=[[dead], [alive]])
    both = Queue(env=stage.env, topic=topic, group=queue.group)
    await _consumed(both, 6, 0, 1)
    for index in (1, 2):
        await stage.env.admin.produce(topic, 3, index)
        other = await both.consumer(index, join=False)
        await other.acquire(3)
        await other.acked(accept(0))
    lags = {0: 4, 1: 2, 2: 2}
    known = {index: (await both.lag(lag, index)) for index, lag in lags.items()}
    if known != lags:
        raise Undecided(f"the lags are {known} before anything broke")

    await stage.kill(dead)
    began = time.monotonic()
    asked = {"topic_name": topic.name, "partitions": [0, 1, 2]}

    async def ask() -> dict[int, Struct]:
        response = await stage.cluster.at_coordinator(
            both.group,
            "DescribeShareGroupOffsets",
            groups=[{"group_id": both.group, "topics": [asked]}],
            timeout=100.0,
        )
        return {p.partition_index: p for p in response.groups[0].topics[0].partitions}

    # The coordinator of their state may have been on the broker that died.
    seen = await poll(ask, lambda now: not RETRIABLE & {now[0].error_code, now[2].error_code})
    led = {index: (seen[index].error_code, seen[index].lag) for index in (0, 2)}
    judge.equal({0: (0, 4), 2: (0, 2)}, led, "error and lag of the partitions that are led")
    honest = seen[1].error_code or seen[1].lag == UNKNOWN
    judge.holds(honest, f"the lag of a partition without leader is {seen[1].lag}")
    judge.saw(seconds=round(time.monotonic() - began))


@check("LAG-15", feature="dead-letters", meets=ACROSS_BATCHES)
async def test_letters_under_way(stage: FailoverCluster, judge: Judge) -> None:
    frozen = await stage.victim()
    alive = stage.env.rng.choice([node for node in stage.nodes if node != frozen])
    letters = await dead_topic(stage.env, assignments=[[frozen]])
    configs: dict[str, Any] = dict(naming(letters.name))
    queue = await stage.queue(alive, state=alive, group=alive, **configs)
    await queue.produce(6, batches=3)
    consumer = await queue.holder(6)
    await consumer.acked(accept(5))
    if await queue.lag(5) != 5:
        raise Undecided("the lag is not 5 before anything was rejected")

    stage.pause(frozen)
    await consumer.acked(reject(1, 2))
    async for _ in attempts(NOT_FOR):
        judge.equal(5, (await queue.offsets()).lag, "lag with two letters under way")
    stage.resume(frozen)
    if len(await DeadLetterSetup(queue, letters).arrived([1, 2])) < 2:
        raise Undecided("the letters were not written, although their broker is back")
    judge.equal(3, await queue.lag(3), "lag with the letters written")
