"""What the processes wrote down, read back as tables in memory."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that was produced; times in ns, offset -1 where nobody said where it went."""

    partition: int
    offset: int
    number: int
    sent: int
    stored: int


@dataclass(frozen=True, slots=True)
class Got:
    """A record that was handed out to a member. The place is that of the first copy."""

    member: int
    op: int
    partition: int
    offset: int
    count: int
    number: int
    asked: int
    at: int


@dataclass(frozen=True, slots=True)
class Done:
    member: int
    op: int
    partition: int
    offset: int
    number: int
    at: int


@dataclass(frozen=True, slots=True)
class Settled:
    """A record was settled: 1 OK, 2 failed, 3 unknown."""

    member: int
    op: int
    partition: int
    offset: int
    sent: int
    answered: int
    outcome: int


@dataclass(frozen=True, slots=True)
class Dead:
    """A member that was killed, or frozen from a time on until another."""

    member: int
    at: int
    until: int = -1


@dataclass(slots=True)
class Course:
    """What happened to one system in one scenario; ``down`` is when a broker was away."""

    sent: list[Sent] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)
    down: tuple[int, int] | None = None
    drained: bool = False
    ends: dict[int, int] = field(default_factory=dict)
    """Where the log of each partition ended when it was drained."""


def read(file: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the events of a file; a last line that was not finished is left out."""
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield tuple(json.loads(line))


def gather(folder: Path) -> Course:
    """Return what the processes of a folder wrote: ``producer*.events``, ``member-N.events``."""
    course = Course()
    for file in sorted(folder.glob("producer*.events")):
        course.sent += [Sent(*rest) for name, *rest in read(file) if name == "sent"]
    for file in sorted(folder.glob("member-*.events")):
        member = int(file.stem.split("-")[1])
        for name, *rest in read(file):
            if name == "got":
                course.got.append(Got(member, *rest))
            elif name == "done":
                course.done.append(Done(member, *rest))
            elif name == "settled":
                course.settled.append(Settled(member, *rest))
    return course


LATE = 1.0  # A record that waits longer was held up
_STEP, _POINTS = 0.25, 1000


def measure(course: Course, began: int, fault: int | None) -> dict[str, Any]:
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
    # From the first delivery until everything was done once.
    seconds = _seconds(max(first.values()) - min(got)) if first and got else None
    held = _held(course, fault)
    again = _again(course, held, fault)
    settled = [_seconds(one.answered - one.sent) for one in course.settled if one.outcome == 1]
    return {
        "produced": len(confirmed),
        "lost": len(confirmed.keys() - first.keys()),
        "duplicates": len(done) - len(first),
        "seconds": seconds,
        "rate": round(len(first) / seconds, 1) if seconds else None,
        "busy": len({member for _, _, member in done}),  # members that did anything
        "settle_median": _median(settled),
        # From production to the end of the work, over all records.
        "delay_median": _median(list(delays.values())),
        "delay_worst": max(delays.values(), default=None),
        "held_up": sum(delay > LATE for delay in delays.values()),
        # What the member had got and not settled that died or froze, and when that came again.
        "held": len(held),
        "again_first": min(again, default=None),
        "again_last": max(again, default=None),
        "pause": _pause(course, fault),
        "progress": _progress(sorted(first.values()), began),
        "delays": [
            (_seconds(confirmed[number].sent - began), delay)
            for number, delay in sorted(delays.items())[:: len(delays) // _POINTS + 1]
        ],
    }


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
    """Return how many records were done by each quarter of a second."""
    found: list[int] = []
    done = 0
    while done < len(times):
        limit = began + int((len(found) + 1) * _STEP * 1e9)
        while done < len(times) and times[done] <= limit:
            done += 1
        found.append(done)
    return found
