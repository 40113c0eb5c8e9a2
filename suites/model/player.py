"""Plays actions on a real share-partition and tells the model what was asked and what came back.

One step is taken after the other, except in a race of two fetches. The model judges every answer
when it comes; what it does not allow is raised as a :class:`spec.verdict.Violation`. What a broker
does in its own time stays open in the model until it is certain: a session's end is answered before
its records are free, so that it is told as over only ``SETTLED`` seconds later.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from fixtures.clients.cluster import WITHIN, attempts
from fixtures.clients.member import Ack, Answer
from fixtures.wire.connection import CallFailed
from spec.model.judgement import Judgement, Span
from spec.model.operations import Acknowledge, Batch, Error, Fetch, Mode, Operation
from spec.model.partition import SharePartition
from spec.model.release import Release
from spec.model.settings import Settings, Slack
from spec.verdict import Undecided, Violation
from suites.broker.leaders import moved
from suites.broker.share import Consumer, Queue, Share
from suites.model.actions import Action, Do

SEATS = 3
LOCK_MS = 1000
SETTLED = 5.0
RENEW = 4
NOTHING_ACQUIRED = frozenset(
    {
        Error.INVALID_REQUEST,
        Error.SHARE_SESSION_NOT_FOUND,
        Error.INVALID_SHARE_SESSION_EPOCH,
    }
)
"""Errors of a whole ShareFetch after which no record can have been acquired."""


def now() -> float:
    """Return the time in milliseconds, as the model counts it."""
    return time.monotonic() * 1000


@dataclass(slots=True)
class Seat:
    """One of the members: its consumer, and the offsets that it believes to hold."""

    consumer: Consumer
    held: set[int] = field(default_factory=set)
    joined: bool = True
    connected: bool = True
    opened: bool = False

    @property
    def member(self) -> str:
        """The member id."""
        return self.consumer.member_id


class Player:
    """A queue of one partition, three members, and the judge of what they see."""

    def __init__(self, queue: Queue, release: Release, seats: list[Seat], *, movable: bool) -> None:
        self.queue = queue
        self.release = release
        self.seats = seats
        self.movable = movable
        self.settings = Settings(lock_ms=LOCK_MS, renewal=release.renewal)
        self.judge = SharePartition(
            settings=self.settings, release=release, slack=Slack(early_ms=5.0, late_ms=3000.0)
        )
        self.script: list[Action] = []
        self.reached: Counter[str] = Counter()
        self.end = 0
        self.log_start = 0
        self._closing: list[tuple[float, Operation]] = []
        self._plays: dict[Do, Callable[[Action], Awaitable[None]]] = {
            Do.PRODUCE: self._produce,
            Do.FETCH: self._fetch,
            Do.RACE: self._race,
            Do.ACK: self._ack,
            Do.ACK_ON_FETCH: self._fetch,
            Do.INTRUDE: self._intrude,
            Do.CLOSE: self._close,
            Do.DROP: self._drop,
            Do.LEAVE: self._leave,
            Do.WAIT: self._wait,
            Do.DELETE: self._delete,
            Do.MOVE: self._move,
            Do.LIMIT: self._limit,
            Do.LOOK: self._look,
        }

    @classmethod
    async def begin(cls, share: Share, release: Release) -> Player:
        """Return a player with a new topic and group; its members have joined.

        Raises:
            Undecided: the topic or the group did not come about.
        """
        nodes = sorted(share.cluster.brokers)
        placed = share.rng.sample(nodes, 2) if len(nodes) > 1 else nodes
        queue = await share.queue(assignments=[placed], lock_ms=LOCK_MS)
        seats = [Seat(await queue.consumer()) for _ in range(SEATS)]
        return cls(queue, release, seats, movable=len(placed) > 1)

    async def play(self, action: Action) -> None:
        """Do one action and judge what came back.

        Raises:
            Violation: the model does not allow it.
            Undecided: a step that every broker must take did not come about.
        """
        self.script.append(action)
        self._settle()
        await self._plays[action.do](action)
        self.reached[action.do] += 1

    async def finish(self) -> None:
        """Drain the queue with a member that accepts everything; the start must reach the end.

        Raises:
            Violation: an answer is not allowed, or the start offset stays behind (INV-24).
        """
        for number in range(len(self.seats)):
            await self._close(Action(do=Do.CLOSE, seat=number))
        wanted, seen = self.end, -1
        async for _ in attempts(WITHIN + LOCK_MS / 1000):
            # The view is that of the last state write, so each look is preceded by one more.
            await self._produce(Action(do=Do.PRODUCE, n=1))
            await self._fetch(Action(do=Do.FETCH, n=500))
            await self._ack(Action(do=Do.ACK, types=(1,) * len(self.seats[0].held)))
            seen = await self._start()
            if seen >= wanted:
                return
        raise Violation("INV-24", f"the start offset stays at {seen}, below {wanted}, when drained")

    # ------------------------------------------------------------------ the log

    async def _produce(self, action: Action) -> None:
        self.judge.produced(self.end, self.end + action.n - 1)
        first = await self.queue.produce(action.n)
        if first != self.end:
            raise Undecided(f"records were appended at {first}, not at {self.end}")
        self.end += action.n

    async def _delete(self, action: Action) -> None:
        offset = min(self.log_start + action.n, self.end)
        if offset == self.log_start:
            return
        operation = self.judge.begin_log_start(now(), offset)
        await self.queue.share.admin.delete_records(self.queue.topic, offset)
        self.log_start = offset
        self._heed(self.judge.log_started(operation, now()))

    async def _move(self, _action: Action) -> None:
        if not self.movable:
            return
        for seat in self.seats:
            self._disconnect(seat)
        operation = self.judge.begin_reload(now())
        self.queue = await moved(self.queue)
        for seat in self.seats:
            seat.consumer.where = (self.queue.topic, 0)
        self._heed(self.judge.reload_done(operation, now()))

    # ------------------------------------------------------------------ acquiring

    async def _fetch(self, action: Action) -> None:
        seat = await self._seated(action.seat)
        acks = [] if action.do is Do.FETCH or not seat.opened else self._chosen(seat, action.types)
        telling = self._begin_ack(seat, acks)
        asked = Fetch(member=seat.member, mode=Mode(action.mode), max_records=action.n)
        operation = self.judge.begin_fetch(now(), asked)
        answer = await self._call(
            seat.consumer.fetch(*acks, max_records=action.n, max_wait_ms=100, **self._mode(action))
        )
        received = now()
        if telling:
            self._end_ack(telling, received, self._ack_error(answer))
        if answer is None:
            self.judge.lost(operation, received)
            self._disconnect(seat)
        else:
            self._fetched(seat, operation, received, answer)

    def _mode(self, action: Action) -> dict[str, int]:
        return {"share_acquire_mode": action.mode} if self.release.record_limit else {}

    def _fetched(self, seat: Seat, operation: Operation, received: float, answer: Answer) -> None:
        part = answer.only
        seat.opened = not answer.error
        if answer.error:
            seat.held.clear()
            seat.consumer.session.epoch = 0
        if part.error or (answer.error and answer.error not in NOTHING_ACQUIRED):
            self.reached["fetch refused"] += 1
            self.judge.lost(operation, received)
            return
        ranges = [(r.first, r.last, r.count) for r in part.ranges]
        self._heed(self.judge.fetched(operation, received, ranges))
        seat.held.update(part.offsets)
        self.reached["deliveries"] += len(part.offsets)
        self.reached["redeliveries"] += sum(count > 1 for count in part.counts.values())

    async def _race(self, action: Action) -> None:
        pair = {action.seat % SEATS, action.other % SEATS}
        one = replace(action, do=Do.FETCH)
        await asyncio.gather(*(self._fetch(replace(one, seat=seat)) for seat in sorted(pair)))

    # ------------------------------------------------------------------ acknowledging

    async def _ack(self, action: Action) -> None:
        seat = self.seats[action.seat % SEATS]
        await self._acknowledge(seat, self._chosen(seat, action.types))

    async def _intrude(self, action: Action) -> None:
        """Acknowledge what another member holds."""
        seat, holder = self.seats[action.seat % SEATS], self.seats[action.other % SEATS]
        await self._acknowledge(seat, self._chosen(holder, action.types, keep=True))

    async def _acknowledge(self, seat: Seat, acks: list[Ack]) -> None:
        if not (acks and seat.opened and seat.connected):
            return
        renewing = any(RENEW in ack.types for ack in acks)
        flag = {"is_renew_ack": True} if renewing else {}
        telling = self._begin_ack(seat, acks)
        answer = await self._call(
            seat.consumer.session.acknowledge({seat.consumer.where: acks}, **flag)
        )
        if answer is None:
            self._disconnect(seat)
        elif answer.error:
            seat.opened = False
            seat.held.clear()
            seat.consumer.session.epoch = 0
        if telling:
            self._end_ack(telling, now(), self._ack_error(answer))

    def _chosen(self, seat: Seat, types: Sequence[int], *, keep: bool = False) -> list[Ack]:
        """Return acknowledgements of the first records that a seat holds, a batch for each run."""
        usable = [kind if self.release.renewal or kind != RENEW else 2 for kind in types]
        pairs = list(zip(sorted(seat.held), usable, strict=False))
        if not keep:
            seat.held.difference_update(offset for offset, kind in pairs if kind != RENEW)
        acks: list[Ack] = []
        for offset, kind in pairs:
            if acks and acks[-1].last == offset - 1:
                acks[-1] = Ack(acks[-1].first, offset, (*acks[-1].types, kind))
            else:
                acks.append(Ack(offset, offset, (kind,)))
        return acks

    def _begin_ack(self, seat: Seat, acks: Sequence[Ack]) -> Operation | None:
        if not acks:
            return None
        batches = tuple(Batch(ack.first, ack.last, ack.types) for ack in acks)
        renewing = any(RENEW in ack.types for ack in acks)
        told = Acknowledge(member=seat.member, batches=batches, renew=renewing)
        return self.judge.begin_acknowledge(now(), told)

    def _end_ack(self, operation: Operation, received: float, error: int | None) -> None:
        if error is None:
            self.judge.lost(operation, received)
            return
        self.reached["acks refused" if error else "acks taken"] += 1
        self._heed(self.judge.answered(operation, received, error))

    @staticmethod
    def _ack_error(answer: Answer | None) -> int | None:
        if answer is None:
            return None
        return answer.error or answer.only.ack_error

    # ------------------------------------------------------------------ sessions

    async def _close(self, action: Action) -> None:
        seat = self.seats[action.seat % SEATS]
        if not (seat.opened and seat.connected):
            return
        operation = self.judge.begin_close(now(), seat.member)
        await self._call(seat.consumer.close())
        self._closing.append((now(), operation))
        seat.opened = False
        seat.held.clear()
        seat.consumer.session.epoch = 0

    async def _drop(self, action: Action) -> None:
        self._disconnect(self.seats[action.seat % SEATS])

    async def _leave(self, action: Action) -> None:
        seat = self.seats[action.seat % SEATS]
        if seat.joined:
            seat.joined = False
            await seat.consumer.member.leave()

    def _disconnect(self, seat: Seat) -> None:
        if seat.connected:
            self._closing.append((now(), self.judge.begin_close(now(), seat.member)))
            seat.consumer.session.connection.abort()
        seat.connected = seat.opened = False
        seat.held.clear()

    async def _seated(self, number: int) -> Seat:
        seat = self.seats[number % SEATS]
        if not seat.joined:
            await seat.consumer.member.join(self.queue.topic)
            seat.joined = True
        if not seat.connected:
            await seat.consumer.reconnect()
            seat.connected = True
        return seat

    def _settle(self) -> None:
        """Tell the model of the ends of sessions that are long enough ago to be certain."""
        certain = now() - SETTLED * 1000
        for at, operation in self._closing:
            if at < certain:
                self._heed(self.judge.closed(operation, now()))
        self._closing = [(at, operation) for at, operation in self._closing if at >= certain]

    # ------------------------------------------------------------------ time, limits, views

    async def _wait(self, action: Action) -> None:
        # Nothing is waited for: that time passes, so that locks end, is the action itself.
        await asyncio.sleep(action.n / 1000)

    async def _limit(self, action: Action) -> None:
        if not self.release.group_limits:
            return
        self.settings = replace(self.settings, delivery_limit=action.n)
        asked = now()
        wanted = {"share.delivery.count.limit": str(action.n)}
        await self.queue.share.admin.group_config(self.queue.group, wanted)
        self.judge.configured(Span(asked, now()), self.settings)

    async def _look(self, _action: Action) -> None:
        await self._start()

    async def _start(self) -> int:
        operation = self.judge.begin_look(now())
        start = (await self.queue.offsets()).start
        if start >= 0:
            self._heed(self.judge.start_shown(operation, now(), start))
        return start

    # ------------------------------------------------------------------ inside

    @staticmethod
    async def _call(asking: Awaitable[Answer]) -> Answer | None:
        """Return the answer, or None if none came."""
        try:
            return await asking
        except CallFailed:
            return None

    def _heed(self, judgement: Judgement) -> None:
        judgement.check(f"after {len(self.script)} actions")
