"""Carries scenarios out on a cluster: topics and groups, processes, the fault, the end."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

from benchmarks.patterns.events import Course, Dead, gather, read
from benchmarks.patterns.workload import KMQ, NAMES, SHARE, Producing, Working
from fixtures.adapters.clients import confluent_python
from fixtures.adapters.versions import NEWEST
from fixtures.clients.admin import Admin
from fixtures.clients.cluster import SHARE as SHARE_KEY
from fixtures.clients.cluster import Cluster, attempts, eventually, share_key
from fixtures.targets import Target
from fixtures.wire.connection import CallFailed
from spec.verdict import EnvironmentFault, Undecided

PARTITIONS = 2
NOTICED_MS = 6000
"""Whoever has a time to notice that a member is gone has this one: the lock of the share group, the
session of the consumer group, the time KMQ allows from start to end."""


class Fault(Enum):
    NONE = "nothing breaks"
    KILL = "kill -9 of a member that works on a record"
    FREEZE = "SIGSTOP of a member that works on a record, SIGCONT 10 s later"
    TRACKER = "kill -9 of such a member and of KMQ's tracker; another tracker 2 s later"
    LEADER = "kill -9 of the broker that leads partition 0, and its start 5 s later"

    @property
    def traps(self) -> bool:
        return self in (Fault.KILL, Fault.FREEZE, Fault.TRACKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A scenario.

    Attributes:
        question: what it is to show.
        together: all three systems at the same time on the cluster, as light ones may and the death
            of a broker must; else one after the other, with the whole machine for each.
        records: how many are produced; ``per_second`` of the seconds asked for, or a fixed number.
        rate: records a second, 0 for all at once before anybody works.
        batch: records a poll, and in a batch of the log.
        slow_ms: how long the work on one record in the middle takes.
        only: the one system that it is about.
        judged: whether its history is, too; a large one without a fault says little and takes long.
    """

    name: str
    question: str
    members: int = 4
    handler_ms: float = 10.0
    fixed: int = 0
    rate: float = 60.0
    batch: int = 10
    slow_ms: float = 0.0
    fault: Fault = Fault.NONE
    together: bool = True
    only: str = ""
    judged: bool = True

    def records(self, seconds: float) -> int:
        return self.fixed or int(self.rate * seconds)

    def marked(self, seconds: float) -> int:
        """Return the number of the record that is slow or a trap, all others being numbered from 0.

        It is of partition 0 and the second of its batch: one is before it, and several behind it.
        """
        burst = self.batch * PARTITIONS
        middle = int(self.records(seconds) * 0.3)
        return middle - middle % burst + PARTITIONS


_ALL = (
    Scene(
        name="parallel",
        question="Do more members than partitions help, where each record takes 20 ms?",
        members=6,
        handler_ms=20,
        fixed=600,
        rate=0,
        together=False,
    ),
    Scene(
        name="throughput",
        question="How fast are two members without work?",
        members=2,
        handler_ms=0,
        fixed=30_000,
        rate=0,
        batch=500,
        together=False,
        judged=False,
    ),
    Scene(
        name="blocking",
        question="Which records does a record delay that takes 4 s?",
        handler_ms=5,
        slow_ms=4000,
    ),
    Scene(
        name="crash",
        question="When are the records of a killed member redelivered, and who waits meanwhile?",
        fault=Fault.KILL,
    ),
    Scene(
        name="freeze",
        question="The same with a member that is frozen and comes back after 10 s.",
        fault=Fault.FREEZE,
    ),
    Scene(
        name="tracker",
        question="What if KMQ's tracker is killed together with the member?",
        fault=Fault.TRACKER,
        only="kmq",
    ),
    Scene(
        name="leader",
        question="What if the leader of a partition is killed?",
        fault=Fault.LEADER,
    ),
)
SCENES: Mapping[str, Scene] = MappingProxyType({scene.name: scene for scene in _ALL})


ROOT = Path(__file__).resolve().parents[2]
_ENDS_WITHIN = 20.0
WARMING, PRODUCING = "producer-warm", "producer"


