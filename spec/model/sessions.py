"""Share sessions on one broker: whose they are, their epochs and their partitions (KIP-932).

A session belongs to a member of a group on one broker. Epoch 0 opens it, -1 ends it, and every
request in between carries the next number. It ends with the connection that opened it, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from uuid import UUID

OPEN, FINAL, LAST = 0, -1, 2**31 - 1
"""Epochs that open and end a session, and the one behind which 1 comes again."""

Owner = tuple[str, str]  # Group and member.
Place = tuple[UUID, int]  # Topic id and partition index.


class Denial(Enum):
    NOT_FOUND = auto()
    WRONG_EPOCH = auto()
    FULL = auto()


@dataclass(slots=True, kw_only=True)
class Session:
    """One member's session. ``epoch`` is the one that its next request has to carry."""

    owner: Owner
    connection: Any
    epoch: int = 1
    turns: int = 0
    places: dict[Place, None] = field(default_factory=dict)

    def add(self, places: Iterable[Place]) -> None:
        self.places.update(dict.fromkeys(places))

    def forget(self, places: Iterable[Place]) -> None:
        for place in places:
            self.places.pop(place, None)

    def rotated(self) -> list[Place]:
        """Return the partitions, another one first each time, so that none of them starves."""
        places = list(self.places)
        turn = self.turns % len(places) if places else 0
        self.turns += 1
        return places[turn:] + places[:turn]


class Sessions:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open_ones: dict[Owner, Session] = {}

    def open(self, owner: Owner, connection: Any) -> Session | Denial:
        if owner not in self.open_ones and self._full():
            return Denial.FULL
        session = Session(owner=owner, connection=connection)
        self.open_ones[owner] = session
        return session

    def _full(self) -> bool:
        return len(self.open_ones) >= self.limit

    def has(self, owner: Owner) -> bool:
        return owner in self.open_ones

    def holds(self, session: Session) -> bool:
        return self.open_ones.get(session.owner) is session

    def next(self, owner: Owner, epoch: int) -> Session | Denial:
        """Take a request that carries an epoch; the final one is compared with nothing."""
        session = self.open_ones.get(owner)
        if session is None:
            return Denial.NOT_FOUND
        if epoch == FINAL:
            return session
        if not self._fits(session, epoch):
            return Denial.WRONG_EPOCH
        session.epoch = 1 if epoch == LAST else epoch + 1
        return session

    @staticmethod
    def _fits(session: Session, epoch: int) -> bool:
        return session.epoch == epoch

    def end(self, owner: Owner) -> None:
        self.open_ones.pop(owner, None)

    def lost(self, connection: Any) -> list[Owner]:
        owners = [owner for owner, one in self.open_ones.items() if one.connection is connection]
        for owner in owners:
            self.end(owner)
        return owners
