"""Numbers from events. All times in seconds; None where there is nothing to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from benchmarks.patterns.events import Course

LATE = 1.0
"""A record that waits longer was held up."""
_STEP, _POINTS = 0.25, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What came of one system in one scenario.

    Attributes:
        produced: records whose production was confirmed.
        lost: of those, the ones that nobody ever did.
        duplicates: times that a record was done again after it had been done.
        seconds: from the first delivery until everything was done once.
        rate: records a second in that time.
        busy: members that did anything.
        settle_median: how long the broker took to take a settlement.
        delay_median, delay_worst: from production to the end of the work, over all records.
        held_up: records that took longer than ``LATE``.
        held: records that the member held which died or froze, got and not settled.
        again_first, again_last: from the fault until the first and the last of these came again.
        pause: the longest time, from the fault on, in which nobody did a record of partition 0.
        progress: how many records were done by each quarter of a second.
        delays: when a record was produced, and its delay; so many of them as a plot shows.
    """

    produced: int
    lost: int
    duplicates: int
    seconds: float | None
    rate: float | None
    busy: int
    settle_median: float | None
    delay_median: float | None
    delay_worst: float | None
    held_up: int
    held: int
    again_first: float | None
    again_last: float | None
    pause: float | None
    progress: list[int]
    delays: list[tuple[float, float]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(course: Course, began: int, fault: int | None) -> Measures:
    """Return the measures of a course, of its records that are numbered from 0.

    Args:
        course: what happened.
        began: its time 0, in ns.
        fault: when something broke, in ns.
    """
    confirmed = {one.number: one for one in course.sent if one.offset >= 0 <= one.number}
    got = [one.at for one in course.got if one.number >= 0]
    done = sorted((one.at, one.number, one.member) for one in course.done if one.number >= 0)
    first: dict[int, int] = {}
    for at, number, _ in done:
        first.setdefault(number, at)
    delays = {
        number: _seconds(at - confirmed[number].sent)
        for number, at in first.items()
        if number in confirmed
    }
    seconds = _seconds(max(first.values()) - min(got)) if first and got else None
    held = _held(course, fault)
    again = _again(course, held, fault)
    settled = [_seconds(one.answered - one.sent) for one in course.settled if one.outcome == 1]
    return Measures(
        produced=len(confirmed),
        lost=len(confirmed.keys() - first.keys()),
        duplicates=len(done) - len(first),
        seconds=seconds,
        rate=round(len(first) / seconds, 1) if seconds else None,
        busy=len({member for _, _, member in done}),
        settle_median=_median(settled),
        delay_median=_median(list(delays.values())),
        delay_worst=max(delays.values(), default=None),
        held_up=sum(delay > LATE for delay in delays.values()),
        held=len(held),
        again_first=min(again, default=None),
        again_last=max(again, default=None),
        pause=_pause(course, fault),
        progress=_progress(sorted(first.values()), began),
        delays=[
            (_seconds(confirmed[number].sent - began), delay)
            for number, delay in sorted(delays.items())[:: len(delays) // _POINTS + 1]
        ],
    )


def _median(values: Sequence[float]) -> float | None:
    return round(median(values), 3) if values else None


def _seconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e9, 3)


def _held(course: Course, fault: int | None) -> set[int]:
    """Return the numbers of the records that who died or froze had got and not settled."""
    if fault is None or not course.dead:
        return set()
    gone = {one.member: one.at for one in course.dead}
    settled = {
        (one.member, one.op, one.offset, one.partition)
        for one in course.settled
        if one.outcome == 1 and one.answered <= gone.get(one.member, 0)
    }
    return {
        one.number
        for one in course.got
        if one.at <= gone.get(one.member, 0)
        and (one.member, one.op, one.offset, one.partition) not in settled
    }


def _again(course: Course, held: set[int], fault: int | None) -> list[float]:
    """Return how long after the fault each of the held records was handed to somebody else."""
    if fault is None:
        return []
    gone = {one.member for one in course.dead}
    found: dict[int, int] = {}
    for one in sorted(course.got, key=lambda one: one.at):
        if one.number in held and one.at > fault and one.member not in gone:
            found.setdefault(one.number, one.at)
    return [_seconds(at - fault) for at in found.values()]


def _pause(course: Course, fault: int | None) -> float | None:
    if fault is None:
        return None
    at = [fault, *sorted(one.at for one in course.done if one.partition == 0 and one.at > fault)]
    return max((_seconds(b - a) for a, b in pairwise(at)), default=None)


def _progress(times: Sequence[int], began: int) -> list[int]:
    found: list[int] = []
    done = 0
    while done < len(times):
        limit = began + int((len(found) + 1) * _STEP * 1e9)
        while done < len(times) and times[done] <= limit:
            done += 1
        found.append(done)
    return found
