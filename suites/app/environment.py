"""What a scenario works with: topics, a group, a tap, and instances of the program under test."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

from fixtures.clients.bounds import HEARTBEAT as HEARTBEAT_INTERVAL
from fixtures.clients.bounds import LOCK, SESSION
from fixtures.clients.cluster import Cluster, Topic, attempts
from fixtures.hostile.tap import Tap
from fixtures.machine.loops import LoopDelay
from fixtures.proxies.exchange import Exchange
from spec.verdict import EnvironmentFault, OutOfReach
from suites.app.deliveries import Deliveries, deliveries_of
from suites.app.faults import Freezer, WriteRefuser
from suites.app.load import Producer, copies, writes_to
from suites.app.program import VARIABLES, Program
from suites.broker.env import Env
from suites.client.wire import HEARTBEAT, SHARE
from suites.options import AppOptions

# Milliseconds of a group session, or what the target allows: killed members stay so long.
SESSION_MS = 5000
QUIET = 1.0  # Seconds without a delivery after which nothing more is expected.
LOOKING = 0.01  # Seconds between two looks at what a program does.
BUSY = 3  # A program that acts and finishes nothing is given so many times the usual patience.


@dataclass(slots=True, kw_only=True)
class Fault:
    what: str
    at: float


def placements(cluster: Cluster, partitions: int) -> list[list[int]]:
    nodes = sorted(cluster.brokers)[:3]
    turns = (index % len(nodes) for index in range(partitions))
    return [nodes[turn:] + nodes[:turn] for turn in turns]


class Environment:
    def __init__(
        self, spec: AppOptions, kafka: Env, tap: Tap, *, group: str, lock: float, folder: Path
    ) -> None:
        self.spec, self.kafka, self.tap = spec, kafka, tap
        self.group, self.lock = group, lock
        self.limit, self.session = 5, 45.0
        self.delay = LoopDelay()
        self.freezer, self.refuser = Freezer(), WriteRefuser()
        self.programs: list[Program] = []
        self.faults: list[Fault] = []
        self.stopping: float | None = None  # When the program was asked to stop.
        self.over = 0.0  # When the scenario was over.
        self.moving = True  # Whether records still came to the program then.
        self._known: tuple[tuple[int, int], Deliveries] = ((0, 0), Deliveries())
        self._log = folder / "program.log"

    async def set_up(self) -> None:
        admin, bounds = self.kafka.admin, self.kafka.bounds
        topic = await admin.create_topic(assignments=placements(self.kafka.cluster, 2))
        self.output = await admin.create_topic(name=f"{topic.name}-output")
        self.dead_letters = await admin.create_topic(name=f"{topic.name}-dead-letters")
        self.refuser.topic = self.output
        wanted = {"share.auto.offset.reset": "earliest", LOCK: str(int(self.lock * 1000))}
        with contextlib.suppress(OutOfReach):
            self.session = bounds.session(SESSION_MS) / 1000
            wanted[SESSION] = str(int(self.session * 1000))
            wanted[HEARTBEAT_INTERVAL] = str(bounds.heartbeats.at_least(SESSION_MS // 5))
        await admin.group_config(self.group, wanted)
        with contextlib.suppress(OutOfReach):
            self.limit = int((await admin.broker_configs())["group.share.delivery.count.limit"])
        self.source = Producer(admin, topic, self.spec, self.kafka.rng)

    @property
    def topic(self) -> Topic:
        return self.source.topic

    # ------------------------------------------------------------------ the program

    async def start(self) -> None:
        values = {
            "bootstrap": ",".join(self.tap.bootstrap),
            "topic": self.topic.name,
            "group": self.group,
            "output": self.output.name,
            "dead_letters": self.dead_letters.name,
        }
        program = Program(self.spec.command or (), values, self._log)
        self.programs.append(program)

        def members() -> int:
            return len({one.request["member_id"] for one in self.tap.of(HEARTBEAT)})

        before, limit = members(), self.spec.starting
        await program.start()
        if not await self.until(lambda: members() > before or not program.running, limit):
            raise EnvironmentFault(
                f"the program joined no share group within {limit:g} s; it has to use "
                f"{VARIABLES['bootstrap']} or {{bootstrap}}: {program.last_words()}"
            )
        if members() == before:
            raise EnvironmentFault(
                f"the program ended with code {program.code} before it joined a share group: "
                f"{program.last_words()}"
            )

    def signal(self, number: Signals) -> None:
        self.note(number.name)
        self.programs[-1].signal(number)

    # ------------------------------------------------------------------ what is seen

    @property
    def exchanges(self) -> list[Exchange]:
        return self.tap.of(*SHARE, group_id=self.group)

    def deliveries(self) -> Deliveries:
        seen = self.exchanges
        state = len(seen), sum(one.response is None for one in seen)
        if state != self._known[0]:
            self._known = state, deliveries_of(seen, self.lock)
        return self._known[1]

    def writes_to(self, topic: Topic) -> bool:
        return any(writes_to(topic, one) for one in self.tap.of("Produce"))

    async def until(self, look: Callable[[], object], within: float) -> bool:
        deadline = time.monotonic() + within
        while not look():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(LOOKING)
        return True

    async def let_last(self, seconds: float) -> None:
        await self.until(lambda: not any(program.running for program in self.programs), seconds)

    async def caught(self) -> bool:
        def came() -> bool:
            ours = (self.source.sent.get(place) for place in self.deliveries().of)
            return any(one is not None and not one.poison for one in ours)

        return await self.until(came, self.spec.patience)

    async def acting(self) -> bool:
        return await self.caught() and await self.until(
            lambda: self.writes_to(self.output) or self.deliveries().last_ack > 0,
            self.spec.patience,
        )

    async def drained(self) -> None:
        best, finished = -1, time.monotonic()
        async for _ in attempts(3600.0, pause=0.1):
            now, seen = time.monotonic(), self.deliveries()
            # Who waits for the machine half of the time is given twice the time.
            asked = self.spec.patience / max(0.2, 1 - self.delay.part)
            # A killed member keeps its locks and its partitions until its session ends.
            longer = max(asked, 2 * self.lock, self.lock + self.session)
            done = sum(seen.finished(place, self.limit, now) for place in self.source.sent)
            if done > best:
                best, finished = done, now
            whole = done == len(self.source.sent)
            writing = self.tap.of("Produce")
            over = sum(seen.finished(place, self.limit, now) for place in seen.of) - done
            running = any(program.running for program in self.programs)
            left = over < copies(writing, self.topic)
            self.moving = running and (left or now - seen.last < QUIET)
            acted = max(finished, seen.last_ack, *(one.sent for one in writing[-1:]))
            patience = longer if 0 < done < len(self.source.sent) else asked
            busy = asked if whole else BUSY * patience
            idle = now - acted > patience or now - finished > busy
            if (whole and not self.moving) or idle or not running:
                return

    # ------------------------------------------------------------------ what is done

    def note(self, what: str) -> None:
        self.faults.append(Fault(what=what, at=time.monotonic()))

    async def move_leader(self) -> None:
        others = [node for node in self.kafka.cluster.brokers if node != self.topic.leaders[0]]
        if not others:
            raise OutOfReach("there is one broker, and no other to lead a partition")
        self.note("leader moved")
        self.source.topic = await self.kafka.admin.move_leader(self.topic, min(others))

    async def add_partition(self) -> None:
        self.note("partition added")
        count = len(self.topic.leaders)
        self.source.topic = await self.kafka.admin.create_partitions(
            self.topic, count + 1, assignments=placements(self.kafka.cluster, count + 1)[count:]
        )

    async def close(self) -> None:
        self.over = self.over or time.monotonic()
        self.freezer.thaw()
        for program in self.programs:
            await program.stop(self.spec.grace)


@contextlib.asynccontextmanager
async def open_environment(
    spec: AppOptions, kafka: Env, *, lock: float, folder: Path
) -> AsyncIterator[Environment]:
    cluster = kafka.cluster
    security = cluster.info.security
    tap = Tap(schemas=cluster.schemas, brokers=dict(cluster.brokers), security=security)
    await tap.start()
    env = Environment(spec, kafka, tap, group=cluster.fresh_name("g"), lock=lock, folder=folder)
    tap.add(env.freezer, env.refuser)
    try:
        await env.set_up()
        yield env
    finally:
        env.delay.stop()
        await asyncio.shield(env.close())
        await tap.stop()
