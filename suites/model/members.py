"""The members of a lock-step run: what each believes to hold, and sessions that are ending.

A session's end is answered before its records are free, and a connection's end is not answered at
all. So the judge is told of an end when it begins, and that it is over when that is certain. A
member that opens a new session meanwhile makes its records ones that the old end may still free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fixtures.clients.member import Ack
from spec.model.operations import FINE, Batch, Judgement, Operation
from spec.model.partition import SharePartition
from suites.broker.share import Consumer
from suites.model.times import Time

MEMBER_COUNT = 3


@dataclass(slots=True)
class LockstepMember:
    """One of the members: its consumer, and the offsets that it believes to hold."""

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


def batches_of(acks: Sequence[Ack]) -> tuple[Batch, ...]:
    return tuple(Batch(ack.first, ack.last, ack.types) for ack in acks)


@dataclass(slots=True)
class _End:
    """The end of a session that began ``at`` some time; ``reopened``: there is a new one."""

    at: float
    operation: Operation
    seat: LockstepMember
    reopened: bool = False


class Endings:
    """The ends of sessions, until the judge can be told that they are over."""

    def __init__(self, judge: SharePartition, time: Time) -> None:
        self._judge = judge
        self._time = time
        self._under_way: list[_End] = []
        self._desertion: Operation | None = None

    def add(self, seat: LockstepMember, operation: Operation) -> None:
        self._under_way.append(_End(self._time.now(), operation, seat))

    def reopened(self, seat: LockstepMember) -> None:
        """Take in that a seat opens a new session: from now on its records are others, too."""
        for end in self._under_way:
            end.reopened = end.reopened or end.seat is seat

    def deserted(self) -> None:
        """Take in that no connection is left: the leader may forget the share-partition."""
        if self._desertion is None:
            self._desertion = self._judge.begin_reload(self._time.now())

    def attended(self) -> Judgement:
        """Take in that there is a session again: what was not forgotten by now will not be."""
        desertion, self._desertion = self._desertion, None
        return self._judge.over(desertion, self._time.now()) if desertion else FINE

    def settle(self) -> list[Judgement]:
        """Tell the judge of the ends that are long enough ago to be certain."""
        certain = self._time.now() - self._time.settled
        over = [end for end in self._under_way if end.at <= certain]
        self._under_way = [end for end in self._under_way if end.at > certain]
        return [self._told(end) for end in over]

    def moved(self) -> list[Judgement]:
        """Tell the judge that all ends are over, as another broker leads now."""
        over, self._under_way = self._under_way, []
        return [self._judge.over(end.operation, self._time.now()) for end in over]

    def _told(self, end: _End) -> Judgement:
        now = self._time.now()
        if end.reopened:
            return self._judge.over(end.operation, now)
        return self._judge.closed(end.operation, now)
