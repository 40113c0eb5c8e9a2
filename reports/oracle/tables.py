"""A history's tables as rows in memory, and what is known of each share-partition."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from reports.analysis.files import History
from spec.history import BUCKETED, TABLES
from spec.model.release import Release, release_of

Row = Any
"""A row of a table of ``spec.history``, its columns as attributes."""


@dataclass(slots=True)
class Share:
    """A share-partition, and what the run as a whole says about it."""

    row: Row
    blinds: int = 0
    reloads: int = 0
    log_start: int = 0
    failing: bool = False
    dry: bool = False
    limits: list[Row] = field(default_factory=list)
    looks: list[Row] = field(default_factory=list)

    @property
    def lowest_limit(self) -> int:
        """The lowest delivery limit that it ever had."""
        limits: list[int] = [one.delivery_limit for one in (self.row, *self.limits)]
        return min(limits)

    @property
    def highest_limit(self) -> int:
        """The highest delivery limit that it ever had."""
        limits: list[int] = [one.delivery_limit for one in (self.row, *self.limits)]
        return max(limits)


@dataclass(frozen=True, slots=True)
class Books:
    """All that a history says."""

    tables: dict[str, list[Row]]
    shares: dict[int, Share]
    release: Release

    def of(self, table: str) -> list[Row]:
        """Return the rows of a table."""
        return self.tables[table]


def open_books(history: History) -> Books:
    """Read a history; what cannot be read of it is left out, as the analysis does."""
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    for file in history.manifest.files:
        lost = file.bucket in history.lost_buckets if file.table in BUCKETED else False
        if not lost and file.table not in history.lost_tables:
            columns = pq.read_table(history.folder / file.path).to_pydict()
            tables[file.table] += _rows(file.table, columns.values())
    return Books(tables, _shares(tables), release_of(history.version))


def _rows(table: str, columns: Iterable[list[object]]) -> list[Row]:
    kind = _KINDS[table]
    return [kind(*values) for values in zip(*columns, strict=True)]


# Columns such as "count" and "index" are methods of tuples too, which attributes hide well.
_KINDS: dict[str, Any] = {name: namedtuple(name, schema.names) for name, schema in TABLES.items()}


def _shares(tables: dict[str, list[Row]]) -> dict[int, Share]:
    shares = {row.queue: Share(row) for row in tables["queues"]}
    for row in tables["blinds"]:
        shares[row.queue].blinds += 1
    for row in tables["reloads"]:
        shares[row.queue].reloads += 1
    for row in tables["limits"]:
        shares[row.queue].limits.append(row)
    for row in sorted(tables["offsets"], key=lambda row: row.sent):
        share = shares[row.queue]
        share.looks.append(row)
        share.log_start = max(share.log_start, row.log_start)
        share.dry |= row.phase == "quiet" and (row.spso >= row.log_end or row.lag == 0)
    for share in shares.values():
        share.failing = bool(tables["faults"])
    for row in tables["deletions"]:
        for share in shares.values():
            if share.row.log == row.log:
                share.log_start = max(share.log_start, row.before)
    return shares


def grouped(rows: Iterable[Row], *columns: str) -> dict[Any, list[Row]]:
    """Return rows by the values of one or more columns, in their order."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        key = tuple(getattr(row, column) for column in columns)
        found[key if len(columns) > 1 else key[0]].append(row)
    return found
