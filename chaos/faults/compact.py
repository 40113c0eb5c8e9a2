"""Compaction takes records out of a log whose group has not got to them, or holds them.

What vanishes are records of our own that supersede each other; those of the load have a key each.
"""

from __future__ import annotations

import asyncio
import time

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.wire.records import Record, encode_batch
from fixtures.workload.payload import stranger
from spec.history import Outcome, Produced, Transaction

_KEYS = 15
_BATCHES = 6
_BETWEEN = 0.3
_PRODUCER = 1 << 20
"""Numbers from here on are no producer's of the load."""


@fault(
    "compact",
    "Compact the log of a keyed topic.",
    Capability.COMPACTED_TOPIC,
    takes={Resource.LOG},
)
class Compact(Injection):
    """Write some keys again and again, and wait until the older records are gone."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index = world.partition(subject)
        self.producer = _PRODUCER + time.monotonic_ns() // 1_000_000 % _PRODUCER
        self.bases: list[int] = []

    async def inject(self) -> str:
        """Write the batches, between those of the load."""
        topic = self.world.course.topic
        for number in range(_BATCHES):
            self.bases.append(await self._write(number))
            await asyncio.sleep(_BETWEEN)
        return f"{topic.name}-{self.index}, {_KEYS} keys from offset {self.bases[0]} on"

    async def _write(self, number: int) -> int:
        course = self.world.course
        log = course.log_of(self.index)
        first = number * _KEYS
        records = [
            Record(key=b"again-%d" % key, value=stranger(self.producer, log, first + key))
            for key in range(_KEYS)
        ]
        sent = time.monotonic_ns()
        # They may vanish and they may come, so where they went is nobody's to know.
        course.journal.add(
            Produced(
                log=log,
                first=-1,
                records=_KEYS,
                producer=self.producer,
                sequence=first,
                crc=-1,
                sent=sent,
                received=-1,
                outcome=int(Outcome.UNKNOWN),
                error=0,
                transaction=int(Transaction.NONE),
            )
        )
        topic = await self.world.cluster.topic(course.topic.name)
        return await self.world.admin.append(topic, encode_batch(records), self.index)

    async def hit(self) -> str:
        """See a hole where they were."""
        first, last = self.bases[0], self.bases[-2] + _KEYS
        left = await self.world.offsets(self.world.course.topic.name, self.index, first, last)
        written = {base + key for base in self.bases[:-1] for key in range(_KEYS)}
        gone = written - left
        return f"{len(gone)} offsets from {min(gone)} on hold nothing any more" if gone else ""

    async def heal(self) -> None:
        """Nothing to heal: the records are gone."""

    async def healed(self) -> str:
        """See the log grow."""
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        end = await self.world.admin.log_offset(topic, partition=self.index)
        return f"the log goes on to {end}"
