"""Carries scenarios out on a cluster: topics and groups, processes, the fault, the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from benchmarks.patterns.crew import PRODUCING, WARMING, Crew
from benchmarks.patterns.events import Course
from benchmarks.patterns.scenes import NOTICED_MS, PARTITIONS, Fault, Scene
from benchmarks.patterns.workload import KMQ, NAMES, SHARE
from fixtures.clients.admin import Admin
from fixtures.clients.cluster import SHARE as SHARE_KEY
from fixtures.clients.cluster import Cluster, attempts, eventually, share_key
from fixtures.targets import Target
from fixtures.wire.connection import CallFailed
from spec.verdict import Undecided

PROPERTIES = {
    "group.consumer.min.session.timeout.ms": str(NOTICED_MS),
    "group.consumer.session.timeout.ms": str(NOTICED_MS),
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.session.timeout.ms": str(NOTICED_MS),
    "group.share.heartbeat.interval.ms": "1000",
}
"""Of the cluster: all groups notice at the same time that a member is gone."""
_JOINED_WITHIN, _PRODUCED_WITHIN, _DRY_WITHIN = 60.0, 90.0, 60.0
_FROZEN, _AWAY, _TRACKERLESS = 10.0, 5.0, 2.0
_PLACES = 60
_STARTING = 4_000_000_000
"""Nanoseconds that producers have to start, so that they begin together on a busy machine too."""

Tell = Callable[[str], None]


@dataclass(slots=True)
class Played:
    """What came of a scenario: its time 0, when something broke, and each system's course."""

    scene: Scene
    began: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    courses: dict[str, Course] = field(default_factory=dict)


