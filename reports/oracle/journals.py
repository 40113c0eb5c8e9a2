"""Reads the journals of a run as rows, on the run's clock.

What they look like is known from ``spec.history`` alone, and nothing here is shared with the
compaction, so that a mistake in it makes the two judges disagree. Journals of which bytes were
spoiled are no matter of the oracle.
"""

from bisect import bisect_left
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa

from spec.history import JOURNALS, LATEST, MOST_DELIVERIES, NEVER, TIMES
from spec.verdict import EnvironmentFault

Row = Any  # A row of a journal, its columns as attributes
Rows = dict[str, list[Row]]

SECOND = 1_000_000_000
LEADER = 0  # the process that leads a run, and notes the loads of share-partitions
UNSEEN_DRIFT = 1e-4  # by how much a clock may be fast or slow that was never seen to be
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # how an Arrow stream ends that was closed

# Columns such as "count" and "index" are methods of tuples too, which attributes hide well.
_KINDS: dict[str, Any] = {name: namedtuple(name, schema.names) for name, schema in JOURNALS.items()}


def read(history: Path) -> Rows:
    """Return the rows of all journals of a run, and of what killed processes left unsaid."""
    folders = sorted((history / "journal").glob("*"))
    if not folders:
        raise EnvironmentFault(
            f"{history}: there are no journals, and the oracle reads these alone"
        )
    rows: Rows = {name: [] for name in JOURNALS}
    died: dict[int, int] = {}
    for folder in folders:
        files = sorted(folder.glob("*.arrows"))
        own = {file.stem: list(_rows(file)) for file in files}
        hosts = _exact(own.get("host_clocks", []))
        behind = _behind(own.get("clocks", []))
        if hosts:
            own = {name: [_widened(row, hosts) for row in found] for name, found in own.items()}
        elif behind:
            own = {name: [_on_time(row, behind) for row in found] for name, found in own.items()}
        if not all(file.read_bytes().endswith(_END) for file in files):
            # A process told all that it did until where the first of its journals ends.
            ends = {name: max([0, *(_latest(row) for row in rows)]) for name, rows in own.items()}
            busy = [
                ends[name] for name in ("acquired", "acknowledged", "operations") if ends.get(name)
            ]
            died[int(folder.name)] = min(busy) if busy else max(ends.values(), default=0)
        for name, found in own.items():
            rows[name] += found
    _doubt(rows, died)
    return rows


def _rows(file: Path) -> Iterator[Row]:
    kind = _KINDS[file.stem]
    try:
        with pa.ipc.open_stream(file.read_bytes()) as stream:
            for batch in stream:
                yield from (kind(**row) for row in batch.to_pylist())
    except pa.ArrowInvalid:
        return  # Its process was killed while it wrote, or before.


def _behind(clocks: Iterable[Row]) -> int:
    measured = sorted(clocks, key=lambda row: (row.within == 0, row.within))
    return int(measured[0].behind) if measured else 0


def _on_time(row: Row, behind: int) -> Row:
    times = {name: getattr(row, name) for name in TIMES.intersection(row._fields)}
    return row._replace(**{n: at + behind for n, at in times.items() if 0 <= at < NEVER})


def _exact(measures: Sequence[Row]) -> list[Row]:
    errors = sorted(int(row.within) for row in measures)
    few = [row for row in measures if row.within <= errors[len(errors) // 2]]
    return sorted(few, key=lambda row: int(row.at))


def _widened(row: Row, measures: Sequence[Row]) -> Row:
    moved = {}
    for name in TIMES.intersection(row._fields):
        at = int(getattr(row, name))
        if 0 <= at < NEVER:
            behind, error = _offset(at, measures)
            moved[name] = at + behind + (error if name in LATEST else -error)
    return row._replace(**moved)


def _offset(at: int, measures: Sequence[Row]) -> tuple[int, int]:
    place = bisect_left(measures, at, key=lambda row: int(row.at))
    if 0 < place < len(measures):
        left, right = measures[place - 1], measures[place]
        moved = right.behind - left.behind
        share = (at - left.at) / (right.at - left.at)
        return left.behind + round(moved * share), max(left.within, right.within) + abs(moved)
    nearest = measures[0] if place == 0 else measures[-1]
    rates = [abs(b.behind - a.behind) / max(b.at - a.at, 1) for a, b in pairwise(measures)]
    beyond = ceil(max([UNSEEN_DRIFT, *rates]) * abs(at - nearest.at))
    return int(nearest.behind), nearest.within + beyond


def _latest(row: Row) -> int:
    times = (getattr(row, name) for name in TIMES.intersection(row._fields))
    return max([0, *(int(at) for at in times if at < NEVER)])


def _doubt(rows: Rows, died: Mapping[int, int]) -> None:
    """Add what is not known of processes that died and of whose members nobody says so.

    These were gone a second before the last that was told. From a second before that on anything
    may have been acquired by their groups, and their share-partitions may have been loaded; so may
    all have been, from a second before the last that the process told which notes the loads.
    """
    seen_dying = {row.member for row in rows["members"] if row.event == "killed"}
    last = {row.member: row for row in rows["members"]}
    gone = [
        row._replace(event="killed", at=died[row.process] - SECOND)
        for row in last.values()
        if row.process in died and row.member not in seen_dying
    ]
    rows["members"] += gone
    for share in rows["share_partitions"]:
        times = [row.at for row in gone if row.group == share.group]
        if times:
            span = {
                "share_partition": share.share_partition,
                "since": min(times) - SECOND,
                "until": NEVER - 1,
            }
            # Of how many deliveries nobody knows.
            unseen = _KINDS["unseen_responses"](**span)
            rows["unseen_responses"].extend([unseen] * MOST_DELIVERIES)
            killed = {"node": -1, "why": "its members were killed"}
            rows["reloads"].append(_KINDS["reloads"](**span, **killed))
        if LEADER in died:
            span = {"since": died[LEADER] - SECOND, "until": NEVER - 1, "node": -1}
            why = {"share_partition": share.share_partition, "why": "nobody noted loads any more"}
            rows["reloads"].append(_KINDS["reloads"](**span, **why))
