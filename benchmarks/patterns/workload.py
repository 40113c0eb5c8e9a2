"""What members and producers are asked to do, as values that go through JSON."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SHARE, GROUP, KMQ = "share", "group", "kmq"
SYSTEMS = (SHARE, GROUP, KMQ)
NAMES = {SHARE: "share group", GROUP: "consumer group", KMQ: "KMQ"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """What a member is asked to do.

    Attributes:
        system: one of ``SYSTEMS``.
        events: the file to write to.
        batch: at most so many records a poll.
        handler_ms: how long the work on a record takes.
        slow: the record (by its number) whose work takes ``slow_ms``, if there is one.
        trap: the record with which a member waits until ``fired`` exists, if there is one.
    """

    system: str
    bootstrap: str
    topic: str
    group: str
    markers: str
    events: str
    batch: int
    handler_ms: float
    slow: int | None = None
    slow_ms: float = 0.0
    trap: int | None = None
    fired: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Producing:
    """What a producer is asked to do.

    Attributes:
        begin: when to begin, in ns of the machine's monotonic clock, so that several begin as one.
        first: the number of the first record; below 0 are those that warm everything up.
        records: how many; they go to the partitions in turn.
        rate: records a second; 0 for all at once.
        burst: how many are written together, so that they are one batch of their partition.
    """

    bootstrap: str
    topic: str
    partitions: int
    events: str
    begin: int
    first: int
    records: int
    rate: float
    burst: int


Event = tuple[Any, ...]


class Notes:
    """A file of events, written at once, so that a process that is killed takes none along."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, events: Iterable[Event]) -> None:
        lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in events)
        if lines:
            os.write(self._file, lines.encode())
