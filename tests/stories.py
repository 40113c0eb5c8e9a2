"""Histories that the model makes, valid ones and such with one lie, and the way into a journal."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

from fixtures.history.journal import Journal
from spec import history
from spec.history import AckType, Outcome
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
from spec.model.operations import Batch, Error, Mode, Range
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
        reach = 60 * self.overlap
        sent = max(self.now - self.random.uniform(0, reach), self.busy.get(member, 0.0))
        received = self.now + self.random.uniform(0, reach)
        if member:
            self.busy[member] = received
        return sent, received

    def free(self) -> str | None:
        idle = [one for one in MEMBERS if self.busy.get(one, 0.0) < self.now]
        return self.random.choice(idle) if idle else None

    def lost(self) -> bool:
        return self.random.random() < self.lossy

    def produce(self) -> None:
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
        self.now += self.random.choice((0.3, 0.9, 1.1)) * self.settings.lock_ms

    def close(self) -> None:
        member = self.free()
        if member is None:
            return
        sent, received = self.around(member)
        self.leader.close(self.now, member)
        self.steps.append(Closed(sent=sent, received=received, member=member))

    def reload(self) -> None:
        sent, received = self.around()
        self.leader.tick(self.now)
        self.leader.reload()
        self.steps.append(Reloaded(sent=sent, received=received))

    def delete(self) -> None:
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
        state = self.leader.coordinator.state
        if state is not None:
            sent, received = self.around()
            self.steps.append(StartSeen(sent=sent, received=received, offset=state.start))

    def read(self) -> None:
        state = self.leader.coordinator.state
        if state is not None:
            sent, received = self.around()
            seen = StateSeen(sent=sent, received=received, start=state.start, batches=state.batches)
            self.steps.append(seen)


def ranges_of(step: Step) -> tuple[Range, ...]:
    return (step.ranges or ()) if isinstance(step, Fetched) else ()


Edit = Callable[[list[Step], Random], list[Step] | None]
Change = Callable[[Any, Random], tuple[Step, ...]]
"""Takes one step, and returns what is told in its place."""

EDITS: list[Edit] = []
"""Every corruption there is. What one edit makes may be legal by chance: rates, not certainties."""


def edit(wanted: Callable[[Step], object]) -> Callable[[Change], Edit]:

    def made(change: Change) -> Edit:
        @wraps(change)
        def edited(steps: list[Step], random: Random) -> list[Step] | None:
            found = [index for index, step in enumerate(steps) if wanted(step)]
            if not found:
                return None
            at = random.choice(found)
            return [*steps[:at], *change(steps[at], random), *steps[at + 1 :]]

        EDITS.append(edited)
        return edited

    return made


def _another(member: str, random: Random) -> str:
    return random.choice([name for name in MEMBERS if name != member])


def _counted(step: Fetched, random: Random, by: int) -> tuple[Step, ...]:
    ranges = list(ranges_of(step))
    which = random.randrange(len(ranges))
    ranges[which] = ranges[which]._replace(deliveries=ranges[which].deliveries + by)
    return (replace(step, ranges=tuple(ranges)),)


@edit(ranges_of)
def count_raised(step: Fetched, random: Random) -> tuple[Step, ...]:
    """A delivery count is one too high."""
    return _counted(step, random, 1)


@edit(ranges_of)
def count_lowered(step: Fetched, random: Random) -> tuple[Step, ...]:
    """A delivery count is one too low."""
    return _counted(step, random, -1)


@edit(ranges_of)
def given_twice(step: Fetched, random: Random) -> tuple[Step, ...]:
    """Records come to a second member right after the first."""
    other, moment = _another(step.member, random), step.received + 0.01
    again = tuple(one._replace(deliveries=one.deliveries + 1) for one in ranges_of(step))
    twin = replace(step, sent=moment, received=moment, member=other, ranges=again, max_records=None)
    return step, twin


def _accepted(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.NONE


def _refused(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.INVALID_RECORD_STATE


@edit(_accepted)
def wrong_holder(step: Acknowledged, random: Random) -> tuple[Step, ...]:
    """An acknowledgement is told to come from another member."""
    return (replace(step, member=_another(step.member, random)),)


@edit(_accepted)
def refused_wrongly(step: Acknowledged, _: Random) -> tuple[Step, ...]:
    """A good acknowledgement is refused."""
    return (replace(step, error=Error.INVALID_RECORD_STATE),)


@edit(_refused)
def accepted_wrongly(step: Acknowledged, _: Random) -> tuple[Step, ...]:
    """An acknowledgement that must be refused is accepted."""
    return (replace(step, error=Error.NONE),)


def _final(step: Step) -> list[int]:
    if not isinstance(step, Acknowledged) or not _accepted(step):
        return []
    (batch,) = step.batches
    kinds = batch.types * (batch.last - batch.first + 1) if len(batch.types) == 1 else batch.types
    return [batch.first + place for place, kind in enumerate(kinds) if kind in {0, 1, 3}]


@edit(_final)
def redelivered(step: Acknowledged, random: Random) -> tuple[Step, ...]:
    """A record that was settled for good comes again."""
    offset, moment = random.choice(_final(step)), step.received + 0.01
    ranges = (Range(offset, offset, 2),)
    ghost = Fetched(sent=moment, received=moment, member=random.choice(MEMBERS), ranges=ranges)
    return step, ghost


@edit(lambda step: isinstance(step, StartSeen))
def start_ahead(step: StartSeen, _: Random) -> tuple[Step, ...]:
    """A start offset is shown that is a little too high."""
    return (replace(step, offset=step.offset + 5),)


def _stored(step: Step) -> bool:
    return isinstance(step, StateSeen) and bool(step.batches)


@edit(_stored)
def state_lost(step: StateSeen, random: Random) -> tuple[Step, ...]:
    """The durable state lacks one batch."""
    which = random.randrange(len(step.batches))
    kept = step.batches[:which] + step.batches[which + 1 :]
    return (replace(step, batches=kept),)


@edit(_stored)
def state_changed(step: StateSeen, random: Random) -> tuple[Step, ...]:
    """The durable state of one batch is another terminal one."""
    which = random.randrange(len(step.batches))
    one = step.batches[which]
    other = one._replace(state=4 if one.state == 2 else 2)
    kept = (*step.batches[:which], other, *step.batches[which + 1 :])
    return (replace(step, batches=kept),)


def corruptions(
    steps: list[Step], random: Random, edits: Sequence[Edit] = EDITS
) -> Iterator[tuple[str, list[Step]]]:
    for edit in edits:
        bad = edit(steps, random)
        if bad is not None:
            yield edit.__name__, bad


MS = 1_000_000
_BATCH = 10
_ACK_TYPES = (AckType.REJECT, AckType.ACCEPT, AckType.RELEASE, AckType.REJECT, AckType.RENEW)
"""What a member means by each acknowledge type; a gap is as final as a rejection."""


class RandomRun(Story):
    """A story whose members only acknowledge what they were seen to get, like clients do."""

    def run(self, length: int) -> list[Step]:
        """Take random steps, then let one member accept all there is until nothing is left."""
        steps = super().run(length)
        self.lossy = self.overlap = 0.0
        self.now = max([self.now, *self.busy.values()]) + self.settings.lock_ms * 2
        ann = MEMBERS[0]
        while taken := self.leader.acquire(self.now, ann):
            when = (self.now, self.now + 1)
            steps.append(Fetched(sent=when[0], received=when[1], member=ann, ranges=tuple(taken)))
            for one in taken:
                self.now += 2
                batch = (Batch(one.first, one.last, (1,)),)
                error = self.leader.acknowledge(self.now, ann, batch)
                when = (self.now, self.now + 1)
                steps.append(
                    Acknowledged(
                        sent=when[0], received=when[1], member=ann, batches=batch, error=error
                    )
                )
            self.now += 2
        return steps

    def target(self, member: str) -> Batch | None:
        batch = super().target(member)
        if batch is None:
            return None
        mine = _held(self.steps, self.settings.lock_ms, self.now).get(member, set())
        wanted = set(range(batch.first, batch.last + 1))
        return batch if wanted <= mine else None


def _held(steps: Sequence[Step], lock_ms: float, now: float) -> dict[str, set[int]]:
    """Return the offsets that each member got last, was seen to get, and has not lost yet."""
    last: dict[int, tuple[str, float]] = {}
    for step in steps:
        match step:
            case Fetched():
                offsets = (o for one in ranges_of(step) for o in range(one.first, one.last + 1))
                last |= dict.fromkeys(offsets, (step.member, step.received))
            case Acknowledged(error=0):
                for offset in (o for o, kind in _acts(step) if kind is not AckType.RENEW):
                    last.pop(offset, None)
            case Closed():
                last = {o: holder for o, holder in last.items() if holder[0] != step.member}
            case Reloaded():
                last = {}
    held: dict[str, set[int]] = {}
    for offset, (member, at) in last.items():
        if now < at + lock_ms:
            held.setdefault(member, set()).add(offset)
    return held


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """A run with a number; ``fault`` names what is wrong with it, nothing for a valid one."""

    share_partition: int
    log: int
    fault: str
    settings: Settings
    release: Release
    steps: tuple[Step, ...]


def make_runs(
    seed: int, release: Release, numbers: Iterator[tuple[int, int]], edits: Sequence[Edit]
) -> Iterator[ModelRun]:
    """Yield one valid run, then the same with each fault that there is room for."""
    random = Random(seed)
    settings = Settings(
        lock_ms=200, delivery_limit=random.choice((2, 3, 5)), max_locks=random.choice((20, 2_000))
    )
    run_of_model = RandomRun(random, settings, release, lossy=random.choice((0.0, 0.1)))
    run_of_model.overlap = random.choice((0.0, 0.3))
    steps = run_of_model.run(40)
    faults = [("", steps), *corruptions(steps, random, edits)]
    for (share_partition, log), (fault, told) in zip(numbers, faults, strict=False):
        yield ModelRun(
            share_partition=share_partition,
            log=log,
            fault=fault,
            settings=settings,
            release=release,
            steps=tuple(told),
        )


def never_came(steps: list[Step], random: Random) -> list[Step] | None:
    """A record is never given to anybody."""
    ranges = [one for step in steps for one in ranges_of(step)]
    offsets = [offset for one in ranges for offset in range(one.first, one.last + 1)]
    if not offsets:
        return None
    gone = random.choice(offsets)
    return [_without(step, gone) if isinstance(step, Fetched) else step for step in steps]


def _without(step: Fetched, gone: int) -> Fetched:
    kept = [
        Range(first, last, one.deliveries)
        for one in ranges_of(step)
        for first, last in (
            ((one.first, gone - 1), (gone + 1, one.last))
            if one.first <= gone <= one.last
            else ((one.first, one.last),)
        )
        if first <= last
    ]
    return step if step.ranges is None else replace(step, ranges=tuple(kept))


def write_share_partition(
    journal: Journal, number: int, log: int, slot: int = 0, **more: Any
) -> None:
    limits = {"limit": 5, "lock_ms": 1000, "window": 2000, "batch": 500} | more
    journal.add(
        history.SharePartition(
            share_partition=number,
            log=log,
            slot=slot,
            group=f"group-{number}",
            topic=f"topic-{log}",
            topic_id="",
            partition=0,
            first=0,
            delivery_limit=limits["limit"],
            lock_ms=limits["lock_ms"],
            window=limits["window"],
            batch=limits["batch"],
            committed_only=more.get("committed_only", False),
            dead_letters=more.get("dead_letters", False),
        )
    )


@dataclass(slots=True)
class RunWriter:
    """Writes runs of the model into a journal."""

    journal: Journal
    told: ModelRun
    holders: dict[tuple[str, int], int] = field(default_factory=dict)
    position: int = 0

    def write(self) -> None:
        told, settings = self.told, self.told.settings
        limits = {"limit": settings.delivery_limit, "lock_ms": int(settings.lock_ms)}
        more = {"window": settings.max_locks, "batch": _BATCH}
        write_share_partition(self.journal, told.share_partition, told.log, **limits, **more)
        steps = sorted(told.steps, key=lambda step: step.received)
        for step in steps:
            self._step(step)
        end = max((step.last + 1 for step in steps if isinstance(step, Produced)), default=0)
        start = max((step.offset for step in steps if isinstance(step, LogStarted)), default=0)
        at = int(steps[-1].received + 1000) * MS
        row = (told.share_partition, at, at, end, 0, start, end, 0, "quiet")
        self.journal.add(history.ShownOffsets(*row))

    def _step(self, step: Step) -> None:
        sent, received = round(step.sent * MS), round(step.received * MS)
        share_partition, log, add = self.told.share_partition, self.told.log, self.journal.add
        match step:
            case Produced():
                row = (log, step.first, step.last - step.first + 1, 1, step.first, -1)
                add(history.Produced(*row, sent, received, int(Outcome.OK), 0, 0))
            case Fetched(ranges=None):
                add(history.UnseenResponse(share_partition, sent, received))
            case Fetched():
                self._acquired(step, sent, received)
            case Acknowledged():
                self._acknowledged(step, sent, received)
            case Closed():
                self._closed(step, sent, received)
            case Reloaded():
                add(history.Reload(share_partition, -1, sent, received, "told"))
            case LogStarted():
                add(history.Deletion(log, step.offset, sent, received, int(Outcome.OK)))
            case StartSeen():
                add(
                    history.ShownOffsets(
                        share_partition, sent, received, step.offset, -1, 0, 0, 0, "load"
                    )
                )
            case StateSeen():
                self._stored(step)
            case _:
                raise AssertionError(step)

    def _acquired(self, step: Fetched, sent: int, received: int) -> None:
        op, after = self.journal.next_operation(), -1
        member = MEMBERS.index(step.member)
        for one in ranges_of(step):
            row = (op, self.told.share_partition, self.told.log, member, one.first, one.last)
            lock_ms = int(self.told.settings.lock_ms)
            told = (one.deliveries, lock_ms, sent, received, after)
            self.journal.add(history.Acquired(*row, *told, True, 1, one.first, 7))
            after = one.last
            for offset in range(one.first, one.last + 1):
                self.holders[step.member, offset] = op

    def _acknowledged(self, step: Acknowledged, sent: int, received: int) -> None:
        outcome = Outcome.FAILED if step.error else Outcome.OK
        if step.error is None:
            outcome, received = Outcome.UNKNOWN, -1
        for offset, kind in _acts(step):
            key = (step.member, offset)
            op = self.holders.get(key)
            if op is not None:
                row = (op, self.told.share_partition, self.told.log, offset, offset, int(kind))
                self.journal.add(
                    history.Acknowledged(*row, sent, received, int(outcome), step.error or 0)
                )
                if outcome is Outcome.OK and kind is not AckType.RENEW:
                    del self.holders[key]

    def _closed(self, step: Closed, sent: int, received: int) -> None:
        open_ = {key: op for key, op in self.holders.items() if key[0] == step.member}
        for (member, offset), op in open_.items():
            row = (
                op,
                self.told.share_partition,
                self.told.log,
                offset,
                offset,
                int(AckType.CLOSED),
            )
            self.journal.add(history.Acknowledged(*row, sent, received, int(Outcome.OK), 0))
            del self.holders[member, offset]

    def _stored(self, step: StateSeen) -> None:
        self.position += 1
        head = (self.told.share_partition, self.position, True, -1, -1, -1, step.start)
        for one in step.batches:
            self.journal.add(
                history.Persisted(*head, one.first, one.last, one.state, one.deliveries)
            )


def _acts(step: Acknowledged) -> Iterator[tuple[int, AckType]]:
    for batch in step.batches:
        for place, offset in enumerate(range(batch.first, batch.last + 1)):
            kind = batch.types[place] if len(batch.types) > 1 else batch.types[0]
            yield offset, _ACK_TYPES[kind]


def write(folder: Path, runs: Sequence[ModelRun]) -> None:
    with Journal(folder, 0) as journal:
        for told in runs:
            RunWriter(journal, told).write()
    document = {"target": {"name": "model", "version": f"{runs[0].release.name}.0"}}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
