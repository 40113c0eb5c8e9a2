"""The recorder: what kills and damage do, what ranges mean, and clocks of many hosts."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from fixtures.history.journal_reader import offsets, read_journals
from fixtures.wire.records import Record, encode_batch
from fixtures.workload.payload import pieces, runs_of, shape
from reports.analysis.files import open_history
from reports.analysis.judge import Found, observation
from reports.analysis.rules import BORNE, load_invariants
from reports.oracle.judge import judge
from spec.history import (
    JOURNALS,
    NEVER,
    Acknowledged,
    AckType,
    Acquired,
    FaultSpan,
    Manifest,
    Operation,
    Phase,
    Produced,
    Reload,
)
from spec.verdict import EnvironmentFault, Verdict
from tests.servers import SKEWS, Cluster, lacking, skewed
from tests.shell import until
from tests.small_histories import nothing_of, write_share_partition

pytest.importorskip("pyarrow", reason="the extra 'judge' is not installed")


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


pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")


MS, SECOND = 1_000_000, 1_000_000_000
RULES = {rule.id: rule for rule in load_invariants()}
SKEWABLE = pytest.mark.skipif(bool(lacking()), reason=lacking())


@pytest.mark.parametrize("seed", range(20))
def test_a_clock_is_never_further_off_than_said(seed: int) -> None:
    rng = random.Random(seed)
    ahead, drift = rng.randrange(-(10**12), 10**12), rng.uniform(-2e-3, 2e-3)

    def behind(at: int) -> int:
        return -ahead - round(at * drift)

    rows = []
    for second in range(3, 3 + rng.randrange(1, 20)):
        way, back = rng.randrange(1, 20 * MS), rng.randrange(1, 20 * MS)
        at, within = second * SECOND, (way + back) // 2 + 1
        wrong = (back - way) // 2
        rows.append({"process": 1, "at": at, "behind": behind(at) + wrong, "within": within})
    if len(rows) == 1:  # nothing was seen of the drift
        drift = rng.uniform(-1e-4, 1e-4)
        rows[0]["behind"] = behind(rows[0]["at"])
    rng.shuffle(rows)
    times = np.array([rng.randrange(1, 40 * SECOND) for _ in range(500)], np.int64)

    estimate, errors = offsets(times, pa.Table.from_pylist(rows, schema=JOURNALS["host_clocks"]))

    right = np.array([behind(int(at)) for at in times])
    between = (times >= 3 * SECOND) & (times <= max(row["at"] for row in rows))
    assert np.all(np.abs(estimate - right)[between] <= errors[between] + 1)
    if len(rows) == 1:
        assert np.all(np.abs(estimate - right) <= errors + 1)


@pytest.mark.parametrize(
    ("rule", "error", "broken", "expected"),
    [
        ("INV-01", 0, 1, Verdict.FAIL),
        ("INV-01", BORNE, 1, Verdict.FAIL),
        ("INV-01", BORNE + 1, 1, Verdict.UNKNOWN),
        ("INV-01", BORNE + 1, 0, Verdict.UNKNOWN),
        ("INV-26", 1, 1, Verdict.UNKNOWN),
        ("INV-26", BORNE, 0, Verdict.PASS),
        ("INV-05", 10 * SECOND, 1, Verdict.FAIL),
        ("INV-05", 10 * SECOND, 0, Verdict.PASS),
    ],
)
def test_what_clocks_do_not_bear_is_unknown(
    rule: str, error: int, broken: int, expected: Verdict
) -> None:
    history = nothing_of(clock_error=error)
    seen = observation(RULES[rule], Found(exercised=5, broken=broken, seconds=0), history, None)
    assert seen.verdict is expected
    assert ("known only to" in seen.reason) == (expected is Verdict.UNKNOWN)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with skewed(tmp_path_factory.mktemp("hosts")) as started:
        yield started


@SKEWABLE
def test_wrong_clocks_raise_no_alarm(cluster: Cluster, tmp_path: Path) -> None:
    loaded = cluster.load("reference", tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    manifest = Manifest.from_json((tmp_path / "history" / "manifest.json").read_text("utf-8"))
    assert 0 < manifest.clock_error < BORNE
    assert not manifest.cut
    found = judge(tmp_path / "history")
    assert [rule for rule in found if any(broken for _, broken in found[rule].values())] == []
    assert found.keys() >= {"INV-01", "INV-02", "INV-18", "INV-23"}


@SKEWABLE
def test_a_breach_is_found_by_wrong_clocks(cluster: Cluster, tmp_path: Path) -> None:
    loaded = cluster.load("reference:accept-releases", tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    assert any(broken for _, broken in judge(tmp_path / "history")["INV-02"].values())


@SKEWABLE
def test_a_cluster_that_is_too_small(cluster: Cluster, tmp_path: Path) -> None:
    check = "spark.scheduler.barrier.maxConcurrentTasksCheck"
    tries = ("--conf", f"{check}.maxFailures=3", "--conf", f"{check}.interval=1s")
    many = ("--processes", str(len(SKEWS) + 1), *tries)
    loaded = cluster.load("reference", tmp_path, *many)
    assert loaded.returncode == 3
    assert "fewer free cores than the load has processes" in loaded.stderr
