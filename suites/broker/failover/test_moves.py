"""Coordinators that move from broker to broker while every broker lives."""

from contextlib import asynccontextmanager, suppress

from suites.broker.failover.cluster import OFFSETS, STATE, FailoverCluster, state_partition
from suites.broker.failover.roles import MOVING, START, Pulse, judge_member, judge_raised, raised
from suites.broker.failover.traffic import LOCK_MS, Traffic, judge_books
from suites.broker.kit import *

pytestmark = pytest.mark.moves

ELECTION = 2.0
"""Seconds in which a partition of the state topic gets another leader on a machine that runs."""


@asynccontextmanager
async def _asking(work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Ask over and over in the background for as long as the block runs."""

    async def ask() -> None:
        async for _ in paced(0.005):
            await work()

    task = asyncio.create_task(ask())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@check("COO-01", "COO-02", "COO-03", "COO-04")
async def test_group_coordinator_moves(stage: FailoverCluster, judge: Judge) -> None:
    bounds = stage.env.bounds
    silent_ms = bounds.session(9000)
    timing: dict[str, Any] = {SESSION: str(silent_ms), HEARTBEAT: str(bounds.short_heartbeat)}
    queue = await stage.queue(*stage.nodes, **timing)
    live = await stage.env.member(queue.group, queue.topic)
    partition = partition_of(queue.group, len((await stage.layout()).offsets))
    pulse = await Pulse.of(stage, live, silent_ms)

    carried: set[str] = set()
    async with _asking(partial(_heartbeats, stage, pulse)):
        for node in [*stage.nodes, stage.nodes[0]]:
            silent = await stage.env.member(queue.group, queue.topic)
            await stage.led_by(OFFSETS, partition, node)
            carried |= {silent.member_id} & set(await member_ids(stage.env, queue.group))
        if not carried:
            raise Undecided(f"every move took longer than the {silent_ms} ms of a silent member")
        left = await poll(
            lambda: member_ids(stage.env, queue.group),
            carried.isdisjoint,
            within=silent_ms / 1000 + SLACK,
        )
        if stayed := carried.intersection(left):
            await demand_bystander(stage.cluster, stage.nodes[0], f"{stayed} did not go")
        what = "members that fell silent long ago"
        judge["COO-04"].equal([], sorted(carried.intersection(left)), what)

    await judge_member(judge, pulse)


async def _heartbeats(stage: FailoverCluster, pulse: Pulse) -> None:
    """Send a member's heartbeat to every broker, and note what each responds."""
    member = pulse.member
    for node in stage.nodes:
        sent = time.monotonic()
        response = await (await stage.cluster.to(node)).call(
            "ShareGroupHeartbeat",
            group_id=member.group,
            member_id=member.member_id,
            member_epoch=member.epoch,
        )
        pulse.told.add(error_name(in_session(member, response, pulse.session_ms).error_code))
        if not response.error_code:
            member.epoch, member.beaten = response.member_epoch, sent


@check("COO-12", "COO-13", "COO-18", meets="reload")
async def test_share_coordinator_moves(stage: FailoverCluster, judge: Judge) -> None:
    home = stage.nodes[0]
    queue = await stage.queue(*stage.nodes, state=home)
    await queue.produce(100, batches=100)
    consumer = await queue.holder(100)
    shard = state_partition(await stage.layout(), queue.group, queue.topic)
    key = await raised(await stage.queue(*stage.nodes, shard=shard))
    decoy = await stage.queue(*stage.nodes, shard=shard)
    probe = StateKey(stage.env, decoy.group, decoy.topic.id)

    await _judge_refusals(stage, judge["COO-12"], probe, home)
    told: set[str] = set()
    results: list[str] = []

    slowest = 0.0

    async def move(node: int) -> float:
        began = time.monotonic()
        await stage.led_by(STATE, shard, node)
        return time.monotonic() - began

    async def summaries() -> None:
        for node in stage.nodes:
            told.add(await _ask(stage, node, key, SUMMARY))

    async with _asking(summaries):
        for number, node in enumerate([*stage.nodes[1:], home, *stage.nodes[1:]]):
            moving, offset = asyncio.create_task(move(node)), 20 * number
            while not moving.done() and offset < 20 * number + 19:
                results.append(raw_result(await consumer.ack(accept(offset))))
                offset += 1
            slowest = max(slowest, await moving)
            part = await consumer.ack(accept(offset))  # at first NOT_COORDINATOR
            results.append(raw_result(part))
    judge["COO-12"].none_but(MOVING, told, "what else a state RPC was told meanwhile")
    judge["COO-12"].saw(loads=len(told - {"NONE", "NOT_COORDINATOR"}))
    # A leader gives up after some attempts, which a slow machine's election may outlast.
    if slowest > ELECTION and set(results) != {"NONE"}:
        raise Undecided(f"an election took {slowest:.1f} s, and writes failed meanwhile")
    judge["COO-13"].equal({"NONE"}, set(results), f"results of {len(results)} ACCEPTs meanwhile")

    await _judge_refusals(stage, judge["COO-12"], probe, stage.nodes[-1])
    await judge_raised(judge["COO-18"], key)
    judge["COO-13"].saw(acknowledged=len(results), coordinator_moves=5)


async def _ask(stage: FailoverCluster, node: int, key: StateKey, api: str) -> str:
    """Send a state RPC to a broker, coordinator or not; return its result's name.

    A summary of a state that is not there tells so: 4.4.0 answers NONE to that.
    """
    asked = {
        "topic_id": key.topic_id,
        "partitions": [{"partition": key.partition} | STATE_FIELDS[api]],
    }
    response = await (await stage.cluster.to(node)).call(api, group_id=key.group, topics=[asked])
    if not response.results:
        return "no result"
    part = response.results[0].partitions[0]
    name = error_name(part.error_code)
    lost = name == "NONE" and api == SUMMARY and part.start_offset != START
    return f"NONE with the start offset {part.start_offset}, not {START}" if lost else name


async def _judge_refusals(stage: FailoverCluster, judge: Judge, key: StateKey, home: int) -> None:
    """Judge what brokers say that do not coordinate a key, once all have heard who does."""
    for node in stage.nodes:
        if node == home:
            continue
        for api in STATE_RPCS:
            look = partial(_ask, stage, node, key, api)
            seen = await poll(look, lambda seen: seen == "NOT_COORDINATOR")
            judge.equal("NOT_COORDINATOR", seen, f"{api} at a broker that is none")


@check("COO-35", meets=("second partition", "reload"), timeout=90)
async def test_everything_moves(stage: FailoverCluster, judge: Judge) -> None:
    rng, nodes = stage.env.rng, stage.nodes
    placed = [rng.sample(nodes, 3) for _ in range(2)]
    lock = stage.env.bounds.lock(LOCK_MS)
    queue = await stage.env.queue(assignments=placed, lock_ms=lock)
    await queue.consumer()
    now = await stage.layout()
    keys = {(queue.topic.name, index) for index in range(2)}
    keys |= {(STATE, state_partition(now, queue.group, queue.topic, i)) for i in range(2)}
    keys |= {(OFFSETS, partition_of(queue.group, len(now.offsets)))}

    async with Traffic(queue, rng, releases=0.2) as traffic:
        await traffic.flowing()
        for _ in range(25):
            name, partition = rng.choice(sorted(keys))
            await stage.led_by(name, partition, rng.choice(nodes))
        await traffic.flowing()
        produced = await traffic.drained(lock / 1000)

    await judge_books(judge, traffic, produced)
    judge.saw(moves=25)
