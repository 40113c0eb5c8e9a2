"""Copies of a log of a real history, what is altered in them, and the way back to journals."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from spec.history import NEVER, ROWS, TABLES, AckType, Outcome

Row = dict[str, Any]
Rows = dict[str, list[Row]]
MS, SECOND = 1_000_000, 1_000_000_000
_OPS = 1 << 48  # how far the requests of one copy are from those of the next
_ORDER = ("offset", "share_partition", "acquired")
_PLAIN = ("phases", "faults")  # tables that are about the whole run
_OF_SHARE_PARTITIONS = [
    name for name in TABLES if name in ROWS and "share_partition" in ROWS[name]._fields
]
_UNACKNOWLEDGED = {
    "kind": int(AckType.NONE),
    "ack_sent": NEVER,
    "ack_received": NEVER,
    "outcome": int(Outcome.NONE),
    "error": 0,
    "attempts": 0,
    "renewals": 0,
    "freed": NEVER,
}


@dataclass(slots=True)
class Copy:
    """A log and its groups, under numbers of its own.

    ``edge`` says which of several places that suit an alteration is taken: 0 the first, -1
    the last.
    """

    tables: Rows
    edge: int = 0
    _ops: int = 0

    @property
    def log(self) -> int:
        return int(self.tables["share_partitions"][0]["log"])

    @property
    def places(self) -> frozenset[int]:
        """All numbers that a verdict may name: share-partitions and requests."""
        share_partitions = {row["share_partition"] for row in self.tables["share_partitions"]}
        return frozenset(share_partitions | {row["op"] for row in self.tables["operations"]})

    def share(self, share_partition: int) -> Row:
        """Return the row of a share-partition."""
        rows = self.tables["share_partitions"]
        return next(row for row in rows if row["share_partition"] == share_partition)

    def share_partitions(self, *groups: str) -> list[int]:
        """Return the share-partitions of groups of a load, by what it calls these."""
        rows = self.tables["share_partitions"]
        return [
            r["share_partition"] for r in rows if any(f"-{name}-" in r["group"] for name in groups)
        ]

    @property
    def log_start(self) -> int:
        """How far the log's start may have moved."""
        shown = [int(row["log_start"]) for row in self.tables["offsets"]]
        deleted = [int(row["before"]) for row in self.tables["deletions"]]
        return max([0, *shown, *deleted])

    @property
    def lives(self) -> dict[tuple[int, int], list[Row]]:
        """The deliveries of each record to each group in the order in which they were seen."""
        found: dict[tuple[int, int], list[Row]] = {}
        for row in sorted(self.tables["deliveries"], key=itemgetter(*_ORDER)):
            found.setdefault((row["offset"], row["share_partition"]), []).append(row)
        return found

    def choose(self, wanted: Callable[[list[Row]], bool], *groups: str) -> list[Row]:
        """Return the life of the first or the last record that suits.

        Raises:
            NoPlace: there is none.
        """
        share_partitions = self.share_partitions(*(groups or ("calm", "odd", "rough", "committed")))
        found = [
            life
            for (offset, share_partition), life in self.lives.items()
            if share_partition in share_partitions and offset >= self.log_start and wanted(life)
        ]
        if not found:
            raise NoPlace
        return found[self.edge]

    def again(self, row: Row, *, sent: int, acquired: int, count: int, **changes: Any) -> Row:
        """Deliver a record once more, to a member that acknowledges with an unknown outcome."""
        lock = row["lock_ms"] * MS
        self._ops += 1
        twin = {**row, **_UNACKNOWLEDGED, "op": max(self.places) + 1 + self._ops, "after": -1}
        twin |= {"member": row["member"] + 1, "sent": sent, "acquired": acquired, "count": count}
        twin |= {"holds_until": sent + lock, "ends_by": acquired + lock}
        twin |= acknowledged(AckType.ACCEPT, acquired + MS, NEVER, Outcome.UNKNOWN) | changes
        self.tables["deliveries"].append(twin)
        fetch = next(one for one in self.tables["operations"] if one["op"] == row["op"])
        answered = {"op": twin["op"], "sent": sent, "received": acquired}
        self.tables["operations"].append({**fetch, **answered})
        return twin

    def request(self, row: Row, **changes: Any) -> None:
        op = max(one["op"] for one in self.tables["operations"]) + 1
        self.tables["operations"].append({**row, "op": op, **changes})

    @staticmethod
    def unacknowledged() -> Row:
        """Return what a delivery's row says if nobody ended it."""
        return dict(_UNACKNOWLEDGED)

    def reload(self, share_partition: int, since: int, until: int, node: int = -1) -> None:
        """Have any broker perhaps load a share-partition, or one for certain."""
        span = {"share_partition": share_partition, "since": since, "until": until}
        why = "altered" if node == -1 else "read"
        self.tables["reloads"].append({**span, "node": node, "why": why})

    def unseen_response(self, share_partition: int, since: int, until: int) -> None:
        self.tables["unseen_responses"].append(
            {"share_partition": share_partition, "since": since, "until": until}
        )

    def delete(self, offset: int, sent: int, received: int, outcome: Outcome) -> None:
        """Have somebody delete a record and all before it."""
        told = {"log": self.log, "before": offset + 1, "sent": sent, "received": received}
        self.tables["deletions"].append({**told, "outcome": int(outcome)})

    def looks(self, share_partition: int) -> list[Row]:
        rows = [row for row in self.tables["offsets"] if row["share_partition"] == share_partition]
        return sorted(rows, key=lambda row: row["sent"])

    def store_start_only(self, share_partition: int) -> None:
        """Have nothing be stored of a share-partition but a start offset beyond all there is."""
        for row in self.stored(share_partition):
            row.update(spso=10**6, first=-1, last=-1, state=-1, count=-1)

    def stored(self, share_partition: int) -> list[Row]:
        rows = self.tables["persisted"]
        return [row for row in rows if row["share_partition"] == share_partition]

    def drop(self, table: str, unwanted: Callable[[Row], bool]) -> None:
        self.tables[table] = [row for row in self.tables[table] if not unwanted(row)]


