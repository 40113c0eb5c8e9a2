"""A broker is shut down in order: it hands over what it leads before it goes."""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import Pulse, cast, judge_came_back, judge_member, judge_progress
from suites.broker.failover.traffic import LOCK_MS, Traffic, judge_books
from suites.broker.kit import *


@check(
    "COO-01",
    "COO-02",
    "COO-03",
    "COO-10",
    "COO-21",
    "COO-22",
    "COO-23",
    "COO-27",
    "COO-31",
    meets="reload",
    timeout=120,
)
async def test_broker_stopped(stage: FailoverCluster, judge: Judge) -> None:
    roles = await cast(stage)
    pulses = [await Pulse.of(stage, s.holder.member) for s in (roles.grouped, roles.whole)]
    lock = stage.env.bounds.lock(LOCK_MS)
    busy = await stage.queue(roles.near, roles.far, state=roles.victim, lock_ms=lock)
    await busy.consumer()

    async with Traffic(busy, stage.env.rng) as traffic:
        await traffic.flowing()
        racing = [(scene, scene.send(accept(12, 13))) for scene in roles.moving]
        await stage.stop(roles.victim)
        await traffic.flowing()
        for scene, task in racing:
            scene.answered([12, 13], await task)
            await judge_progress(judge["COO-31"], await judge_new_leader(judge, scene))
        for pulse in pulses:
            await judge_member(judge, pulse)
        await stage.start(roles.victim)
        await judge_came_back(judge["COO-27"], roles.alone)
        produced = await traffic.drained(lock / 1000)

    await judge_books(judge["COO-10"], traffic, produced)
