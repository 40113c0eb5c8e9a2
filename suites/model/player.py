"""Plays actions on a real share-partition and tells the model what was asked and what came back.

One step is taken after the other, except in a race of two fetches. The model judges every response
when it comes; what it does not allow is raised as a :class:`spec.verdict.Violation`. What a broker
does in its own time stays open in the model until it is certain; see :class:`Endings`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from fixtures.clients.cluster import WITHIN, attempts, eventually
from fixtures.clients.member import Ack, AckType, Response
from fixtures.wire.connection import CallFailed
from spec.model.operations import (
    FINE,
    Acknowledge,
    Batch,
    Error,
    Fetch,
    Judgement,
    Mode,
    Operation,
    Span,
)
from spec.model.partition import SharePartition
from spec.model.release import Release
from spec.model.settings import Settings, Slack
from spec.verdict import Undecided
from suites.broker.env import Consumer, Env, Queue
from suites.broker.leaders import moved
from suites.model.actions import Action, Do


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a target keeps to its time, in milliseconds."""

    slack: Slack
    settled: float  # How long after the end of a session its records are free for certain.
    patience: float  # How long what must happen may take.


REAL = Pace(
    slack=Slack(early_ms=5.0, late_ms=3000.0, linger_ms=20_000.0),
    settled=5000.0,
    patience=WITHIN * 1000,
)
VIRTUAL = Pace(slack=Slack(early_ms=0.0, late_ms=0.0), settled=20.0, patience=5000.0)
"""That of a reference broker in our own event loop, whose time passes when all are waiting."""


def now_ms() -> float:
    return time.monotonic() * 1000


async def pass_by(milliseconds: float) -> None:
    async for _ in attempts(milliseconds / 1000):
        pass  # time itself is a step of a model run: locks end in it, and nothing is awaited


MEMBER_COUNT = 3


@dataclass(slots=True)
class LockstepMember:
    consumer: Consumer
    held: set[int] = field(default_factory=set)
    joined: bool = True
    connected: bool = True
    opened: bool = False

    @property
    def member(self) -> str:
        return self.consumer.member_id

    def lose(self) -> None:
        self.opened = False
        self.held.clear()
        self.consumer.session.epoch = 0

    def chosen(self, types: Sequence[int], *, keep: Sequence[int] = ()) -> list[Ack]:
        """Return acknowledgements of the first records that are held, a batch for each run.

        What is acknowledged is not held any more, but for the types in ``keep``.
        """
        pairs = list(zip(sorted(self.held), types, strict=False))
        self.held.difference_update(offset for offset, kind in pairs if kind not in keep)
        acks: list[Ack] = []
        for offset, kind in pairs:
            if acks and acks[-1].last == offset - 1:
                acks[-1] = Ack(acks[-1].first, offset, (*acks[-1].types, kind))
            else:
                acks.append(Ack(offset, offset, (kind,)))
        return acks


@dataclass(slots=True)
class _End:
    at: float  # When the end of a session began.
    operation: Operation
    seat: LockstepMember
    reopened: bool = False  # Whether there is a new one.


class Endings:
    """The ends of sessions, until the judge can be told that they are over.

    A session's end is answered before its records are free, and a connection's end is not answered
    at all. So the judge is told of an end when it begins, and that it is over when that is certain.
    A member that opens a new session meanwhile makes its records ones that the old end may still
    free.
    """

    def __init__(self, judge: SharePartition, settled: float) -> None:
        self._judge, self._settled = judge, settled
        self._under_way: list[_End] = []
        self._desertion: Operation | None = None

    def add(self, seat: LockstepMember, operation: Operation) -> None:
        self._under_way.append(_End(now_ms(), operation, seat))

    def reopened(self, seat: LockstepMember) -> None:
        for end in self._under_way:
            end.reopened = end.reopened or end.seat is seat

    def deserted(self) -> None:
        if self._desertion is None:
            self._desertion = self._judge.begin_reload(now_ms())

    def attended(self) -> Judgement:
        desertion, self._desertion = self._desertion, None
        return self._judge.over(desertion, now_ms()) if desertion else FINE

    def settle(self) -> list[Judgement]:
        certain = now_ms() - self._settled
        over = [end for end in self._under_way if end.at <= certain]
        self._under_way = [end for end in self._under_way if end.at > certain]
        return [
            (self._judge.over if end.reopened else self._judge.closed)(end.operation, now_ms())
            for end in over
        ]

    def moved(self) -> list[Judgement]:
        over, self._under_way = self._under_way, []
        return [self._judge.over(end.operation, now_ms()) for end in over]


