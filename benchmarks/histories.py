"""Makes large histories with violations planted in them, straight in the judge's layout.

``python -m benchmarks.histories DIR --events 36e6`` writes a history of two groups on sixteen logs,
piece by piece, so that memory does not grow with it; the same seed makes the same history.

An *event* is one thing that happened to one record: it was produced, it was delivered to a member,
its holder acknowledged it. One record in twenty is released once and comes again, one in a hundred
was aborted and is kept from the group that reads committed records only. Sixteen records of each
log break a rule, each in one of the ways of ``PLANTS``.
"""

import argparse
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fixtures.history.compaction import MANIFEST, checksum, layout
from fixtures.history.expansion import neighbours
from spec.history import BUCKETED, NEVER, TABLES, AckType, File, Manifest, bucket_of, log_numbers

LOGS, GROUPS, BATCH = 16, 2, 500
MS, SECOND = 1_000_000, 1_000_000_000
EVERY = 100_000  # nanoseconds between two records of a log
LOCK_MS = 30_000
WINDOW, LIMIT = 10_000, 5
PIECE = 250_000  # records of a log that are in memory at a time
PLANTS = ("INV-02", "INV-12", "INV-18", "INV-05", "INV-03", "INV-04", "INV-14", "INV-01")
"""The rules that are broken, in turn."""
TURNS = {rule: turn for turn, rule in enumerate(PLANTS)}
TWICE = [TURNS[rule] for rule in ("INV-02", "INV-12", "INV-18", "INV-03", "INV-01")]

Columns = dict[str, NDArray[Any]]


