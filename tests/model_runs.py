"""Histories made by the model, as the recorder leaves them, and such with one fault in them.

Each run is one share-partition with a log of its own, so hundreds of them are judged as one
history. A run is valid: a leader that acts by the table did all of it. What clients see of it are
intervals, and responses that got lost; in the end everybody accepts everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from fixtures.history.journal import Journal
from spec import history
from spec.history import AckType, Outcome
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
from spec.model.operations import Batch, Range
from spec.model.release import Release
from spec.model.settings import Settings
from tests.corrupted import Edit, corruptions
from tests.generated import MEMBERS, Story, ranges_of

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
        """Return a batch of what the member holds and was seen to get."""
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
        lock_ms=200,
        delivery_limit=random.choice((2, 3, 5)),
        max_locks=random.choice((20, 2_000)),
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


@dataclass(slots=True)
class RunWriter:
    """Writes runs of the model into a journal."""

    journal: Journal
    told: ModelRun
    holders: dict[tuple[str, int], int] = field(default_factory=dict)
    position: int = 0

    def write(self) -> None:
        """Write one run from beginning to end."""
        told, settings = self.told, self.told.settings
        named = (
            told.share_partition,
            told.log,
            0,
            f"run-{told.share_partition}",
            f"topic-{told.log}",
            "",
            0,
            0,
        )
        limits = (settings.delivery_limit, int(settings.lock_ms), settings.max_locks, _BATCH)
        self.journal.add(history.SharePartition(*named, *limits, False, False))
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
    """Journal runs of one release as one history, which says of what release it is."""
    with Journal(folder, 0) as journal:
        for told in runs:
            RunWriter(journal, told).write()
    document = {"target": {"name": "model", "version": f"{runs[0].release.name}.0"}}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