LOCK_MS = 1000
RENEW = int(AckType.RENEW)
NOTHING_ACQUIRED = frozenset(
    {Error.INVALID_REQUEST, Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH}
)
"""Errors of a whole ShareFetch after which no record can have been acquired."""

_RENEWING = {"is_renew_ack": True, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0}
"""What a ShareFetch that renews must say (KIP-1222 §Public interfaces)."""


class Player:
    def __init__(
        self, queue: Queue, release: Release, seats: list[LockstepMember], pace: Pace
    ) -> None:
        self.queue, self.release, self.seats = queue, release, seats
        self.settings = Settings(lock_ms=LOCK_MS, renewal=release.renewal)
        self.judge = SharePartition(settings=self.settings, release=release, slack=pace.slack)
        self.endings = Endings(self.judge, pace.settled)
        self.script: list[Action] = []
        self.reached: Counter[str] = Counter()
        self.batches: list[int] = []  # The last offset of each record batch.
        self.log_start = 0
        self._plays: dict[Do, Callable[[Action], Awaitable[None]]] = {
            Do.PRODUCE: self._produce,
            Do.FETCH: self._fetch,
            Do.RACE: self._race,
            Do.ACK: self._ack,
            Do.ACK_ON_FETCH: self._fetch,
            Do.INTRUDE: self._intrude,
            Do.CLOSE: self._close,
            Do.LEAVE: self._leave,
            Do.DELETE: self._delete,
            Do.CUT: lambda one: self._start_log_at(min(self.log_start + one.n, self.end)),
            Do.MOVE: self._move,
            Do.LIMIT: self._limit,
        }

    @classmethod
    async def begin(cls, env: Env, release: Release, pace: Pace) -> Self:
        nodes = sorted(env.cluster.brokers)
        placed = env.rng.sample(nodes, 2) if len(nodes) > 1 else nodes
        queue = await env.queue(assignments=[placed], lock_ms=LOCK_MS)
        seats = [LockstepMember(await queue.consumer()) for _ in range(MEMBER_COUNT)]
        return cls(queue, release, seats, pace)

    @property
    def end(self) -> int:
        return self.batches[-1] + 1 if self.batches else 0

    @property
    def holders(self) -> list[int]:
        return [number for number, seat in enumerate(self.seats) if seat.held]

    async def play(self, action: Action) -> None:
        self.script.append(action)
        await self.act(action)
        self.reached[action.do] += 1

    async def act(self, action: Action) -> None:
        for judgement in self.endings.settle():
            self._heed(judgement)
        match action.do:
            case Do.DROP:
                self._disconnect(self.seats[action.seat % MEMBER_COUNT])
            case Do.LOOK:
                await self.start()
            case Do.WAIT:
                # Nothing is waited for: that time passes, so that locks end, is the action itself.
                await pass_by(action.n)
            case do:
                await self._plays[do](action)

    async def start(self) -> int:
        operation = self.judge.begin_look(now_ms())
        start = (await self.queue.offsets()).start
        if start >= 0:
            self._heed(self.judge.start_shown(operation, now_ms(), start))
        return start

    # ------------------------------------------------------------------ the log

    async def _produce(self, action: Action) -> None:
        end = self.end
        self.judge.produced(end, end + action.n - 1)
        first = await self.queue.produce(action.n)
        if first != end:
            raise Undecided(f"records were appended at {first}, not at {end}")
        self.batches.append(end + action.n - 1)

    async def _delete(self, action: Action) -> None:
        left = [last for last in self.batches if last >= self.log_start]
        if left:
            await self._start_log_at(left[min(action.n, len(left)) - 1] + 1)

    async def _start_log_at(self, offset: int) -> None:
        if offset > self.log_start:
            operation = self.judge.begin_log_start(now_ms(), offset)
            await self.queue.env.admin.delete_records(self.queue.topic, offset)
            self.log_start = offset
            self._heed(self.judge.log_started(operation, now_ms()))

    async def _move(self, _action: Action) -> None:
        if len(self.queue.env.cluster.brokers) < 2:
            return
        for seat in self.seats:
            self._disconnect(seat)
        operation = self.judge.begin_reload(now_ms())
        self.queue = await moved(self.queue)
        topic, admin = self.queue.topic, self.queue.env.admin

        async def ask() -> bool | None:
            return True if await admin.log_offset(topic) >= self.end else None

        await eventually(f"the high watermark {self.end} of the new leader", ask)
        for seat in self.seats:
            seat.consumer.where = (self.queue.topic, 0)
        self._heed(self.judge.reload_done(operation, now_ms()))
        for judgement in [self.endings.attended(), *self.endings.moved()]:
            self._heed(judgement)

    # ------------------------------------------------------------------ acquiring

    async def _fetch(self, action: Action) -> None:
        seat = self.seats[action.seat % MEMBER_COUNT]
        if not seat.joined:
            await seat.consumer.member.join(self.queue.topic)
            seat.joined = True
        if not seat.connected:
            await seat.consumer.reconnect()
            seat.connected = True
        types = self._usable(action.types) if action.do is Do.ACK_ON_FETCH else []
        acks = seat.chosen(types, keep=[RENEW]) if seat.opened else []
        mode = {"share_acquire_mode": action.mode} if self.release.record_limit else {}
        options: dict[str, Any] = {"max_records": action.n, "max_wait_ms": action.wait} | mode
        if _renews(acks):
            options = {"max_records": 0} | _RENEWING | mode
        if not seat.opened:
            self.endings.reopened(seat)
        telling = self._begin_ack(seat, acks)
        ask = Fetch(member=seat.member, mode=Mode(action.mode), max_records=options["max_records"])
        operation = self.judge.begin_fetch(now_ms(), ask)
        response = await self._call(seat.consumer.fetch(*acks, **options))
        received = now_ms()
        if telling:
            self._end_ack(telling, received, self._ack_error(response))
        if response is None:
            self.judge.lost(operation, received)
            self._disconnect(seat)
        else:
            self._fetched(seat, operation, received, response)

    def _fetched(
        self, seat: LockstepMember, operation: Operation, received: float, response: Response
    ) -> None:
        part = response.only
        if response.error:
            seat.lose()
        else:
            seat.opened = True
            self._heed(self.endings.attended())
        if part.error or (response.error and response.error not in NOTHING_ACQUIRED):
            self.reached["fetches refused"] += 1
            self._heed(self.judge.over(operation, received))
            return
        ranges = [(r.first, r.last, r.count) for r in part.ranges]
        self._heed(self.judge.fetched(operation, received, ranges))
        seat.held.update(part.offsets)
        self.reached["deliveries"] += len(part.offsets)
        self.reached["redeliveries"] += sum(count > 1 for count in part.counts.values())

    async def _race(self, action: Action) -> None:
        pair = sorted({action.seat % MEMBER_COUNT, action.other % MEMBER_COUNT})
        one = replace(action, do=Do.FETCH)
        runs = [self._fetch(replace(one, seat=seat)) for seat in pair]
        # Both must have ended, or the loser would go on in the next example.
        for outcome in await asyncio.gather(*runs, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    # ------------------------------------------------------------------ acknowledging

    async def _ack(self, action: Action) -> None:
        seat = self.seats[action.seat % MEMBER_COUNT]
        await self._acknowledge(seat, seat.chosen(self._usable(action.types), keep=[RENEW]))

    async def _intrude(self, action: Action) -> None:
        seat, holder = (self.seats[n % MEMBER_COUNT] for n in (action.seat, action.other))
        types = self._usable(action.types)
        await self._acknowledge(seat, holder.chosen(types, keep=types))

    async def _acknowledge(self, seat: LockstepMember, acks: list[Ack]) -> None:
        if not (acks and seat.opened and seat.connected):
            return
        flag = {"is_renew_ack": True} if _renews(acks) else {}
        telling = self._begin_ack(seat, acks)
        response = await self._call(
            seat.consumer.session.acknowledge({seat.consumer.where: acks}, **flag)
        )
        if response is None:
            self._disconnect(seat)
        elif response.error:
            seat.lose()
        if telling:
            self._end_ack(telling, now_ms(), self._ack_error(response))

    def _usable(self, types: Sequence[int]) -> list[int]:
        return [kind if self.release.renewal or kind != RENEW else 2 for kind in types]

    def _begin_ack(self, seat: LockstepMember, acks: Sequence[Ack]) -> Operation | None:
        if not acks:
            return None
        batches = tuple(Batch(ack.first, ack.last, ack.types) for ack in acks)
        told = Acknowledge(member=seat.member, batches=batches, renew=_renews(acks))
        return self.judge.begin_acknowledge(now_ms(), told)

    def _end_ack(self, operation: Operation, received: float, error: int | None) -> None:
        if error is None:
            self.judge.lost(operation, received)
            return
        self.reached["acks refused" if error else "acks taken"] += 1
        self._heed(self.judge.answered(operation, received, error))

    @staticmethod
    def _ack_error(response: Response | None) -> int | None:
        if response is None:
            return None
        return response.error or response.only.ack_error

    # ------------------------------------------------------------------ sessions

    async def _close(self, action: Action) -> None:
        seat = self.seats[action.seat % MEMBER_COUNT]
        if not (seat.opened and seat.connected):
            return
        types = [kind if kind != RENEW else 2 for kind in action.types]
        acks = seat.chosen(types)
        telling = self._begin_ack(seat, acks)
        operation = self.judge.begin_close(now_ms(), seat.member)
        response = await self._call(seat.consumer.close(*acks))
        if telling:
            self._end_ack(telling, now_ms(), self._ack_error(response))
        self.endings.add(seat, operation)
        seat.lose()
        if response is None:
            self._disconnect(seat)

    async def _leave(self, action: Action) -> None:
        seat = self.seats[action.seat % MEMBER_COUNT]
        if seat.joined:
            seat.joined = False
            await seat.consumer.member.leave()

    def _disconnect(self, seat: LockstepMember) -> None:
        if seat.connected:
            self.endings.add(seat, self.judge.begin_close(now_ms(), seat.member))
            seat.consumer.session.connection.abort()
        seat.connected = False
        seat.lose()
        if not any(one.connected for one in self.seats):
            self.endings.deserted()

    # ------------------------------------------------------------------ time, limits, views

    async def _limit(self, action: Action) -> None:
        if not self.release.group_limits:
            return
        self.settings = replace(self.settings, delivery_limit=action.n)
        asked = now_ms()
        wanted = {"share.delivery.count.limit": str(action.n)}
        await self.queue.env.admin.group_config(self.queue.group, wanted)
        self.judge.configured(Span(asked, now_ms()), self.settings)

    # ------------------------------------------------------------------ inside

    @staticmethod
    async def _call(asking: Awaitable[Response]) -> Response | None:
        try:
            return await asking
        except CallFailed:
            return None

    def _heed(self, judgement: Judgement) -> None:
        judgement.check(f"after {len(self.script)} actions")


def _renews(acks: Sequence[Ack]) -> bool:
    return any(RENEW in ack.types for ack in acks)