class NoPlace(Exception):
    """A history has no place where an alteration would make sense."""


def acknowledged(kind: AckType, sent: int, received: int, outcome: Outcome = Outcome.OK) -> Row:
    error = 121 if outcome is Outcome.FAILED else 0
    ended = {"kind": int(kind), "ack_sent": sent, "ack_received": received, "attempts": 1}
    return {**ended, "outcome": int(outcome), "error": error}


def ended_as(row: Row, outcome: Outcome) -> Row:
    """Return what a delivery's row says if its acknowledgement was refused or never answered."""
    received = NEVER if outcome is Outcome.UNKNOWN else row["ack_received"]
    return acknowledged(AckType(row["kind"]), row["ack_sent"], received, outcome)


def is_proven(row: Row) -> bool:
    """Tell whether an acknowledgement was answered OK certainly within its lock."""
    in_lock = row["ack_received"] <= min(row["holds_until"], row["freed"])
    no_load_since = row["loads_before_fetch"] == row["loads_by_ack"]
    return bool(row["outcome"] == Outcome.OK and row["attempts"] == 1 and in_lock and no_load_since)


def copy_of(tables: Rows, number: int, log: int, edge: int) -> Copy:
    """Return a copy of a log, to be called ``log``; its other numbers follow from ``number``."""
    names = {
        row["share_partition"]: 1000 * number + row["slot"] for row in tables["share_partitions"]
    }
    found: Rows = {}
    for name, rows in tables.items():
        found[name] = [dict(row) for row in rows]
        for row in found[name]:
            row.update(_renumbered(row, name, names, log, number * _OPS))
    return Copy(found, edge)


def _renumbered(
    row: Row, table: str, names: dict[int, int], log: int, ops: int
) -> Iterator[tuple[str, int]]:
    if "log" in row:
        yield "log", log
    if "share_partition" in row:
        yield "share_partition", names[row["share_partition"]]
    if "op" in row:
        yield "op", row["op"] + ops
    if table == "share_partitions":
        yield "topic", f"copy-{log}"  # type: ignore[misc]


def read_source(history: Path, partition: int) -> Rows:
    """Read what a history says of one partition of its topic."""
    tables = {name: _read(history, name) for name in TABLES}
    share_partitions = [row for row in tables["share_partitions"] if row["partition"] == partition]
    of_log = dict.fromkeys(("produced", "deliveries", "deletions"), "log")
    for name, by in (dict.fromkeys(_OF_SHARE_PARTITIONS, "share_partition") | of_log).items():
        mine = {row[by] for row in share_partitions}
        tables[name] = [row for row in tables[name] if row[by] in mine]
    used = {row["op"] for row in tables["deliveries"]}
    tables["operations"] = [row for row in tables["operations"] if row["op"] in used]
    return tables


