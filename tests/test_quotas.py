"""Real Kafka with quotas for everybody: what is throttled is never a false failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.interface.target import Target, TargetOptions
from fixtures.targets import DEFAULT_TARGET, open_target
from fixtures.targets.blocking import run_blocking
from fixtures.targets.leftovers import ANY_RUN, Found, find
from tests.shell import shareproof
from tools.vanilla import hold_everybody_to

LITTLE = {
    "consumer_byte_rate": 500.0,
    "producer_byte_rate": 2000.0,
    "controller_mutation_rate": 2.0,
}
"""Bytes and mutations a second that nearly every check exceeds."""

OWN_QUOTAS = "DLV-34"
"""A rule that Kafka 4.4.0 breaks, and whose check sets quotas itself (finding 019)."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[Target]:
    """One broker as it ships, without quotas so far."""
    target = open_target(DEFAULT_TARGET, TargetOptions(brokers=1, shipped=True))
    try:
        target.start()
        yield target
    finally:
        target.stop()


async def _find(info: ClusterInfo) -> Found:
    async with Cluster(info) as seen:
        return (await find(seen, ANY_RUN))[0]


def _judged(target: Target, out: Path, rules: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = shareproof(
        *("broker", "--target", f"external:{','.join(target.info.bootstrap)}", "--seed", "1"),
        *("--only", rules, "--workers", "4", "--out", str(out)),
    )
    assert (out / "results.json").exists(), done.stdout + done.stderr
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    found = {rule["id"]: (rule["verdict"], rule["reason"]) for rule in document["requirements"]}
    return done.returncode, found


def test_throttled_checks_are_out_of_reach(kafka: Target, tmp_path: Path) -> None:
    code, found = _judged(kafka, tmp_path / "free", OWN_QUOTAS)
    assert (code, found[OWN_QUOTAS][0]) == (0, "fail"), found

    run_blocking(hold_everybody_to(kafka, LITTLE))
    code, found = _judged(kafka, tmp_path / "held", "ACK-01,ACK-07,DLV-02,GAP-01,MEM-01,LCK-02")
    assert code == 0, found
    assert {verdict for verdict, _ in found.values()} <= {"pass", "out of reach"}, found
    reasons = {reason for _, reason in found.values()}
    assert any(reason.startswith("the target throttles ") for reason in reasons), found
    assert run_blocking(_find(kafka.info)) == {}
