"""Loads from many hosts: their clocks, what errors of these decide, and hosts with wrong clocks."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

import numpy as np
import pyarrow as pa

from fixtures.history.journal_reader import offsets
from reports.analysis.judge import Found, observation
from reports.analysis.rules import BORNE, load_invariants
from reports.oracle.judge import judge
from spec.history import JOURNALS, Manifest
from spec.verdict import Verdict
from tests.servers import SKEWS, Cluster, lacking, skewed
from tests.small_histories import nothing_of

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
