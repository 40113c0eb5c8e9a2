"""What older releases called tables and columns of histories; schema 3 has the words of KIP-932."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TABLES = {"queues": "share_partitions", "blinds": "unseen_responses", "settled": "acknowledged"}
"""Tables and journals until schema 2, and their names now."""
COLUMNS = {
    "queue": "share_partition",
    "answered": "received",
    "waits_ms": "max_wait_ms",
    "settle_sent": "ack_sent",
    "settle_answered": "ack_received",
    "reign": "loads_before_fetch",
    "reign_acquired": "loads_by_acquire",
    "reign_settled": "loads_by_ack",
    "blind": "unseen_before_fetch",
    "blind_acquired": "unseen_by_acquire",
    "fellows": "others_in_response",
    "next_reign_acquired": "next_loads_by_acquire",
    "next_blind_acquired": "next_unseen_by_acquire",
}
"""Columns until schema 2, and their names now."""
_PHASES = {"letters read": "dead letters read"}


def table_now(name: str) -> str:
    """Return what a table or journal is called now."""
    return TABLES.get(name, name)


def columns_now(names: Sequence[str]) -> list[str]:
    """Return what columns are called now."""
    return [COLUMNS.get(name, name) for name in names]


def schema_now(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the columns' names of now."""
    return pa.schema(
        [one.with_name(new) for one, new in zip(schema, columns_now(schema.names), strict=True)]
    )


def rows_now(rows: Any) -> Any:
    """Return rows of a table or journal, a PyArrow table or batch, in the words of now."""
    rows = rows.rename_columns(columns_now(rows.schema.names))
    if "phase" not in rows.schema.names:
        return rows
    place, column = rows.schema.get_field_index("phase"), rows.column("phase")
    for old, new in _PHASES.items():
        column = pc.if_else(pc.equal(column, old), new, column)
    return rows.set_column(place, rows.schema.field(place), column)