@dataclass(slots=True)
class Made:
    events: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    records: int
    seed: int

    @property
    def plant(self) -> int:
        return max(2, self.records // (2 * len(PLANTS)))

    def turn(self, offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which rule each record breaks, -1 for none."""
        number = offset // self.plant
        wrong = (offset % self.plant == self.plant - 1) & (number < 2 * len(PLANTS))
        return np.where(wrong, number % len(PLANTS), -1)

    def jitter(self, log: int, start: int, size: int) -> NDArray[np.int64]:
        """Return up to a millisecond for each of ``size`` things, the same whenever asked."""
        return np.random.default_rng((self.seed, log, start)).integers(0, MS, size)


def write_history(folder: Path, events: int, seed: int = 1) -> Made:
    shutil.rmtree(folder, ignore_errors=True)
    per_record = 1 + GROUPS * 2 * 1.045
    plan = Plan(records=max(2 * len(PLANTS), int(events / (LOGS * per_record))), seed=seed)
    logs = [number for number, _ in zip(log_numbers(), range(LOGS), strict=False)]
    made = Made()
    files: list[File] = []
    for name in TABLES:
        (folder / name).mkdir(parents=True)
        if name not in BUCKETED:
            files.append(_plain(folder, name, logs, plan))
    by_bucket: dict[int, list[int]] = {}
    for log in logs:
        by_bucket.setdefault(bucket_of(log), []).append(log)
    for bucket, members in sorted(by_bucket.items()):
        for name, make in (("produced", _produced), ("deliveries", _deliveries)):
            path = f"{name}/part-00000_{bucket:05}.parquet"
            rows = 0
            with pq.ParquetWriter(folder / path, TABLES[name], **layout()) as writer:
                for table in _pieces(make, members, plan, made):
                    writer.write_table(table)
                    rows += table.num_rows
            files.append(_described(folder, name, path, rows, bucket))
    made.rows.update({file.table: file.rows for file in files if file.table not in BUCKETED})
    (folder / MANIFEST).write_text(Manifest(files=tuple(files)).to_json(), encoding="utf-8")
    return made


Maker = Callable[[int, NDArray[np.int64], Plan, Made], tuple[str, Columns]]


def _pieces(make: Maker, logs: list[int], plan: Plan, made: Made) -> Iterator[pa.Table]:
    for log in logs:
        for start in range(0, plan.records, PIECE):
            offsets = np.arange(start, min(plan.records, start + PIECE))
            name, columns = make(log, offsets, plan, made)
            schema = TABLES[name]
            arrays = [pa.array(columns[one.name]).cast(one.type) for one in schema]
            table = pa.Table.from_arrays(arrays, schema=schema)
            made.rows[name] += table.num_rows
            yield table


def _produced(log: int, offset: NDArray[np.int64], plan: Plan, made: Made) -> tuple[str, Columns]:
    size = len(offset)
    made.events += size
    constant = {"log": log, "producer": 1, "outcome": 1, "error": 0}
    columns: Columns = {name: np.full(size, value) for name, value in constant.items()}
    sent = (offset // BATCH * BATCH) * EVERY
    return "produced", {
        **columns,
        "offset": offset,
        "sequence": offset,
        "crc": offset // BATCH * 2654435761 % 2**32,
        "transaction": np.where(_aborted(offset, plan), 2, 0),
        "sent": sent,
        "received": sent + plan.jitter(log, int(offset[0]), size) // BATCH * BATCH + MS,
    }


def _aborted(offset: NDArray[np.int64], plan: Plan) -> NDArray[np.bool_]:
    odd: NDArray[np.bool_] = (offset % 100 == 50) & (plan.turn(offset) < 0)
    return odd


def _deliveries(
    log: int, offsets: NDArray[np.int64], plan: Plan, made: Made
) -> tuple[str, Columns]:
    slot = np.tile(np.arange(GROUPS), len(offsets))
    offset = np.repeat(offsets, GROUPS)
    turn = np.where(slot == 0, plan.turn(offset), -1)
    for number, rule in enumerate(PLANTS):
        made.planted[rule] += int((turn == number).sum())
    twice = ((offset % 20 == 7) & (turn < 0)) | np.isin(turn, TWICE)
    never = (turn == TURNS["INV-05"]) | (_aborted(offset, plan) & (slot == 1))
    rows = np.repeat(np.arange(len(offset)), np.where(never, 0, 1 + twice))
    second = np.zeros(len(rows), bool)
    second[1:] = rows[1:] == rows[:-1]
    offset, slot, turn = offset[rows], slot[rows], turn[rows]
    first = twice[rows] & ~second
    columns = _told(log, offset, slot, second, plan)
    columns.update(_ended(columns["acquired"], first, turn))
    columns["count"] = np.select(
        [turn == TURNS["INV-14"], second & (turn == TURNS["INV-12"]), second], [LIMIT + 1, 3, 2], 1
    )
    # A count that nobody saw grow is possible where responses went unseen, not above the limit.
    columns["unseen_meanwhile"] = np.where(turn == TURNS["INV-14"], LIMIT, 0)
    columns["sequence"] = offset + (turn == TURNS["INV-04"])
    # That one comes alone, as a last delivery should.
    lonely = turn == TURNS["INV-14"]
    columns["op"] = np.where(lonely, -columns["op"], columns["op"])
    columns["others_in_response"] = np.where(lonely, 0, BATCH - 1)
    made.events += len(offset) + int((columns["kind"] != AckType.NONE).sum())
    found = {**columns, **neighbours(columns)}
    later = ~np.ma.getmaskarray(found["highest_before"])
    return "deliveries", {**found, "explained": np.ma.masked_array(~later, later)}


def _told(
    log: int,
    offset: NDArray[np.int64],
    slot: NDArray[np.int64],
    second: NDArray[np.bool_],
    plan: Plan,
) -> Columns:
    zero = np.zeros(len(offset), np.int64)
    sent = (offset // BATCH * BATCH) * EVERY + 60 * MS + np.where(second, 200 * MS, 0)
    jitter = plan.jitter(log, int(offset[0]) + 1 if len(offset) else 0, len(offset))
    fetch = offset // BATCH * 4 + slot * 2 + second
    at = sent + 2 * MS + jitter // 20 * 20
    return {
        **dict.fromkeys(("loaded", "loads_before_fetch", "loads_by_acquire"), zero),
        **dict.fromkeys(("unseen_before_fetch", "unseen_by_acquire", "unseen_meanwhile"), zero),
        **dict.fromkeys(("error", "renewals", "passed_over_s", "loads_by_ack"), zero),
        "node": zero + 1,
        "kept_until": zero + NEVER,
        "undisturbed": zero == 0,
        "log": zero + log,
        "offset": offset,
        "share_partition": log * GROUPS + slot,
        "member": slot * 2 + second,
        "op": (zero + log << 40) + fetch,
        "sent": sent,
        "acquired": at,
        "lock_ms": zero + LOCK_MS,
        "after": np.where(offset % BATCH == 0, -1, offset - 1),
        "present": zero == 0,
        "producer": zero + 1,
        "crc": offset // BATCH * 2654435761 % 2**32,
        "freed": zero + NEVER,
        "holds_until": sent + LOCK_MS * MS,
        "ends_by": at + LOCK_MS * MS,
    }


def _ended(at: NDArray[np.int64], first: NDArray[np.bool_], turn: NDArray[np.int64]) -> Columns:
    kind = np.select(
        [
            ~first | np.isin(turn, (TURNS["INV-02"], TURNS["INV-01"])),
            turn == TURNS["INV-18"],
            turn == TURNS["INV-03"],
        ],
        [AckType.ACCEPT, AckType.NONE, AckType.REJECT],
        AckType.RELEASE,
    )
    open_ = kind == AckType.NONE
    late = first & (turn == TURNS["INV-01"])
    sent = at + np.where(late, 400 * MS, 20 * MS)
    return {
        "kind": kind,
        "ack_sent": np.where(open_, NEVER, sent),
        "ack_received": np.where(open_, NEVER, sent + MS),
        "outcome": np.where(open_, 0, 1),
        "attempts": np.where(open_, 0, 1),
    }


def _plain(folder: Path, name: str, logs: list[int], plan: Plan) -> File:
    rows = {
        "share_partitions": _share_partitions,
        "offsets": _offsets,
        "operations": _operations,
    }.get(name)
    table = pa.Table.from_pylist(list(rows(logs, plan.records)) if rows else [], TABLES[name])
    path = f"{name}/part-00000.parquet"
    pq.write_table(table, folder / path)
    return _described(folder, name, path, table.num_rows, -1)


def _share_partitions(logs: list[int], _: int) -> Iterator[dict[str, object]]:
    for index, log in enumerate(logs):
        for slot in range(GROUPS):
            yield {
                "share_partition": log * GROUPS + slot,
                "log": log,
                "slot": slot,
                "group": f"group-{slot}",
                "topic": "t",
                "topic_id": "",
                "partition": index,
                "first": 0,
                "delivery_limit": LIMIT,
                "lock_ms": LOCK_MS,
                "window": WINDOW,
                "batch": BATCH,
                "committed_only": slot == 1,
                "dead_letters": False,
            }


def _offsets(logs: list[int], records: int) -> Iterator[dict[str, object]]:
    end = records * EVERY + 10 * SECOND
    for log in logs:
        for slot in range(GROUPS):
            for at in (*range(SECOND, end - 5 * SECOND, SECOND), end):
                shown = records if at == end else max(0, min(records, at // EVERY - 10_000))
                produced = min(records, at // EVERY)
                yield {
                    "share_partition": log * GROUPS + slot,
                    "sent": at,
                    "received": at + MS,
                    "spso": shown,
                    "lag": produced - shown,
                    "log_start": 0,
                    "log_end": produced,
                    "leader_epoch": 0,
                    "phase": "quiet" if at == end else "load",
                }


def _operations(logs: list[int], records: int) -> Iterator[dict[str, object]]:
    for index, log in enumerate(logs):
        for start in range(0, records, BATCH):
            sent = start * EVERY + 60 * MS
            yield {
                "op": (log << 40) + start // BATCH * 4,
                "process": 1,
                "member": 0,
                "api": "ShareFetch",
                "node": index % 3,
                "sent": sent,
                "received": sent + 2 * MS,
                "max_wait_ms": 500,
                "outcome": 1,
                "error": 0,
            }


def _described(folder: Path, name: str, path: str, rows: int, bucket: int) -> File:
    file = folder / path
    size, crc = file.stat().st_size, checksum(file)
    return File(table=name, path=path, rows=rows, size=size, crc=crc, bucket=bucket)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=float, default=1e6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    made = write_history(options.folder, int(options.events), options.seed)
    print(f"{made.events:,} events, rows {dict(made.rows)}, planted {dict(made.planted)}")


if __name__ == "__main__":
    main()
