"""Queues in which one broker plays every part there is, so that one event is judged from all sides.

A share-partition has a leader, a share coordinator for its state, and a group coordinator for its
members (KIP-932 §Share group membership, §Share coordinator). The victim plays one of these parts,
or all, and in each queue the others go on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.cluster import RETRIABLE, attempts, eventually
from fixtures.clients.configs import configure_topic
from fixtures.clients.member import Member, accept, release
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import error_name
from spec.verdict import Undecided
from suites.broker.acknowledgements import result
from suites.broker.env import Consumer, Queue, demand_bystander
from suites.broker.failover.cluster import STATE, FailoverCluster
from suites.broker.groups import in_session
from suites.broker.leaders import (
    TAKEN_OVER,
    MixedStates,
    ReconnectingConsumer,
    append,
    prepared,
    taken,
)
from suites.broker.state import StateKey
from suites.judge import Judge

LOCK_MS = 15_000  # A lock that outlives a change of leader, and not the patience of a check.

MOVING = {
    "NONE": "order: the request may come before the coordinator moves, or after",
    **dict.fromkeys(
        ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
        "ShareGroupHeartbeatResponse Supported errors: listed, as for state RPCs",
    ),
}
"""What a live member may be told while its coordinator moves, and what allows each."""


@dataclass(slots=True)
class AllRoles:
    victim: int
    near: int
    far: int
    led: MixedStates  # The victim leads it.
    kept: MixedStates  # The victim keeps its state.
    grouped: MixedStates  # The victim coordinates its members.
    whole: MixedStates  # The victim leads it, keeps its state and coordinates its members.
    alone: MixedStates  # The victim has its only replica.

    @property
    def moving(self) -> tuple[MixedStates, ...]:
        """The scenes that get another leader when the victim goes."""
        return self.led, self.whole


async def cast(stage: FailoverCluster) -> AllRoles:
    victim = await stage.victim()
    near, far = stage.env.rng.sample([n for n in stage.nodes if n != victim], 2)

    bounds = stage.env.bounds
    short, long = bounds.lock(LOCK_MS), bounds.longest_lock

    async def scene(*replicas: int, state: int, group: int, lock_ms: int = long) -> MixedStates:
        queue = await stage.queue(*replicas, state=state, group=group, lock_ms=lock_ms)
        return await prepared(queue, lock_ms)

    scenes = await asyncio.gather(  # in the order of the fields
        scene(victim, near, state=far, group=near, lock_ms=short),
        scene(near, far, state=victim, group=far),
        scene(near, far, state=far, group=victim),
        scene(victim, far, state=victim, group=victim, lock_ms=short),
        scene(victim, state=near, group=far),
    )
    return AllRoles(victim, near, far, *scenes)


@dataclass(slots=True)
class Pulse:
    """A member's heartbeats across a change of its group coordinator."""

    stage: FailoverCluster
    member: Member
    before: Struct
    session_ms: int = 0
    told: set[str] = field(default_factory=set)

    @classmethod
    async def of(cls, stage: FailoverCluster, member: Member, session_ms: int = 0) -> Pulse:
        """Look at a member's group before the change; ``session_ms``: 0 where none was set."""
        return cls(stage, member, await stage.env.admin.describe_group(member.group), session_ms)

    async def beat(self) -> Struct:
        """Heartbeat until a coordinator answers for itself; return that answer, or the last."""
        responses: list[Struct] = []

        async def ask() -> Struct | None:
            cluster = self.stage.cluster
            with contextlib.suppress(CallFailed):
                if await cluster.coordinator(self.member.group) in cluster.away:
                    return None
                response = in_session(
                    self.member,
                    await self.member.heartbeat(),
                    self.session_ms or self.stage.env.bounds.sessions.default,
                )
                self.told.add(error_name(response.error_code))
                responses.append(response)
                return None if response.error_code in RETRIABLE else response
            return None

        what = f"a response to {self.member.member_id}'s heartbeat"
        try:
            return await eventually(what, ask, TAKEN_OVER)
        except Undecided:
            cluster = self.stage.cluster
            await demand_bystander(cluster, min(cluster.brokers.keys() - cluster.away), what)
            if not responses:
                raise
            return responses[-1]