def _read(history: Path, name: str) -> list[Row]:
    files = sorted((history / name).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def write_copies(folder: Path, copies: Sequence[Copy], version: str) -> None:
    """Write copies as the journals of one run, and compact these.

    What is altered in the row of a delivery is written as what its member journals, so whatever
    the compaction makes of that is judged, too.
    """
    with Journal(folder, 0) as journal:
        for name in _PLAIN:
            for row in copies[0].tables[name]:
                _add(journal, name, row)
        for copy in copies:
            _write(journal, copy)
    document = {"target": {"name": "altered", "version": version}}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    compact(folder)


def _write(journal: Journal, copy: Copy) -> None:
    for name in (*_OF_SHARE_PARTITIONS, "operations", "deletions"):
        for row in copy.tables[name]:
            _add(journal, name, row)
    for row in copy.tables["produced"]:
        _add(journal, "produced", {**row, "first": row["offset"], "records": 1})
    told: set[tuple[int, int]] = set()
    for row in copy.tables["deliveries"]:
        here = {**row, "first": row["offset"], "last": row["offset"]}
        _add(journal, "acquired", here)
        # What is listed twice in a response is acknowledged once.
        for act in _acts(row) if (row["op"], row["offset"]) not in told else ():
            _add(journal, "acknowledged", here | act)
        told.add((row["op"], row["offset"]))


def _add(journal: Journal, name: str, row: Row) -> None:
    journal.add(ROWS[name]._make(row[column] for column in ROWS[name]._fields))


def _acts(row: Row) -> Iterator[Row]:
    """Yield what the holder of a delivery did about it, as far as the delivery's row tells."""
    yield from _renewals(row)
    received = row["ack_received"] if row["ack_received"] < NEVER else -1
    ended = {"sent": row["ack_sent"], "received": received}
    for _ in range(row["attempts"]):
        yield ended
    if row["freed"] < NEVER:
        outcome = row["outcome"] if row["kind"] == AckType.CLOSED else Outcome.OK
        times = {"sent": row["freed"], "received": row["freed"]}
        yield {"kind": int(AckType.CLOSED), "outcome": int(outcome), "error": 0, **times}


def _renewals(row: Row) -> Iterator[Row]:
    """Yield as many renewals as there were, evenly, so that the lock ends when it ended."""
    lock, times = row["lock_ms"] * MS, row["renewals"]
    more = row["holds_until"] - lock - row["sent"]
    ends_by = row["ends_by"] if row["ends_by"] < NEVER else row["holds_until"]
    later = ends_by - lock - row["acquired"]
    for turn in range(1, times + 1):
        sent = row["sent"] + more * turn // times
        received = row["acquired"] + later * turn // times
        done = {"kind": int(AckType.RENEW), "outcome": int(Outcome.OK), "error": 0}
        if turn == times and row["ends_by"] == NEVER:
            done, received = done | {"outcome": int(Outcome.UNKNOWN)}, -1
        yield {**done, "sent": sent, "received": received}


Alter = Callable[..., object]
"""Takes a copy, the rows that it is about if it is of some, and the fields declared with it."""
Chosen = Callable[[Copy], Sequence[Any]]
"""Returns the rows that an alteration is about."""


def life_of(wanted: Callable[[list[Row]], bool], *groups: str, last: int = 1) -> Chosen:
    """Choose the last deliveries of a record that suits, of these or any groups."""
    return lambda copy: copy.choose(wanted, *groups)[-last:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One thing that is altered in a copy, and what the judge must say of it.

    Attributes:
        rule: The rule that it is about.
        breaks: Whether it breaks that rule; otherwise it breaks none.
        also: Rules that see the same, and may or may not say so.
        partition: That of the log that is copied: records of 1 are deleted now and then.
        name: What it does.
        alter: Does it; raises NoPlace where the history has no place for it.
    """

    rule: str
    breaks: bool
    also: frozenset[str]
    partition: int
    name: str
    alter: Callable[[Copy], None]

    def __str__(self) -> str:
        return f"{self.rule} {'broken' if self.breaks else 'kept'}: {self.name}"


ALTERATIONS: list[Alteration] = []
"""Every alteration, in the order in which the modules beside this one tell them."""


def breaks(rules: str, name: str = "", **more: Any) -> Callable[[Alter], Alter]:
    """Declare that what a function alters, when it is given these fields, breaks a rule.

    Args:
        rules: the rule, and others that see the same and may or may not say so.
        name: what it does; an alteration without a name is called like the function.
        more: its ``partition``, which rows it is ``of``, and the fields.
    """
    return _declared(rules, name, breaks=True, **more)


def keeps(rules: str, name: str = "", **more: Any) -> Callable[[Alter], Alter]:
    """Declare that what a function alters is legal, though it looks like the breach of a rule."""
    return _declared(rules, name, breaks=False, **more)


def _declared(
    rules: str,
    name: str,
    *,
    breaks: bool,
    partition: int = 0,
    of: Chosen = lambda _: (),
    **fields: Any,
) -> Callable[[Alter], Alter]:
    rule, *also = rules.split()

    def declare(alter: Alter) -> Alter:
        def altered(copy: Copy) -> None:
            alter(copy, *of(copy), **fields)

        made = Alteration(
            rule=rule,
            breaks=breaks,
            also=frozenset(also),
            partition=partition,
            name=name or alter.__name__.replace("_", " ").strip(),
            alter=altered,
        )
        ALTERATIONS.append(made)
        return alter

    return declare
