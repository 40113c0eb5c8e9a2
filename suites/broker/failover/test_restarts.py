"""Every broker restarts: one after the other under load, or all at once."""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import Pulse, judge_came_back, judge_member
from suites.broker.failover.traffic import LOCK_MS, Traffic, judge_books
from suites.broker.kit import *


@check("COO-30", meets=("second partition", "reload"), timeout=150)
async def test_rolling_restart(stage: FailoverCluster, judge: Judge) -> None:
    rng, nodes = stage.env.rng, list(stage.nodes)
    # One broker goes in order, one as by a power cut, the third either way.
    ways = rng.sample([stage.stop, stage.kill, rng.choice([stage.stop, stage.kill])], len(nodes))
    placed = [[*nodes[first:], *nodes[:first]] for first in range(len(nodes))]
    lock = stage.env.bounds.lock(LOCK_MS)
    queue = await stage.env.queue(assignments=placed, lock_ms=lock)
    await queue.consumer()

    async with Traffic(queue, rng) as traffic:
        for node, away in zip(rng.sample(nodes, len(nodes)), ways, strict=True):
            await traffic.flowing()
            await away(node)
            await stage.start(node)
            await stage.caught_up()
        await traffic.flowing()
        produced = await traffic.drained(lock / 1000)

    await judge_books(judge, traffic, produced)
    judge.saw(restarts=len(nodes))


@check("COO-01", "COO-02", "COO-03", "COO-23", "COO-27", meets="reload", timeout=120)
async def test_all_brokers_killed(stage: FailoverCluster, judge: Judge) -> None:
    queues = [await stage.queue(node) for node in stage.nodes]
    scenes = await asyncio.gather(*map(prepared, queues))
    pulses = [await Pulse.of(stage, scene.holder.member) for scene in scenes]

    await stage.kill(*stage.nodes)
    await stage.start(*stage.nodes)

    for scene in scenes:
        judge_counts(judge["COO-23"], await judge_came_back(judge["COO-27"], scene))
    for pulse in pulses:
        await judge_member(judge, pulse)
