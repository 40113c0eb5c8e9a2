"""Clusters, queues and faults for tests that are no coroutines: what ``shareproof.testing`` gives.

Everything of the cluster runs in an event loop and a thread of its own; calls block.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from fixtures.clients.bounds import LOCK
from fixtures.clients.cluster import Topic
from fixtures.clients.member import AckType
from fixtures.hostile.script import ScriptStep
from fixtures.hostile.tap import Tap
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import LoopThread
from fixtures.proxies.exchange import Exchange
from fixtures.wire.schema import Schemas
from suites.app.deliveries import Deliveries, Delivery, deliveries_of
from suites.app.environment import placements
from suites.app.faults import Freezer, WriteRefuser
from suites.app.program import VARIABLES
from suites.broker.env import Env, open_env
from suites.client.wire import HEARTBEAT, SHARE, lines

T = TypeVar("T")
LIMIT = 5  # Kafka's default of ``group.share.delivery.count.limit``.
WITHIN = 30.0  # Seconds that a test waits, unless it says otherwise.
LOOKING = 0.02  # Seconds between two looks meanwhile.


class NotFinished(AssertionError):
    """Records of a queue are not finished in time; says which, and what was said."""


class ShareCluster:
    """A cluster behind a tap that sees every frame of the clients that use ``bootstrap``."""

    def __init__(self, info: ClusterInfo) -> None:
        self.info = info
        self.freezer, self.refuser = Freezer(), WriteRefuser()
        self._loop, self._stack = LoopThread(), contextlib.AsyncExitStack()
        self.kafka: Env
        self.tap: Tap

    def __enter__(self) -> ShareCluster:
        self._loop.start()
        schemas = Schemas.from_jar(self.info.schema_jar)
        opened = open_env(self.info, Random(), [], schemas)
        self.kafka = self._loop.run(self._stack.enter_async_context(opened))
        cluster = self.kafka.cluster
        self.tap = Tap(schemas=schemas, brokers=dict(cluster.brokers), security=self.info.security)
        self._loop.run(self.tap.start())
        self.tap.add(self.freezer, self.refuser)
        return self

    def __exit__(self, *_: object) -> None:
        self.freezer.thaw()
        self._loop.run(self.tap.stop())
        self._loop.run(self._stack.aclose())
        self._loop.stop()

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers, as clients want them."""
        return ",".join(self.tap.bootstrap)

    def topic(self, partitions: int = 1) -> Topic:
        """Create a topic, such as one for results; return it with its ``name``."""
        return self.run(
            self.kafka.admin.create_topic(assignments=placements(self.kafka.cluster, partitions))
        )

    def queue(
        self,
        values: Sequence[bytes] = (),
        *,
        partitions: int = 1,
        lock_ms: int | None = None,
        group_config: Mapping[str, str] | None = None,
    ) -> Queue:
        """Create a topic with records in its first partition, and a group that reads all of it.

        Locks last ``lock_ms``, or by the cluster's default; ``group_config`` is what else is set.
        """
        queue = Queue(self, self.topic(partitions), self.kafka.cluster.fresh_name("g"))
        wanted = {"share.auto.offset.reset": "earliest", **(group_config or {})}
        if lock_ms is not None:
            wanted[LOCK] = str(self.kafka.bounds.lock(lock_ms))
        self.run(self.kafka.admin.group_config(queue.group, wanted))
        if values:
            queue.produce(values)
        return queue

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the cluster, and return what it returns."""
        return self._loop.run(work)

    def call(self, what: Callable[[], object]) -> None:
        """Call something in the event loop of the cluster."""

        async def called() -> None:
            what()

        self.run(called())

    def step(self, **fields: Any) -> ScriptStep:
        """Add a step to the script of the tap: what it does to a response, and when.

        The fields are those of docs/hostile-broker.md, as in
        ``step(on="ShareFetch", do="error", code="NOT_LEADER_OR_FOLLOWER", times=3)``.
        """
        (made,) = self.tap.script.add(fields)
        return made

    def said(self) -> str:
        """Return what was said so far, one line for each exchange, for a test that fails."""
        return "\n".join(lines(self.tap.of(*SHARE, HEARTBEAT, "Produce")))


class Queue:
    """A topic that a share group reads, and what became of its records, as the frames tell it.

    Offsets are those of the first partition, unless ``partition`` is set.
    """

    def __init__(self, cluster: ShareCluster, topic: Topic, group: str) -> None:
        self.cluster, self.made, self.group = cluster, topic, group
        self.partition = 0
        self.count = 0  # How many records were produced to the first partition.

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.made.name

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers, behind which every frame is seen."""
        return self.cluster.bootstrap

    def produce(self, values: Sequence[bytes]) -> None:
        """Append records to the first partition, in one batch."""
        self.cluster.run(self.cluster.kafka.admin.produce(self.made, list(values)))
        self.count += len(values)

    @contextlib.contextmanager
    def running(
        self, command: Sequence[str], *, grace: float = 10.0, **env: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program with ``SHAREPROOF_BOOTSTRAP``, ``_TOPIC`` and ``_GROUP`` set.

        It gets SIGTERM at the end, and SIGKILL if it does not end within ``grace`` seconds.
        """
        told = {"bootstrap": self.bootstrap, "topic": self.topic, "group": self.group}
        variables = {VARIABLES[name]: value for name, value in told.items()}
        with subprocess.Popen(command, env={**os.environ, **variables, **env}) as process:
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(grace)
                except subprocess.TimeoutExpired:
                    process.kill()

    # ------------------------------------------------------------------ what is seen

    @property
    def exchanges(self) -> list[Exchange]:
        """The share fetches and acknowledgements of the group."""
        return self.cluster.tap.of(*SHARE, group_id=self.group)

    def _deliveries(self) -> Deliveries:
        return deliveries_of(self.exchanges, 30.0)

    @property
    def deliveries(self) -> list[Delivery]:
        """Each delivery, record by record: member, delivery count, how it was acknowledged."""
        return [*self._deliveries()]

    @property
    def accepted(self) -> list[int]:
        """The offsets that were accepted, and the broker took it."""
        return self._acknowledged(AckType.ACCEPT)

    @property
    def rejected(self) -> list[int]:
        """The offsets that were rejected, and the broker took it."""
        return self._acknowledged(AckType.REJECT)

    @property
    def released(self) -> list[int]:
        """The offsets that were released at least once."""
        return self._acknowledged(AckType.RELEASE)

    def _acknowledged(self, kind: AckType) -> list[int]:
        return sorted({one.place[2] for one in self._mine() if one.kind is kind and not one.error})

    def _mine(self) -> list[Delivery]:
        return [one for one in self.deliveries if one.place[1] == self.partition]

    @property
    def held(self) -> list[int]:
        """The offsets that members hold now."""
        found = self._deliveries().held(time.monotonic())
        return sorted(one.place[2] for one in found if one.place[1] == self.partition)

    @property
    def locks_ended(self) -> list[int]:
        """The offsets whose lock ended while a member held them, once for each time."""
        now = time.monotonic()
        return sorted(one.place[2] for one in self._mine() if one.lapsed(now))

    @property
    def unfinished(self) -> list[int]:
        """The offsets that are not accepted, rejected or archived yet."""
        now, seen = time.monotonic(), self._deliveries()
        places = ((self.made.id, 0, offset) for offset in range(self.count))
        return [place[2] for place in places if not seen.finished(place, LIMIT, now)]

    def wait(self, within: float = WITHIN) -> None:
        """Wait until every record is finished; raises NotFinished after ``within`` seconds."""
        self.wait_for(lambda: not self.unfinished, f"{self.topic}: finished records", within)

    def wait_held(self, within: float = WITHIN) -> None:
        """Wait until members hold records; raises NotFinished after ``within`` seconds."""
        self.wait_for(lambda: self.held, f"{self.topic}: records in hand", within)

    def wait_for(self, look: Callable[[], object], what: str, within: float = WITHIN) -> None:
        """Wait until something is true; the NotFinished that is raised else says ``what``."""
        deadline = time.monotonic() + within
        while not look():
            if time.monotonic() > deadline:
                left = f"unfinished offsets {self.unfinished}"
                raise NotFinished(f"no {what} within {within:g} s; {left}\n{self.cluster.said()}")
            time.sleep(LOOKING)


class Chaos:
    """What breaks around the clients of a cluster."""

    def __init__(self, cluster: ShareCluster) -> None:
        self.cluster = cluster

    def move_leader(self, queue: Queue, partition: int = 0) -> int:
        """Make another broker the leader of a partition; return its id."""
        others = set(self.cluster.kafka.cluster.brokers) - {queue.made.leaders[partition]}
        moved = self.cluster.kafka.admin.move_leader(queue.made, min(others), partition)
        queue.made = self.cluster.run(moved)
        return min(others)

    @contextlib.contextmanager
    def frozen(self, queue: Queue, partition: int = 0) -> Iterator[None]:
        """Freeze the broker that leads a partition: its connections stay, and nothing passes."""
        self.cluster.freezer.freeze(queue.made.leaders[partition])
        try:
            yield
        finally:
            self.cluster.call(self.cluster.freezer.thaw)

    def lose_responses(self, times: int = 1) -> ScriptStep:
        """Close the connection instead of responding to the next acknowledgements."""
        on = ["ShareAcknowledge", "ShareFetch"]
        return self.cluster.step(on=on, when={"has": "acks"}, do="close", times=times)

    def refuse_writes(self, topic: Topic, times: int = 1) -> None:
        """Let the next writes to a topic fail."""
        self.cluster.refuser.topic, self.cluster.refuser.left = topic, times

    def close_connections(self) -> None:
        """Close every connection: share sessions, and the locks they hold, end."""
        self.cluster.call(self.cluster.tap.close_connections)
