"""The ledger of KMQ: what a tracker sends again, whatever dies, and that a broken one is seen.

A log of markers is made by chance; a tracker reads it in pieces, dies and starts anew where it had
committed. The truth is worked out from the log alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from benchmarks.kmq.ledger import Begun, Kind, Ledger, Place, life_of, of_copy

TIMEOUT = 100
SEEDS = range(40)


def place(offset: int) -> Place:
    """Return the place of a record of the queue."""
    return Place("queue", 0, offset)


@dataclass
class Log:
    """A partition of the markers topic: kind, place and time of each marker."""

    markers: list[tuple[Kind, Place, int]] = field(default_factory=list)

    def write(self, kind: Kind, where: Place, at: int) -> None:
        """Append a marker."""
        self.markers.append((kind, where, at))


@dataclass
class Tracker:
    """Reads a log by a ledger, as the real one does, and remembers what it sent."""

    log: Log
    kind: type[Ledger] = Ledger
    committed: int = 0
    sent: Counter[Place] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Know nothing but what was committed."""
        self.ledger = self.kind(TIMEOUT)
        self.read_to = self.committed

    def step(self, now: int, markers: int) -> None:
        """Read some markers, look at the log's end, and send what is overdue."""
        for position in range(self.read_to, min(len(self.log.markers), self.read_to + markers)):
            self.ledger.take(position, *self.log.markers[position])
            self.read_to = position + 1
        if self.ledger.wants_look(now):
            self.ledger.looked(len(self.log.markers), now)
        for where in self.ledger.overdue():
            self.sent[where] += 1
            self.log.write(Kind.END, where, now)
            self.ledger.ended(where)
        self.committed = max(self.committed, self.ledger.committable)


def played(kind: type[Ledger], seed: int) -> tuple[Counter[Place], set[Place], set[Place]]:
    """Play a night: return what was sent again, what was owed, and what must not be sent."""
    rng, log = Random(seed), Log()
    tracker = Tracker(log, kind)
    now, working, ended_in_time, abandoned = 0, dict[Place, int](), set[Place](), set[Place]()
    for number in range(200):
        now += rng.randrange(1, 20)
        log.write(Kind.START, place(number), now)
        working[place(number)] = now
        for where, since in list(working.items()):
            if now - since > TIMEOUT // 2:  # done well before its time, or given up for good
                del working[where]
                if rng.random() < 0.9:
                    log.write(Kind.END, where, now)
                    ended_in_time.add(where)
                else:
                    abandoned.add(where)
        if rng.random() < 0.1:
            tracker.start()
        tracker.step(now, rng.randrange(0, 6))
    for where in working:
        log.write(Kind.END, where, now)
        ended_in_time.add(where)
    for _ in range(200):
        now += 10
        tracker.step(now, 20)
    return tracker.sent, abandoned, ended_in_time


def wrong(kind: type[Ledger]) -> list[str]:
    """Return what a tracker with such a ledger does wrong in any of many nights."""
    found = []
    for seed in SEEDS:
        sent, owed, forbidden = played(kind, seed)
        found += [f"{seed}: {where} was never sent again" for where in owed - sent.keys()]
        found += [f"{seed}: {where} had ended" for where in forbidden & sent.keys()]
    return found


def test_all_that_was_given_up_is_sent_again_and_nothing_that_ended() -> None:
    assert wrong(Ledger) == []


def test_what_is_sent_again_is_sent_once() -> None:
    for seed in SEEDS:
        assert set(played(Ledger, seed)[0].values()) <= {1}


class _DeafToEnds(Ledger):
    def take(self, position: int, kind: Kind, place: Place, at: int) -> None:
        if kind is Kind.START:
            super().take(position, kind, place, at)
        self.position = position + 1


class _TrustsTheClock(Ledger):
    def overdue(self) -> list[Place]:
        look = self.look
        return [p for p, one in self.begun.items() if look is not None and one.due <= look.at]


class _CommitsWhatItRead(Ledger):
    @property
    def committable(self) -> int:
        return self.position


class _Forgets(Ledger):
    def take(self, position: int, kind: Kind, place: Place, at: int) -> None:
        super().take(position, kind, place, at)
        if len(self.begun) > 10:
            self.begun.pop(next(iter(self.begun)))


class _NeverLooks(Ledger):
    def wants_look(self, now: int) -> bool:
        return now < 0


@pytest.mark.parametrize(
    "broken", [_DeafToEnds, _TrustsTheClock, _CommitsWhatItRead, _Forgets, _NeverLooks]
)
def test_a_broken_tracker_is_noticed(broken: type[Ledger]) -> None:
    assert wrong(broken)


def test_who_begins_anew_has_the_whole_time() -> None:
    ledger = Ledger(TIMEOUT)
    ledger.take(0, Kind.START, place(1), 0)
    ledger.take(1, Kind.START, place(1), 60)
    assert ledger.begun == {place(1): Begun(1, 60 + TIMEOUT)}
    ledger.looked(2, 120)
    assert ledger.overdue() == []
    ledger.looked(2, 160)
    assert ledger.overdue() == [place(1)]


def test_places_go_through_bytes() -> None:
    assert Place.from_bytes(place(7).to_bytes()) == place(7)
    assert life_of(place(9), None) == (place(9), 1)
    assert life_of(place(9), [("other", b"x"), *of_copy(place(7), 3)]) == (place(7), 3)


@pytest.mark.parametrize("key", [b"", b"7", b"[1, 2]", b"{", b"null"])
def test_a_strange_marker_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Place.from_bytes(key)
