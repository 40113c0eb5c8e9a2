"""The scenarios: how many members, which work, and what breaks.

Everything that has a time to notice that a member is gone has the same one, ``NOTICED_MS``: the
lock of the share group, the session of the consumer group, the time KMQ allows from start to end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

NOTICED_MS = 6000
PARTITIONS = 2


class Fault(Enum):
    NONE = "nothing breaks"
    KILL = "kill -9 of a member that works on a record"
    FREEZE = "SIGSTOP of a member that works on a record, SIGCONT 10 s later"
    TRACKER = "kill -9 of such a member and of KMQ's tracker; another tracker 2 s later"
    LEADER = "kill -9 of the broker that leads partition 0, and its start 5 s later"

    @property
    def traps(self) -> bool:
        """Whether it meets a member that works on a record."""
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
    members: int
    handler_ms: float
    fixed: int = 0
    rate: float = 0.0
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
        together=False,
    ),
    Scene(
        name="throughput",
        question="How fast are two members without work?",
        members=2,
        handler_ms=0,
        fixed=30_000,
        batch=500,
        together=False,
        judged=False,
    ),
    Scene(
        name="blocking",
        question="Which records does a record delay that takes 4 s?",
        members=4,
        handler_ms=5,
        rate=60,
        slow_ms=4000,
    ),
    Scene(
        name="crash",
        question="When are the records of a killed member redelivered, and who waits meanwhile?",
        members=4,
        handler_ms=10,
        rate=60,
        fault=Fault.KILL,
    ),
    Scene(
        name="freeze",
        question="The same with a member that is frozen and comes back after 10 s.",
        members=4,
        handler_ms=10,
        rate=60,
        fault=Fault.FREEZE,
    ),
    Scene(
        name="tracker",
        question="What if KMQ's tracker is killed together with the member?",
        members=4,
        handler_ms=10,
        rate=60,
        fault=Fault.TRACKER,
        only="kmq",
    ),
    Scene(
        name="leader",
        question="What if the leader of a partition is killed?",
        members=4,
        handler_ms=10,
        rate=60,
        fault=Fault.LEADER,
    ),
)
SCENES: Mapping[str, Scene] = MappingProxyType({scene.name: scene for scene in _ALL})
