"""Tiers: which rules need how much of the protocol, and what a listener of tier 1 is asked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reports import badge
from reports.html import render
from reports.reading import parse
from shareproof.runner.inventory import in_tier, read_checks, tiers
from spec.requirement import load_requirements
from spec.tiers import ALL, BESIDE, CONSUMER, CONVENIENT, FAILOVER, check_tier, recorded, rule_tiers
from spec.tiers import tier_of as of
from tests.shell import shareproof
from tests.test_results import document

ROOT = Path(__file__).parents[1]


def test_every_check_on_a_shared_cluster_is_recorded() -> None:
    checks = read_checks()

    assert {check.id for check in checks if not check.solo} <= set(recorded())
    assert set(recorded()) <= {check.id for check in checks}


def test_the_tier_of_requests() -> None:
    assert of([*CONSUMER, *BESIDE, *CONVENIENT]) == of([]) == 1
    assert of([*CONSUMER, "ShareGroupDescribe"]) == of(["DeleteRecords"]) == 2
    assert {of(["ShareFetch", api]) for api in FAILOVER} == {3}


def test_a_rule_is_of_its_highest_check() -> None:
    one = next(check for check in recorded() if check_tier(check) == 1)
    two = next(check for check in recorded() if check_tier(check) == 2)

    found = rule_tiers([(one, False, ["A", "B"]), (two, False, ["B"]), (one, True, ["C"])])

    assert found == {"A": 1, "B": 2, "C": 3}
    assert check_tier("suites/broker/test_x.py::test_nobody_recorded") == ALL


def test_tiers_of_known_rules() -> None:
    rules = load_requirements()
    first, second = (set(in_tier(rules, tier)) for tier in (1, 2))

    assert {"ACQ-01", "ACK-01", "SES-01", "MEM-01"} & first
    assert {"ADM-01", "OFF-20", "GAP-01"} & second
    assert not {"ADM-01", "OFF-20", "GAP-01"} & first
    assert first < second < set(rules)
    assert len(first) > len(rules) / 4
    assert set(tiers()) <= set(rules)


def test_badge_and_certificate_name_the_tier() -> None:
    plain = document()
    plain["run"] |= {"partial": False, "errors": [], "exit_code": 0, "only": [], "fast": False}
    whole = parse(plain)
    part = replace(whole, run=replace(whole.run, tier=1))

    assert badge.of_results(whole).label == "share groups"
    assert badge.of_results(part).label == "share groups, tier 1"
    assert "Certificate of conformance, tier 1" in render(part)
    assert "Tier 1 has the rules about what a share consumer sends" in render(part)
    assert "tier" not in re.sub(r"<style.*?</style>", "", render(whole), flags=re.DOTALL).lower()


@pytest.fixture
def listener() -> Iterator[str]:
    """The listener of the tutorial, on a free port."""
    command = [sys.executable, "-m", "shareproof.listener", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def test_a_listener_of_tier_1(listener: str, tmp_path: Path) -> None:
    rules = ["--only", "ACQ-01,ACQ-15,ACK-01,SES-20,DLV-01,ADM-01"]
    where = ["--target", f"external:{listener}", "--out", str(tmp_path), "--workers", "1"]

    done = shareproof("broker", "--tier", "1", *rules, *where)

    results = json.loads((tmp_path / "results.json").read_text())
    verdicts = {rule["id"]: rule["verdict"] for rule in results["requirements"]}
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts["ACK-01"] == verdicts["SES-20"] == "pass"
    assert verdicts["ACQ-15"] == "out of reach"
    assert "ADM-01" not in verdicts
    assert results["run"]["tier"] == 1
    assert json.loads((tmp_path / "badge.json").read_text())["label"] == "share groups, tier 1"
