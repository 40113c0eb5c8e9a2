"""What became of each delivery, as the frames between a program and its brokers tell it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from fixtures.clients.member import CLOSE, AckType
from fixtures.proxies.exchange import Exchange
from suites.client.wire import Acked, Acquired, acked, acquired

Place = tuple[UUID, int, int]
"""Topic id, partition and offset of a record."""

TERMINAL = frozenset({AckType.ACCEPT, AckType.RELEASE, AckType.REJECT})


@dataclass(slots=True, kw_only=True, eq=False)
class Delivery:
    """One delivery of one record to one member; times are seconds on the monotonic clock.

    Attributes:
        at: When the member got the response that it was acquired by.
        until: When its lock ends, at the latest.
        kind: How it was acknowledged; None if it was not.
        acked: When that was sent.
        error: The error of the response to that; None if there was no response.
        closed: When the member closed the share session that held it.
        renewals: How often its lock was renewed.
    """

    place: Place
    member: str
    node: int
    count: int
    at: float
    until: float
    kind: AckType | None = None
    acked: float = math.inf
    error: int | None = 0
    closed: float = math.inf
    renewals: int = 0

    @property
    def done(self) -> float:
        """When the member let go of it; infinite if it never did."""
        return min(self.acked, self.closed)

    @property
    def final(self) -> bool:
        """Whether the record was accepted or rejected, as far as the member can know."""
        return self.kind in {AckType.ACCEPT, AckType.REJECT} and not self.error

    def lapsed(self, now: float) -> bool:
        """Tell whether its lock ended while the member held it."""
        return self.until < min(self.done, now)

    def held(self, now: float) -> bool:
        """Tell whether the member holds it."""
        return self.at <= now < min(self.done, self.until)

    def __str__(self) -> str:
        return (
            f"offset {self.place[2]} of partition {self.place[1]}, delivery {self.count} "
            f"to member {self.member} by broker {self.node}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """An acknowledgement of a record that its sender did not hold, and why it did not."""

    ack: Acked
    why: str


@dataclass(slots=True)
class Deliveries:
    """All deliveries to a group, in their order, and the acknowledgements that belong to none."""

    of: dict[Place, list[Delivery]] = field(default_factory=dict)
    strays: list[Stray] = field(default_factory=list)

    def __iter__(self) -> Iterator[Delivery]:
        """Yield each delivery, record by record."""
        for deliveries in self.of.values():
            yield from deliveries

    def held(self, now: float) -> list[Delivery]:
        """Return what members hold at a time; of each record its last delivery until then."""
        so_far = ([one for one in each if one.at <= now] for each in self.of.values())
        return [each[-1] for each in so_far if each and each[-1].held(now)]

    @property
    def last(self) -> float:
        """When the last record came."""
        return max((one.at for one in self), default=0.0)

    @property
    def last_ack(self) -> float:
        """When the last acknowledgement was sent."""
        return max((one.acked for one in self if one.kind is not None), default=0.0)

    def finished(self, place: Place, limit: int, now: float) -> bool:
        """Tell whether a record is accepted, rejected, or archived at the delivery limit."""
        deliveries = self.of.get(place, [])
        if any(one.final for one in deliveries):
            return True
        if not deliveries or deliveries[-1].count < limit:
            return False
        return deliveries[-1].done < now or deliveries[-1].until < now


def deliveries_of(exchanges: Sequence[Exchange], lock: float) -> Deliveries:
    """Return what became of each delivery.

    Args:
        exchanges: The share fetches and acknowledgements of one group.
        lock: Seconds that a lock lasts, for responses that do not say it.
    """
    found = Deliveries()
    for at, _, what in sorted(_events(exchanges), key=lambda event: event[:2]):
        if isinstance(what, Acquired):
            _acquire(found, what, at, lock)
        elif isinstance(what, Acked):
            _acknowledge(found, what, lock)
        else:
            _close(found, cast("Exchange", what))
    return found


def _events(exchanges: Sequence[Exchange]) -> Iterable[tuple[float, int, object]]:
    """Yield acknowledgements when they were sent, and acquisitions when they arrived."""
    yield from ((ack.by.sent, 0, ack) for ack in acked(exchanges))
    closing = (one for one in exchanges if one.request["share_session_epoch"] == CLOSE)
    yield from ((one.sent, 1, one) for one in closing)
    yield from ((one.by.responded, 2, one) for one in acquired(exchanges))


def _lock(one: Exchange, usual: float) -> float:
    told = (one.response or {}).get("acquisition_lock_timeout_ms", 0)
    return told / 1000 if told > 0 else usual


def _acquire(found: Deliveries, one: Acquired, at: float, lock: float) -> None:
    place = one.topic_id, one.partition, one.offset
    found.of.setdefault(place, []).append(
        Delivery(
            place=place,
            member=one.by.request["member_id"],
            node=one.by.node,
            count=one.count,
            at=at,
            until=at + _lock(one.by, lock),
        )
    )


def _acknowledge(found: Deliveries, ack: Acked, lock: float) -> None:
    kind = AckType(ack.kind)
    if kind is AckType.GAP:
        return
    member, node = ack.by.request["member_id"], ack.by.node
    deliveries = found.of.get((ack.topic_id, ack.partition, ack.offset), [])
    own = [one for one in deliveries if one.member == member]
    if not own:
        holders = {one.member for one in deliveries}
        whose = f"only {', '.join(sorted(holders))} did" if holders else "nobody did"
        found.strays.append(Stray(ack=ack, why=f"{member} never acquired it, {whose}"))
        return
    last = own[-1]
    if last.node != node:
        found.strays.append(Stray(ack=ack, why=f"{member} acquired it from broker {last.node}"))
    elif last.kind is not None and last.error == 0:
        found.strays.append(Stray(ack=ack, why=f"{member} had sent {last.kind.name} before"))
    elif kind is AckType.RENEW:
        if not ack.error and ack.by.response is not None:
            last.until, last.renewals = ack.by.responded + lock, last.renewals + 1
    else:
        last.kind, last.acked, last.error = kind, ack.by.sent, ack.error


def _close(found: Deliveries, one: Exchange) -> None:
    for delivery in found:
        mine = delivery.member == one.request["member_id"] and delivery.node == one.node
        if mine and delivery.at <= one.sent:
            delivery.closed = min(delivery.closed, one.sent)
