"""The start of a log moves past records that no group has finished."""

from __future__ import annotations

import time

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.clients.admin import EARLIEST, LATEST, TOPIC_RESOURCE
from fixtures.clients.configs import alter
from fixtures.wire.errors import error_name
from spec.history import Deletion, Outcome
from spec.verdict import Undecided


@fault(
    "delete-records",
    "Delete all records of a partition (DeleteRecords).",
    lasts=(0.5, 1.0),
    takes={Resource.LOG},
)
class DeleteRecords(Injection):
    """An admin deletes all records there are."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index, self.before = world.partition(subject), -1

    async def inject(self) -> str:
        """Delete them."""
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
        """See a later start."""
        now = await self._start()
        return f"the log starts at {now}, not at {self.before}" if now > self.before else ""

    async def heal(self) -> None:
        """Nothing to heal: the records are gone."""

    async def healed(self) -> str:
        """See the log's start."""
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
        """Shorten segments and retention."""
        self.before = await self._start()
        await self._set("1000")
        return f"{self.world.course.topic.name} keeps records for a second"

    async def heal(self) -> None:
        """Keep records as before."""
        await self._set(None)

    async def _set(self, value: str | None) -> None:
        name = self.world.course.topic.name
        wanted = dict.fromkeys(self._SETTINGS, value)
        answer = await alter(self.world.cluster, TOPIC_RESOURCE, name, wanted)
        if answer.error_code:
            raise Undecided(f"altering {name}: {error_name(answer.error_code)}")
