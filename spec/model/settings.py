"""The group's configuration as the model needs it, and what may be in force at a moment.

A configuration change reaches a broker some time after it was answered, and the brokers one after
another. Between the two the model allows the old value and the new one.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a group is configured to. Durations in milliseconds, counts in records."""

    lock_ms: int = 30_000
    delivery_limit: int = 5
    max_locks: int = 2_000
    dead_letters: bool = False
    renewal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """How exact the observer's clock and the broker's timers are, in milliseconds.

    ``early_ms``: a lock may end this much before its time (the timer wheel's tick).
    ``late_ms``: a lock that should have ended has ended after this much more.
    ``linger_ms``: a request without a response acts this long after it was sent, or never.
    """

    early_ms: float = 1.0
    late_ms: float = 1_000.0
    linger_ms: float = math.inf


class Force(NamedTuple):
    lock_low: int
    lock_high: int
    limit_low: int
    limit_high: int
    max_locks: int
    letters: tuple[bool, ...]
    renewal: tuple[bool, ...]


class Knobs:
    def __init__(self, settings: Settings) -> None:
        self._all: list[tuple[float, float, Settings]] = [(-math.inf, -math.inf, settings)]
        self._one: Force | None = _force([settings])

    def change(self, sent: float, by: float, settings: Settings) -> None:
        self._all.append((sent, by, settings))
        self._one = None

    def over(self, sent: float, received: float) -> Force:
        if self._one is not None:
            return self._one
        found: list[Settings] = []
        for begins, certain, settings in reversed(self._all):
            if begins <= received:
                found.append(settings)
            if certain < sent:
                break
        return _force(found)

    @property
    def latest(self) -> Settings:
        return self._all[-1][2]


def _force(all_of: list[Settings]) -> Force:
    return Force(
        min(one.lock_ms for one in all_of),
        max(one.lock_ms for one in all_of),
        min(one.delivery_limit for one in all_of),
        max(one.delivery_limit for one in all_of),
        max(one.max_locks for one in all_of),
        tuple({one.dead_letters for one in all_of}),
        tuple({one.renewal for one in all_of}),
    )
