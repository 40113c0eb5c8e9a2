"""What became of each delivery, as the frames between a program and its brokers tell it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from fixtures.clients.member import CLOSE, AckType
from fixtures.proxies.exchange import Exchange
from suites.client.wire import Acked, Acquired, acked, acquired

Place = tuple[UUID, int, int]  # Topic id, partition and offset of a record.


@dataclass(slots=True, kw_only=True, eq=False)
class Delivery:
    """One delivery of one record to one member; times are seconds on the monotonic clock."""

    place: Place
    member: str
    node: int
    count: int
    at: float  # When the member got the response that it was acquired by.
    until: float  # When its lock ends, at the latest.
    kind: AckType | None = None  # How it was acknowledged; None if it was not.
    acked: float = math.inf  # When that was sent.
    error: int | None = 0  # The error of the response to that; None if there was no response.
    closed: float = math.inf  # When the member closed the share session that held it.
    renewals: int = 0  # How often its lock was renewed.

    @property
    def done(self) -> float:
        """When the member let go of it; infinite if it never did."""
        return min(self.acked, self.closed)

    @property
    def final(self) -> bool:
        return self.kind in {AckType.ACCEPT, AckType.REJECT} and not self.error

    def lapsed(self, now: float) -> bool:
        return self.until < min(self.done, now)

    def held(self, now: float) -> bool:
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
    of: dict[Place, list[Delivery]] = field(default_factory=dict)
    strays: list[Stray] = field(default_factory=list)

    def __iter__(self) -> Iterator[Delivery]:
        for deliveries in self.of.values():
            yield from deliveries

    def held(self, now: float) -> list[Delivery]:
        """Return what members hold at a time; of each record its last delivery until then."""
        so_far = ([one for one in each if one.at <= now] for each in self.of.values())
        return [each[-1] for each in so_far if each and each[-1].held(now)]

    @property
    def last(self) -> float:
        return max((one.at for one in self), default=0.0)

    @property
    def last_ack(self) -> float:
        return max((one.acked for one in self if one.kind is not None), default=0.0)

    def finished(self, place: Place, limit: int, now: float) -> bool:
        deliveries = self.of.get(place, [])
        if any(one.final for one in deliveries):
            return True
        if not deliveries or deliveries[-1].count < limit:
            return False
        return min(deliveries[-1].done, deliveries[-1].until) < now

    def _acknowledge(self, ack: Acked, lock: float) -> None:
        kind, member = AckType(ack.kind), ack.by.request["member_id"]
        if kind is AckType.GAP:
            return
        deliveries = self.of.get((ack.topic_id, ack.partition, ack.offset), [])
        own = [one for one in deliveries if one.member == member]
        # What came again to who still had it is acknowledged once for each delivery.
        unsaid = [one for one in own if one.kind is None and one.closed > ack.by.sent]
        why, last = "", next(reversed(unsaid or own), None)
        if last is None:
            holders = ", ".join(sorted({one.member for one in deliveries}))
            why = f"{member} never acquired it, {f'only {holders}' if holders else 'nobody'} did"
        elif last.node != ack.by.node:
            why = f"{member} acquired it from broker {last.node}"
        elif last.kind is not None and last.error == 0:
            why = f"{member} had sent {last.kind.name} before"
        elif kind is not AckType.RENEW:
            last.kind, last.acked, last.error = kind, ack.by.sent, ack.error
        elif not ack.error and ack.by.response is not None:
            last.until, last.renewals = ack.by.responded + lock, last.renewals + 1
        if why:
            self.strays.append(Stray(ack=ack, why=why))


def deliveries_of(exchanges: Sequence[Exchange], lock: float) -> Deliveries:
    # Acknowledgements count when they were sent, acquisitions when they arrived.
    events: list[tuple[float, int, Acked | Exchange | Acquired]] = [
        *((ack.by.sent, 0, ack) for ack in acked(exchanges)),
        *((one.sent, 1, one) for one in exchanges if one.request["share_session_epoch"] == CLOSE),
        *((one.by.responded, 2, one) for one in acquired(exchanges)),
    ]
    found = Deliveries()
    for _, _, what in sorted(events, key=lambda event: event[:2]):
        if isinstance(what, Acquired):
            place, at = (what.topic_id, what.partition, what.offset), what.by.responded
            said = (what.by.response or {}).get("acquisition_lock_timeout_ms", 0)
            delivery = Delivery(
                place=place,
                member=what.by.request["member_id"],
                node=what.by.node,
                count=what.count,
                at=at,
                until=at + (said / 1000 if said > 0 else lock),
            )
            found.of.setdefault(place, []).append(delivery)
        elif isinstance(what, Acked):
            found._acknowledge(what, lock)
        else:
            session = what.request["member_id"], what.node
            for one in found:
                if (one.member, one.node) == session and one.at <= what.sent:
                    one.closed = min(one.closed, what.sent)
    return found