class Crew:
    """Processes that are started here and ended here."""

    def __init__(self, scene: Scene, system: str, folder: Path, bootstrap: str) -> None:
        self.scene, self.system, self.folder, self.bootstrap = scene, system, folder, bootstrap
        self.python = str(confluent_python(NEWEST["confluent"]))
        self.members: list[subprocess.Popen[bytes]] = []
        self.others: list[subprocess.Popen[bytes]] = []
        self.dead: list[Dead] = []
        self.topic = self.group = self.markers = ""
        self._fired = folder / "fired"
        folder.mkdir(parents=True)

    @property
    def trackers(self) -> str:
        return f"{self.group}-tracker"

    def start(self, topic: str, group: str, markers: str, seconds: float) -> None:
        self.topic, self.group, self.markers = topic, group, markers
        scene = self.scene
        marked = scene.marked(seconds)
        for number in range(scene.members):
            work = Working(
                system=self.system,
                bootstrap=self.bootstrap,
                topic=topic,
                group=group,
                markers=markers,
                events=str(self.folder / f"member-{number}.events"),
                batch=scene.batch,
                handler_ms=scene.handler_ms,
                slow=marked if scene.slow_ms else None,
                slow_ms=scene.slow_ms,
                trap=marked if scene.fault.traps else None,
                fired=str(self._fired),
            )
            name = f"member-{number}"
            words = json.dumps(asdict(work))
            self.members.append(self._run(name, "benchmarks.patterns.member", words))
        if self.system == KMQ:
            self.track()

    def track(self) -> None:
        options = ["--bootstrap", self.bootstrap, "--markers", self.markers]
        options += ["--group", self.trackers, "--timeout-ms", str(NOTICED_MS)]
        self.others.append(self._run("tracker", "benchmarks.kmq.tracker", *options))

    def warm_up(self) -> None:
        """Produce some records that are not measured, so that nobody does anything first later."""
        records = 4 * self.scene.batch * PARTITIONS
        self._produce(WARMING, time.monotonic_ns(), -records, records, 0)

    def produce(self, seconds: float, begin: int) -> None:
        self._produce(PRODUCING, begin, 0, self.scene.records(seconds), self.scene.rate)

    def _produce(self, name: str, begin: int, first: int, records: int, rate: float) -> None:
        asked = Producing(
            bootstrap=self.bootstrap,
            topic=self.topic,
            partitions=PARTITIONS,
            events=str(self.folder / f"{name}.events"),
            begin=begin,
            first=first,
            records=records,
            rate=rate,
            burst=self.scene.batch * PARTITIONS,
        )
        words = json.dumps(asdict(asked))
        self.others.append(self._run(name, "benchmarks.patterns.producer", words))

    async def produced(self, name: str, within: float) -> None:
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if any(one[0] == "produced" for one in read(self.folder / f"{name}.events")):
                return
            self.check()
            await asyncio.sleep(0.2)
        raise EnvironmentFault(f"{self.folder.name}: not produced within {within:g} s")

    async def trapped(self, within: float) -> int:
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            for number in range(len(self.members)):
                file = self.folder / f"member-{number}.events"
                if file.is_file() and b'"trapped"' in file.read_bytes():
                    return number
            self.check()
            await asyncio.sleep(0.05)
        raise EnvironmentFault(f"{self.folder.name}: nobody got the record that is the trap")

    def kill(self, number: int) -> int:
        at = time.monotonic_ns()
        self.members[number].kill()
        self._fired.touch()
        self.dead.append(Dead(number, at))
        return at

    def kill_tracker(self) -> None:
        self.others[0].kill()
        self.others[0].wait()
        del self.others[0]

    async def freeze(self, number: int, seconds: float) -> int:
        """Freeze a member that is in the trap; it goes on after some seconds. Return when."""
        at = time.monotonic_ns()
        self.members[number].send_signal(signal.SIGSTOP)
        self._fired.touch()
        await asyncio.sleep(seconds)
        self.members[number].send_signal(signal.SIGCONT)
        self.dead.append(Dead(number, at, time.monotonic_ns()))
        return at

    def check(self) -> None:
        gone = {one.member for one in self.dead if one.until < 0}
        alive = [one for number, one in enumerate(self.members) if number not in gone]
        for process in (*alive, *self.others):
            if process.poll():
                said = [path.read_text(errors="replace") for path in self.folder.glob("*.stderr")]
                words = " | ".join(line for text in said for line in text.splitlines()[-3:])
                raise EnvironmentFault(f"{self.folder.name}: a process died: {words[-600:]}")

    async def end(self) -> None:
        await asyncio.to_thread(_end, [*self.members, *self.others])

    def _run(self, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.stderr").open("ab") as errors:
            return subprocess.Popen(
                [self.python, "-m", module, *arguments],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for one in processes:
        if one.poll() is None:
            one.send_signal(signal.SIGCONT)
            one.terminate()
    deadline = time.monotonic() + _ENDS_WITHIN
    for one in processes:
        try:
            one.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


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
            course = played.courses[crew.system] = gather(crew.folder)
            course.dead, course.drained, course.down = crew.dead, is_drained, down
        return played

    async def _choose_victim(self, scene: Scene) -> int:
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