async def judge_member(judge: Judge, pulse: Pulse) -> None:
    member, before = pulse.member, {m.member_id: m.member_epoch for m in pulse.before.members}
    epoch = max(member.epoch, before[member.member_id])
    told = await pulse.beat()
    judge["COO-01"].equal("NONE", error_name(told.error_code), "heartbeat at the new coordinator")
    judge["COO-03"].none_but(MOVING, pulse.told, "what else a live member was told")
    judge["COO-02"].holds(told.member_epoch >= epoch, _fell("member", epoch, told.member_epoch))
    found = await pulse.stage.env.admin.describe_group(member.group)
    listed = {each.member_id: each.member_epoch for each in found.members}
    judge["COO-01"].holds(member.member_id in listed, f"the group lost {member.member_id}")
    for name in ("group_epoch", "assignment_epoch"):
        was, now = getattr(pulse.before, name), getattr(found, name)
        judge["COO-02"].holds(now >= was, _fell(name, was, now))
    again = await pulse.beat()
    judge["COO-01"].equal("NONE", error_name(again.error_code), "the heartbeat after that")


def _fell(what: str, before: int, after: int) -> str:
    return f"the {what} fell from {before} to {after}"


async def judge_progress(judge: Judge, roamer: ReconnectingConsumer) -> None:
    """Demand that a group goes on: a new record is delivered, and what is held can be finished."""
    async for _ in attempts(TAKEN_OVER):
        sentinel = await append(roamer.queue, partition=roamer.partition)
        seen = await roamer.take([sentinel])
        judge.holds(sentinel in seen, f"offset {sentinel}, produced afterwards, never came")
        if (told := await roamer.finish()) not in MOVING or told == "NONE":
            break  # else its coordinator is not there yet
    judge.equal("NONE", told, "accepting what the leader gave")


async def judge_came_back(judge: Judge, scene: MixedStates) -> dict[int, int]:
    """Judge a leader that restarted and leads the same partition again; return the counts."""
    seen = await taken(scene, scene.open, TAKEN_OVER)
    if seen.sentinel not in seen.counts:
        raise Undecided(f"nor did a record come that was produced afterwards{seen.told}")
    lost = sorted(scene.held - seen.counts.keys())
    judge.equal([], lost, f"held records that never came again{seen.told}")
    member, where = scene.holder.member, scene.holder.where
    late = Consumer(member, await member.new_session(where[0].leaders[0]), where)
    async for _left in attempts(TAKEN_OVER):
        if not (await late.fetch(max_records=0, max_wait_ms=0)).errors:
            break
    else:
        raise Undecided("no session could be opened at the leader that came back")
    await seen.roamer.ack(release(1, 2))
    for ack in (accept(1, 2), accept(12, 13)):  # nobody's and somebody else's by now
        part = await late.ack(ack)
        judge.holds(part.ack_error, f"an ACCEPT of before the restart got {result(part)}")
    return seen.counts


START = 7  # The start offset in the state of raised.


async def raised(queue: Queue) -> StateKey:
    """Return the state of a queue that nobody consumes, its leader epoch raised to 5 by reading."""
    key = StateKey(queue.env, queue.group, queue.topic.id)
    await key.begun(start=START)
    await key.read(leader_epoch=5)
    if await key.write(leader_epoch=4) != "FENCED_LEADER_EPOCH":
        raise Undecided("the leader epoch could not be raised")
    return key


async def judge_raised(judge: Judge, key: StateKey) -> None:
    judge.equal("FENCED_LEADER_EPOCH", await key.write(leader_epoch=4), "older Write")
    judge.equal("NONE", await key.write(leader_epoch=5), "Write with the raised epoch")


IN_SYNC = "min.insync.replicas"


async def demand(stage: FailoverCluster, in_sync: str) -> str:
    """Demand so many replicas in sync of every state write; return how many were before."""
    before = (await stage.env.admin.configs(TOPIC_RESOURCE, STATE))[IN_SYNC]
    await configure_topic(stage.cluster, STATE, {IN_SYNC: in_sync})
    return before


async def in_force(stage: FailoverCluster, in_sync: str) -> None:
    """Wait until every broker that is there has heard of the demand."""

    async def ask() -> bool | None:
        there = [node for node in stage.nodes if node not in stage.cluster.away]
        shown = [await stage.env.admin.configs(TOPIC_RESOURCE, STATE, node=n) for n in there]
        return True if all(configs[IN_SYNC] == in_sync for configs in shown) else None

    await eventually(f"{IN_SYNC} {in_sync} of {STATE} in force", ask)


@contextlib.asynccontextmanager
async def short_of_replicas(stage: FailoverCluster, away: int) -> AsyncIterator[None]:
    """Stop a broker and demand three replicas in sync of every state write while the block runs."""
    before = await demand(stage, "3")
    try:
        await in_force(stage, "3")
        await stage.stop(away)
        yield
    finally:
        await demand(stage, before)
        await in_force(stage, before)
