"""Valid histories of one share-partition: what observers could see of the acting leader.

The leader does one thing after the other. What an observer knows of each is an interval around the
moment, so the intervals overlap; and some answers get lost on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from spec.model.durable import Coordinator
from spec.model.history import (
    Acknowledged,
    Closed,
    Fetched,
    LogStarted,
    Produced,
    Reloaded,
    StartSeen,
    StateSeen,
    Step,
)
from spec.model.leader import Leader
from spec.model.log import Log
from spec.model.operations import Batch, Mode, Range
from spec.model.release import NEWEST, Release
from spec.model.settings import Settings
from spec.model.table import State

MEMBERS = ("ann", "bob", "cid")


@dataclass(slots=True)
class Story:
    """Grows one history by random steps. ``lossy``: the share of answers that get lost."""

    random: Random
    settings: Settings
    release: Release = NEWEST
    lossy: float = 0.0
    overlap: float = 0.0
    now: float = 0.0
    steps: list[Step] = field(default_factory=list)
    busy: dict[str, float] = field(default_factory=dict)
    log: Log = field(init=False)
    leader: Leader = field(init=False)

    def __post_init__(self) -> None:
        coordinator = Coordinator(self.release, updates_per_snapshot=3)
        coordinator.initialize(0, 0)
        self.log = Log()
        self.leader = Leader(
            settings=self.settings, release=self.release, coordinator=coordinator, log=self.log
        )

    def run(self, length: int) -> list[Step]:
        """Take ``length`` random steps and return the whole history."""
        actions = (
            [self.produce] * 2
            + [self.fetch] * 6
            + [self.acknowledge] * 8
            + [self.wait, self.close, self.reload, self.delete, self.look, self.read]
        )
        for _ in range(length):
            self.now += self.random.randint(1, 40)
            self.random.choice(actions)()
        return self.steps

    def around(self, member: str = "") -> tuple[float, float]:
        """Return an interval around now; one member's requests stay in order."""
        reach = 60 * self.overlap
        sent = max(self.now - self.random.uniform(0, reach), self.busy.get(member, 0.0))
        received = self.now + self.random.uniform(0, reach)
        if member:
            self.busy[member] = received
        return sent, received

    def free(self) -> str | None:
        """Return a member that waits for no response, if there is one."""
        idle = [one for one in MEMBERS if self.busy.get(one, 0.0) < self.now]
        return self.random.choice(idle) if idle else None

    def lost(self) -> bool:
        """Tell whether the next answer gets lost."""
        return self.random.random() < self.lossy

    def produce(self) -> None:
        """Append a record batch."""
        first, last = self.leader.produce(self.random.choice((1, 2, 5, 10)))
        self.steps.append(Produced(sent=self.now, received=self.now, first=first, last=last))

    def fetch(self) -> None:
        """Let a member fetch."""
        member = self.free()
        if member is None:
            return
        strict = self.release.record_limit and self.random.random() < 0.3
        mode = Mode.RECORD_LIMIT if strict else Mode.BATCH_OPTIMIZED
        most = self.random.choice((1, 3, 10, 500))
        sent, received = self.around(member)
        taken = self.leader.acquire(self.now, member, max_records=most, mode=mode)
        self.steps.append(
            Fetched(
                sent=sent,
                received=received,
                member=member,
                ranges=None if self.lost() else tuple(taken),
                mode=mode,
                max_records=most,
            )
        )

    def acknowledge(self) -> None:
        """Let a member settle or renew something, mostly what it holds."""
        member = self.free()
        batch = self.target(member) if member else None
        if member is None or batch is None:
            return
        renew = 4 in batch.types
        sent, received = self.around(member)
        error = self.leader.acknowledge(self.now, member, [batch], renew=renew)
        self.steps.append(
            Acknowledged(
                sent=sent,
                received=received,
                member=member,
                batches=(batch,),
                error=None if self.lost() else error,
                renew=renew,
            )
        )

    def target(self, member: str) -> Batch | None:
        """Return a batch to acknowledge: usually of one's own, sometimes of anyone's."""
        runs = [
            (first, last)
            for first, last, record in self.leader.records.over(0, self.leader.end - 1)
            if record.state is State.ACQUIRED
            and (record.member == member or self.random.random() < 0.1)
        ]
        if not runs or self.random.random() < 0.05:
            first = self.random.randint(0, self.leader.end + 2)
            return Batch(first, first + self.random.randint(0, 3), (1,))
        first, last = self.random.choice(runs)
        first = self.random.randint(first, last)
        last = self.random.randint(first, last)
        kinds = (0, 1, 1, 1, 2, 2, 3, 4) if self.release.renewal else (0, 1, 1, 2, 3)
        size = last - first + 1
        if self.random.random() < 0.5:
            return Batch(first, last, (self.random.choice(kinds),))
        return Batch(first, last, tuple(self.random.choice(kinds) for _ in range(size)))

    def wait(self) -> None:
        """Let time pass, often beyond the ends of locks."""
        self.now += self.random.choice((0.3, 0.9, 1.1)) * self.settings.lock_ms

    def close(self) -> None:
        """End a member's share session."""
        member = self.free()
        if member is None:
            return
        sent, received = self.around(member)
        self.leader.close(self.now, member)
        self.steps.append(Closed(sent=sent, received=received, member=member))

    def reload(self) -> None:
        """Load the share-partition anew."""
        sent, received = self.around()
        self.leader.tick(self.now)
        self.leader.reload()
        self.steps.append(Reloaded(sent=sent, received=received))

    def delete(self) -> None:
        """Move the log's start, now and then."""
        if self.random.random() < 0.7 or self.log.last < 0:
            return
        low, high = self.leader.start, min(self.log.last, self.leader.start + 4)
        if low > high:
            return
        offset = self.random.randint(low, high)
        sent, received = self.around()
        self.leader.move_log_start(self.now, offset)
        self.steps.append(LogStarted(sent=sent, received=received, offset=offset))

    def look(self) -> None:
        """See the start offset that the admin view shows."""
        state = self.leader.coordinator.state
        if state is not None:
            sent, received = self.around()
            self.steps.append(StartSeen(sent=sent, received=received, offset=state.start))

    def read(self) -> None:
        """See the durable state."""
        state = self.leader.coordinator.state
        if state is not None:
            sent, received = self.around()
            seen = StateSeen(sent=sent, received=received, start=state.start, batches=state.batches)
            self.steps.append(seen)


def ranges_of(step: Step) -> tuple[Range, ...]:
    """Return the ranges of a fetch, nothing for another step."""
    return (step.ranges or ()) if isinstance(step, Fetched) else ()
