"""Records go from a log: deleted, expired or compacted before any group has finished them."""

import asyncio
import time

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.clients.admin import EARLIEST, LATEST
from fixtures.clients.configs import configure_topic
from fixtures.interface.capability import Capability
from fixtures.wire.records import Record, encode_batch
from fixtures.workload.payload import stranger
from fixtures.workload.recorder import unanswered
from spec.history import Deletion, Outcome

_KEYS = 15
_BATCHES = 6
_PRODUCER = 1 << 20  # Numbers from here on are no producer's of the load.


@fault(
    "delete-records",
    "Delete all records of a partition (DeleteRecords).",
    lasts=(0.5, 1.0),
    takes={Resource.LOG},
)
class DeleteRecords(Injection):
    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index, self.before = world.partition(subject), -1

    async def inject(self) -> str:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        self.before = await self._start()
        end = await self.world.admin.log_offset(topic, LATEST, self.index)
        sent = time.monotonic_ns()
        await self.world.admin.delete_records(topic, end, self.index)
        course = self.world.course
        log, received = course.log_of(self.index), time.monotonic_ns()
        course.journal.add(Deletion(log, end, sent, received, int(Outcome.OK)))
        return f"{topic.name}-{self.index}, offsets {self.before} to {end - 1}"

    async def hit(self) -> str:
        now = await self._start()
        return f"the log starts at {now}, not at {self.before}" if now > self.before else ""

    async def heal(self) -> None:
        """Nothing to heal: the records are gone."""

    async def healed(self) -> str:
        return f"the log starts at {await self._start()}"

    async def _start(self) -> int:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        return await self.world.admin.log_offset(topic, EARLIEST, self.index)


@fault(
    "expire-records",
    "Set retention.ms of a topic to a second.",
    lasts=(4.0, 7.0),
    takes={Resource.LOG},
    relies_on={Resource.CLOCK},
)
class Expire(DeleteRecords):
    """The topic keeps records for a second only, for as long as the fault lasts."""

    _SETTINGS = ("retention.ms", "segment.ms")

    async def inject(self) -> str:
        self.before = await self._start()
        await self._set("1000")
        return f"{self.world.course.topic.name} keeps records for a second"

    async def heal(self) -> None:
        await self._set(None)

    async def _set(self, value: str | None) -> None:
        name = self.world.course.topic.name
        wanted = dict.fromkeys(self._SETTINGS, value)
        await configure_topic(self.world.cluster, name, wanted)


@fault(
    "compact", "Compact the log of a keyed topic.", Capability.COMPACTED_TOPIC, takes={Resource.LOG}
)
class Compact(Injection):
    """Write some keys again and again, and wait until the older records are gone."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index = world.partition(subject)
        self.producer = _PRODUCER + time.monotonic_ns() // 1_000_000 % _PRODUCER
        self.bases: list[int] = []

    async def inject(self) -> str:
        topic = self.world.course.topic
        for number in range(_BATCHES):
            self.bases.append(await self._write(number))
            await asyncio.sleep(0.3)
        return f"{topic.name}-{self.index}, {_KEYS} keys from offset {self.bases[0]} on"

    async def _write(self, number: int) -> int:
        course = self.world.course
        log = course.log_of(self.index)
        first = number * _KEYS
        records = [
            Record(key=b"again-%d" % key, value=stranger(self.producer, log, first + key))
            for key in range(_KEYS)
        ]
        # They may vanish and they may come, so where they went is nobody's to know.
        course.journal.add(unanswered(log, _KEYS, self.producer, first))
        topic = await self.world.cluster.topic(course.topic.name)
        return await self.world.admin.append(topic, encode_batch(records), self.index)

    async def hit(self) -> str:
        first, last = self.bases[0], self.bases[-2] + _KEYS
        left = await self.world.offsets(self.world.course.topic.name, self.index, first, last)
        written = {base + key for base in self.bases[:-1] for key in range(_KEYS)}
        gone = written - left
        return f"{len(gone)} offsets from {min(gone)} on hold nothing any more" if gone else ""

    async def heal(self) -> None:
        """Nothing to heal: the records are gone."""

    async def healed(self) -> str:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        end = await self.world.admin.log_offset(topic, partition=self.index)
        return f"the log goes on to {end}"