class Stage:
    def __init__(self, target: Target, cluster: Cluster, out: Path, seconds: float) -> None:
        self.target, self.cluster, self.out, self.seconds = target, cluster, out, seconds
        self.admin = Admin(cluster)
        self.victim = -1

    async def play(self, scene: Scene, systems: Sequence[str], tell: Tell) -> list[Played]:
        wanted = [one for one in systems if scene.only in ("", one)]
        turns = [wanted] if scene.together else [[one] for one in wanted]
        found = []
        for turn in turns:
            tell(f"{scene.name}: {', '.join(NAMES[one] for one in turn)}")
            if turn:
                found.append(await self._play(scene, turn))
        return found

    async def _play(self, scene: Scene, systems: Sequence[str]) -> Played:
        self.victim = await self._choose_victim(scene)
        bootstrap = ",".join(self.cluster.info.bootstrap)
        crews = [Crew(scene, one, self.out / scene.name / one, bootstrap) for one in systems]
        played = Played(scene)
        try:
            await asyncio.gather(*(self._prepare(crew) for crew in crews))
            await asyncio.gather(*(self._joined(crew) for crew in crews))
            await asyncio.gather(*(self._warmed_up(crew) for crew in crews))
            played.began = time.monotonic_ns() + _STARTING
            for crew in crews:
                crew.produce(self.seconds, played.began)
            await asyncio.gather(self._break(scene, crews, played), *map(self._produced, crews))
            drained = await asyncio.gather(*(self._drained(crew) for crew in crews))
            for crew in crews:
                crew.check()
        finally:
            await asyncio.gather(*(crew.end() for crew in crews))
        down = played.courses.pop("", Course()).down
        for crew, is_drained in zip(crews, drained, strict=True):
            course = played.courses[crew.system] = crew.course()
            course.drained, course.down = is_drained, down
        return played

    async def _choose_victim(self, scene: Scene) -> int:
        """Return the broker that is to lead partition 0 and to die: not the active controller."""
        nodes = sorted(self.cluster.brokers)
        if scene.fault is not Fault.LEADER or len(nodes) == 1:
            return nodes[0]
        controller = await self.cluster.active_controller()
        return next(node for node in nodes if node != controller)

    async def _prepare(self, crew: Crew) -> None:
        nodes = sorted(self.cluster.brokers)
        others = [node for node in nodes if node != self.victim]
        placed = [[self.victim, *others], [*others[::-1], self.victim]]
        safe = [[*others, self.victim], [*others[::-1], self.victim]]
        configs = {"min.insync.replicas": str(min(2, len(nodes)))}
        topic = await self.admin.create_topic(assignments=placed, configs=configs)
        assert len(topic.leaders) == PARTITIONS
        markers = ""
        if crew.system == KMQ:
            markers = (await self.admin.create_topic(assignments=safe, configs=configs)).name
        group = await self._group(crew, topic.id)
        if crew.system == SHARE:
            wanted = {"share.auto.offset.reset": "earliest"}
            wanted["share.record.lock.duration.ms"] = str(NOTICED_MS)
            await self.admin.group_config(group, wanted)
        crew.start(topic.name, group, markers, self.seconds)

    async def _group(self, crew: Crew, topic_id: UUID) -> str:
        """Return the name of a group whose coordinators outlive the broker that dies."""
        for _ in range(_PLACES):
            group = self.cluster.fresh_name(crew.system)
            keys = [(group, 0)]
            if crew.system == KMQ:
                keys.append((f"{group}-tracker", 0))
            if crew.system == SHARE:
                keys += [(share_key(group, topic_id, n), SHARE_KEY) for n in range(PARTITIONS)]
            nodes = [await self.cluster.coordinator(*key) for key in keys]
            if self.victim not in nodes or len(self.cluster.brokers) == 1:
                return group
        raise Undecided(f"of {_PLACES} groups all have broker {self.victim} as a coordinator")

    async def _joined(self, crew: Crew) -> None:
        async def ask() -> bool | None:
            crew.check()
            if crew.system == KMQ and not await self._stable(crew.trackers, 1, share=False):
                return None
            share = crew.system == SHARE
            return True if await self._stable(crew.group, crew.scene.members, share=share) else None

        await eventually(f"all members of {crew.group} joining", ask, _JOINED_WITHIN)

    async def _stable(self, group: str, members: int, *, share: bool) -> bool:
        api = "ShareGroupDescribe" if share else "ConsumerGroupDescribe"
        found = (await self.cluster.at_coordinator(group, api, group_ids=[group])).groups[0]
        settled = found.group_state == "Stable" and len(found.members) == members
        return bool(settled and all(m.member_epoch == found.group_epoch for m in found.members))

    async def _warmed_up(self, crew: Crew) -> None:
        crew.warm_up()
        await crew.produced(WARMING, _PRODUCED_WITHIN)
        if not await self._drained(crew):
            raise Undecided(f"{crew.group} did not get to its end before anything broke")

    async def _produced(self, crew: Crew) -> None:
        await crew.produced(PRODUCING, self.seconds + _PRODUCED_WITHIN)

    async def _break(self, scene: Scene, crews: Sequence[Crew], played: Played) -> None:
        if scene.fault.traps:
            await asyncio.gather(*(self._break_member(scene.fault, c, played) for c in crews))
        elif scene.fault is Fault.LEADER:
            begun = played.began / 1e9 - time.monotonic()
            await asyncio.sleep(begun + self.seconds * 0.3)
            broker = next(one for one in self.target.brokers if one.node_id == self.victim)
            self.cluster.away.add(self.victim)
            at = time.monotonic_ns()
            await asyncio.to_thread(broker.kill)
            await asyncio.sleep(_AWAY)
            await asyncio.to_thread(broker.start)
            self.cluster.away.discard(self.victim)
            played.courses[""] = Course(down=(at, time.monotonic_ns()))
            played.faults |= {crew.system: at for crew in crews}

    async def _break_member(self, fault: Fault, crew: Crew, played: Played) -> None:
        member = await crew.trapped(self.seconds + 30)
        if fault is Fault.FREEZE:
            played.faults[crew.system] = await crew.freeze(member, _FROZEN)
            return
        played.faults[crew.system] = crew.kill(member)
        if fault is Fault.TRACKER:
            crew.kill_tracker()
            await asyncio.sleep(_TRACKERLESS)
            crew.track()

    async def _drained(self, crew: Crew) -> bool:
        """Wait until the system itself says that nothing is left, and return whether it did."""
        async for _ in attempts(_DRY_WITHIN, pause=0.2):
            crew.check()
            try:
                if await self._lag(crew) == 0:
                    return True
            except (CallFailed, Undecided):
                continue
        return False

    async def _lag(self, crew: Crew) -> int:
        if crew.system == SHARE:
            topic = await self.cluster.topic(crew.topic)
            offsets = await self.admin.share_offsets(crew.group, topic)
            return sum(one.lag if one.lag >= 0 else 1 for one in offsets.values())
        lag = await self._behind(crew.group, crew.topic)
        if crew.system == KMQ:
            lag += await self._behind(crew.trackers, crew.markers)
        return lag

    async def _behind(self, group: str, name: str) -> int:
        topic = await self.cluster.topic(name)
        asked = [{"name": name, "partition_indexes": list(topic.partitions)}]
        answer = await self.cluster.at_coordinator(
            group, "OffsetFetch", version=8, groups=[{"group_id": group, "topics": asked}]
        )
        parts = answer.groups[0].topics[0].partitions
        ends = {n: await self.admin.log_offset(topic, partition=n) for n in topic.partitions}
        return sum(ends[p.partition_index] - max(0, p.committed_offset) for p in parts)
