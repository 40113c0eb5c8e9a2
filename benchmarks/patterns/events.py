"""What the processes wrote down, read back as tables in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
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
