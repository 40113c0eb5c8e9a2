"""The recorder: what a kill leaves, what damage does, and what ranges mean record by record."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra 'judge' is not installed")

import pyarrow.parquet as pq

from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from fixtures.history.journal_reader import read_journals
from fixtures.wire.records import Record, encode_batch
from fixtures.workload.payload import pieces, runs_of, shape
from reports.analysis.files import open_history
from spec.history import (
    NEVER,
    Acknowledged,
    AckType,
    Acquired,
    FaultSpan,
    Operation,
    Phase,
    Produced,
    Reload,
)
from spec.verdict import EnvironmentFault
from tests.shell import until
from tests.small_histories import write_share_partition

ROOT = Path(__file__).parents[1]
SECOND = 1_000_000_000

WRITER = """
import sys, time
from pathlib import Path
from fixtures.history.journal import Journal
from spec.history import FaultSpan
with Journal(Path(sys.argv[1]), 3) as journal:
    print("ready", flush=True)
    while True:
        journal.add(FaultSpan(0, "none", "", time.monotonic_ns(), 0, ""))
        time.sleep(0.001)
"""


def test_a_kill_loses_at_most_a_second(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    journal = tmp_path / "journal" / "0003" / "faults.arrows"
    assert until(lambda: journal.exists() and journal.stat().st_size > 9000, 30)

    killed = time.monotonic_ns()
    writer.kill()
    writer.wait()
    writer.stdout.close()
    found = read_journals(tmp_path)

    assert killed - max(found.tables["faults"]["since"].to_pylist()) < SECOND
    assert "journal/0003/faults.arrows" in found.cut
    assert found.broken == ()


def test_a_journal_that_was_closed_is_whole_and_any_prefix_can_be_read(tmp_path: Path) -> None:
    file, every = _four_phases(tmp_path)
    found = read_journals(tmp_path)
    assert (found.cut, found.broken) == ((), ())
    assert found.tables["phases"]["phase"].to_pylist() == every
    whole = file.read_bytes()
    for size in range(0, len(whole) - 8, 7):
        file.write_bytes(whole[:size])
        found = read_journals(tmp_path)
        names = found.tables["phases"]["phase"].to_pylist()
        assert names == every[: len(names)]
        assert found.cut == ("journal/0001/phases.arrows",)


def _four_phases(folder: Path) -> tuple[Path, list[str]]:
    every = [f"phase {number}" for number in range(4)]
    with Journal(folder, 1) as journal:
        for number, name in enumerate(every):
            journal.add(Phase(name, number, number))
            journal.flush()
        journal.add(FaultSpan(0, "kill", "broker 1", 1, 2, "seen"))
    return folder / "journal" / "0001" / "phases.arrows", every


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    file, _ = _four_phases(tmp_path)
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = b"\xee" * 64
    file.write_bytes(data)
    found = read_journals(tmp_path)
    assert found.broken == ("journal/0001/phases.arrows",)
    assert found.tables["faults"]["kind"].to_pylist() == ["kill"]


def test_times_are_brought_to_the_clock_of_the_run(tmp_path: Path) -> None:
    with Journal(tmp_path, 1) as journal:
        journal.measured(behind=900, within=50)
        journal.measured(behind=1000, within=5)
        journal.add(Reload(0, -1, 10, NEVER, "x"))
        journal.add(Operation(1, 1, 0, "ShareFetch", 1, 20, -1, 0, 3, 0))

    found = read_journals(tmp_path).tables

    assert found["reloads"].select(["since", "until"]).to_pylist() == [
        {"since": 1010, "until": NEVER}
    ]
    assert found["operations"].select(["sent", "received"]).to_pylist() == [
        {"sent": 1020, "received": -1}
    ]


def test_ranges_mean_records(tmp_path: Path) -> None:
    rng = random.Random(5)
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    with Journal(tmp_path, 1) as journal:
        write_share_partition(journal, 0, 0, lock_ms=30000)
        for _ in range(40):
            op = journal.next_operation()
            first = rng.randrange(100)
            last = first + rng.randrange(20)
            at = rng.randrange(1000)
            rest = (1, 1, at, at + 1, -1, True, 7, first, -1)
            journal.add(Acquired(op, 0, 0, 3, first, last, *rest))
            expected |= {(op, offset): (0, NEVER) for offset in range(first, last + 1)}
            for _ in range(rng.randrange(3)):
                low = rng.randint(first, last)
                kind = rng.choice((AckType.ACCEPT, AckType.RELEASE))
                sent = at + 10 + len(expected)
                journal.add(Acknowledged(op, 0, 0, low, last, int(kind), sent, sent + 1, 1, 0))
                expected |= {(op, o): (int(kind), sent) for o in range(low, last + 1)}

    compact(tmp_path)
    rows = pq.read_table(tmp_path / "deliveries").to_pylist()

    assert [{name: row[name] for name in _BESIDE} for row in rows] == list(_looked_around(rows))
    found = {(row["op"], row["offset"]): (row["kind"], row["ack_sent"]) for row in rows}
    assert found == expected
    order = [(row["offset"], row["acquired"]) for row in rows]
    assert order == sorted(order)


_BESIDE = ("others_in_response", "highest_before", "lowest_after", "next_op", "next_acquired")


def _looked_around(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for at, row in enumerate(rows):
        same = [other["offset"] == row["offset"] for other in rows]
        earlier = [other for other, is_same in zip(rows[:at], same, strict=False) if is_same]
        later = [o for o, is_same in zip(rows[at + 1 :], same[at + 1 :], strict=True) if is_same]
        yield {
            "others_in_response": sum(other["op"] == row["op"] for other in rows) - 1,
            "highest_before": max((one["count"] for one in earlier), default=None),
            "lowest_after": min((one["count"] for one in later), default=None),
            "next_op": later[0]["op"] if later else None,
            "next_acquired": later[0]["acquired"] if later else None,
        }


def test_what_nothing_can_be_judged_without_is_named(tmp_path: Path) -> None:
    with Journal(tmp_path, 1) as journal:
        write_share_partition(journal, 0, 0, lock_ms=30000)
        journal.add(Produced(0, 0, 5, 1, 0, -1, 0, 1, 1, 0, 0))
    compact(tmp_path)
    (tmp_path / "share_partitions" / "part-00000.parquet").unlink()
    with pytest.raises(EnvironmentFault, match="nothing can be judged without share_partitions"):
        open_history(tmp_path)


def test_payloads_say_who_they_are() -> None:
    batch, crc = shape(70, 64).write(producer=3, log=9, sequence=1000)
    (run,) = runs_of(batch)
    assert (run.first, run.count, run.producer, run.log) == (0, 70, 3, 9)
    assert (run.sequence, run.crc) == (1000, crc)
    (stranger,) = runs_of(encode_batch([Record(offset=4, timestamp=0, value=b"?")], base_offset=4))
    assert (stranger.first, stranger.producer, stranger.crc) == (4, -1, -1)


def test_a_thinned_batch_is_read_record_by_record() -> None:
    batch, _ = shape(10, 64).write(producer=3, log=9, sequence=0)
    whole = runs_of(batch)[0]
    thin, _ = shape(1, 64).write(producer=3, log=9, sequence=4)
    parts = list(pieces(2, 12, [whole]))
    assert [(first, last, run is None) for first, last, run in parts] == [
        (2, 9, False),
        (10, 12, True),
    ]
    assert runs_of(thin)[0].sequence == 4
