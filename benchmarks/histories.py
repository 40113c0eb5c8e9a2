"""Makes large histories with violations planted in them, straight in the judge's layout.

``python -m benchmarks.histories DIR --events 1e7`` writes a history of two groups on sixteen logs.
An event is one delivery of one record. One record in twenty is released once and comes again; every
``plant``-th record of a log breaks a rule: in turn an accepted record that comes again, a count
that skips one, a lock that is cut short, and a record that is never delivered.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fixtures.history.compaction import MANIFEST, checksum
from spec.history import BUCKETED, NEVER, TABLES, File, Manifest, bucket_of, log_numbers

LOGS, GROUPS = 16, 2
MS = 1_000_000
LOCK_MS = 30_000
PIECE = 500_000
"""Records written at a time, so that memory does not grow with the history."""

Columns = dict[str, NDArray[Any]]


def write_history(folder: Path, events: int, plant: int = 100_000) -> Counter[str]:
    """Write a history of about that many events and return what was planted, by rule."""
    shutil.rmtree(folder, ignore_errors=True)
    records = max(1, int(events / (LOGS * GROUPS * 1.05)))
    planted: Counter[str] = Counter()
    numbers = [number for number, _ in zip(log_numbers(), range(LOGS), strict=False)]
    for name in TABLES:
        (folder / name).mkdir(parents=True)
    files = [_plain(folder, name, numbers, records) for name in TABLES if name not in BUCKETED]
    by_bucket: dict[int, list[int]] = {}
    for log in numbers:
        by_bucket.setdefault(bucket_of(log), []).append(log)
    for bucket, logs in sorted(by_bucket.items()):
        files += [
            _bucket(folder, name, bucket, logs, records=records, plant=plant, planted=planted)
            for name in BUCKETED
        ]
    (folder / MANIFEST).write_text(Manifest(files=tuple(files)).to_json(), encoding="utf-8")
    return planted


def _bucket(
    folder: Path,
    name: str,
    bucket: int,
    logs: list[int],
    *,
    records: int,
    plant: int,
    planted: Counter[str],
) -> File:
    path = f"{name}/part-00000_{bucket:05}.parquet"
    rows = 0
    with pq.ParquetWriter(folder / path, TABLES[name], compression="zstd") as writer:
        for log in logs:
            for start in range(0, records, PIECE):
                offsets = np.arange(start, min(records, start + PIECE))
                if name == "produced":
                    columns = _produced(log, offsets)
                else:
                    columns = _deliveries(log, offsets, plant, planted)
                arrays = [pa.array(columns[f.name]).cast(f.type) for f in TABLES[name]]
                table = pa.Table.from_arrays(arrays, schema=TABLES[name])
                writer.write_table(table)
                rows += table.num_rows
    return _described(folder, name, path, rows, bucket)


def _produced(log: int, offsets: NDArray[np.int64]) -> Columns:
    size = len(offsets)
    constant = {"log": log, "producer": 1, "crc": -1, "outcome": 1, "error": 0, "transaction": 0}
    columns: Columns = {name: np.full(size, value) for name, value in constant.items()}
    at = offsets * 1000
    return {**columns, "offset": offsets, "sequence": offsets, "sent": at, "answered": at + MS}


def _deliveries(log: int, offsets: NDArray[np.int64], plant: int, planted: Counter[str]) -> Columns:
    """Deliver every record to each group, one in twenty twice, and plant what must be found."""
    queue = np.tile(np.arange(GROUPS), len(offsets))
    offset = np.repeat(offsets, GROUPS)
    turn = np.where((offset % plant == plant - 1) & (queue == 0), (offset // plant) % 4, -1)
    twice = (offset % 20 == 7) | ((turn >= 0) & (turn <= 2))
    for number, rule in enumerate(("INV-02", "INV-12", "INV-18", "INV-05")):
        planted[rule] += int((turn == number).sum())
    rows = np.repeat(np.arange(len(offset)), np.where(turn == 3, 0, 1 + twice))
    second = np.zeros(len(rows), bool)
    second[1:] = rows[1:] == rows[:-1]
    offset, queue, turn = offset[rows], queue[rows], turn[rows]
    first = twice[rows] & ~second
    at = offset * 1000 + np.where(second, 200 * MS, 10 * MS)
    count = np.where(second, np.where(turn == 1, 3, 2), 1)
    kind = np.where(first, np.where(turn == 0, 1, np.where(turn == 2, 0, 2)), 1)
    settled = np.where(kind == 0, NEVER, at + 20 * MS)
    answered = np.where(kind == 0, NEVER, at + 21 * MS)
    zero = np.zeros(len(rows), np.int64)
    return {
        "log": zero + log,
        "offset": offset,
        "queue": log * GROUPS + queue,
        "member": queue,
        "op": offset // 500 * 4 + queue * 2 + second,
        "sent": at - MS,
        "acquired": at,
        "count": count,
        "lock_ms": zero + LOCK_MS,
        "after": zero - 1,
        "present": zero == 0,
        "producer": zero + 1,
        "sequence": offset,
        "crc": zero - 1,
        "kind": kind,
        "settle_sent": settled,
        "settle_answered": answered,
        "outcome": np.where(kind == 0, 0, 1),
        "error": zero,
        "attempts": np.where(kind == 0, 0, 1),
        "renewals": zero,
        "freed": zero + NEVER,
        "holds_until": at - MS + LOCK_MS * MS,
        "ends_by": at + LOCK_MS * MS,
        **dict.fromkeys(("reign", "reign_acquired", "reign_settled"), zero),
        **dict.fromkeys(("blind", "blind_acquired"), zero),
    }


def _plain(folder: Path, name: str, logs: list[int], records: int) -> File:
    rows = {"queues": _queues, "offsets": _offsets}.get(name)
    table = pa.Table.from_pylist(list(rows(logs, records)) if rows else [], TABLES[name])
    path = f"{name}/part-00000.parquet"
    pq.write_table(table, folder / path)
    return _described(folder, name, path, table.num_rows, -1)


def _queues(logs: list[int], _: int) -> Iterator[dict[str, object]]:
    for index, log in enumerate(logs):
        for slot in range(GROUPS):
            yield {
                "queue": log * GROUPS + slot,
                "log": log,
                "slot": slot,
                "group": f"group-{slot}",
                "topic": "t",
                "topic_id": "",
                "partition": index,
                "first": 0,
                "delivery_limit": 5,
                "lock_ms": LOCK_MS,
                "window": 2**31 - 1 - 500,
                "batch": 500,
                "committed_only": False,
                "dead_letters": False,
            }


def _offsets(logs: list[int], records: int) -> Iterator[dict[str, object]]:
    for log in logs:
        for slot in range(GROUPS):
            yield {
                "queue": log * GROUPS + slot,
                "sent": NEVER // 2,
                "answered": NEVER // 2,
                "spso": records,
                "lag": 0,
                "log_start": 0,
                "log_end": records,
                "leader_epoch": 0,
                "phase": "quiet",
            }


def _described(folder: Path, name: str, path: str, rows: int, bucket: int) -> File:
    file = folder / path
    size, crc = file.stat().st_size, checksum(file)
    return File(table=name, path=path, rows=rows, size=size, crc=crc, bucket=bucket)


def main() -> None:
    """Write a history."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=float, default=1e6)
    parser.add_argument("--plant", type=int, default=100_000)
    options = parser.parse_args()
    print(dict(write_history(options.folder, int(options.events), options.plant)))


if __name__ == "__main__":
    main()
