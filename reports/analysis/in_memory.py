"""Rows of small histories and small tables in memory: reading them takes less time than a plan."""

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reports.analysis.files import History
from spec.history import BUCKETED, OPTIONAL, TABLES


def stride(histories: Sequence[History]) -> int:
    """Return how far the numbers of share-partitions of one run are moved from those of the next.

    It is 0 if there is one run only, which keeps its own.
    """
    if len(histories) < 2:
        return 0
    highest = 0
    for history in histories:
        for rows in _parts(history, "share_partitions", ["share_partition"]):
            highest = max(highest, pc.max(rows["share_partition"]).as_py() or 0)
    return highest + 1


def tables_of(histories: Sequence[History], names: Collection[str]) -> dict[str, pa.Table]:
    """Return those tables that have rows, of all runs together, with the columns of Spark's."""
    apart = stride(histories)
    found: dict[str, pa.Table] = {}
    for name in names:
        parts = [
            _numbered(rows, run, apart)
            for run, history in enumerate(histories)
            for rows in _parts(history, name, TABLES[name].names)
        ]
        if rows := sum(part.num_rows for part in parts):
            whole = pa.concat_tables([part for part in parts if part.num_rows])
            found[name] = _known(name, whole) if rows else whole
    return found


def _parts(history: History, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    for file in history.readable(name):
        if file.rows:
            with (history.folder / file.path).open("rb") as source:
                yield pq.read_table(source, columns=list(columns), schema=TABLES[name])


def _numbered(rows: pa.Table, run: int, apart: int) -> pa.Table:
    """Add the run, and move the numbers of its share-partitions apart from those of others."""
    if apart and "share_partition" in rows.column_names:
        place = rows.column_names.index("share_partition")
        moved = pc.add(rows["share_partition"], pa.scalar(run * apart, pa.int32()))
        rows = rows.set_column(place, "share_partition", moved)
    return rows.append_column("run", pa.repeat(pa.scalar(run, pa.int32()), rows.num_rows))


def _known(name: str, rows: pa.Table) -> pa.Table:
    """Say of each column of a large table that is never null that it is not."""
    if name not in BUCKETED:
        return rows
    fields, columns = [], []
    for field in rows.schema:
        column = rows[field.name]
        known = field.name not in OPTIONAL
        if known and column.null_count:
            column = pc.fill_null(column, pa.scalar(0, pa.int64()).cast(field.type))
        columns.append(column)
        fields.append(field.with_nullable(not known))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
