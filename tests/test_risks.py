"""Risks of clusters: each is seen where it is, and not with care; nothing is written."""

import copy
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.clients.admin import GROUP_RESOURCE, Admin
from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import run_blocking
from shareproof.risks import Facts, look, risks_of
from spec.findings import load_findings, load_risks
from spec.ledger import load_ledger
from spec.plain import from_plain
from spec.rule import load_rules
from tests.fake import ROOT
from tests.restricted import restricted
from tests.shell import Shell

CAREFUL = json.loads((ROOT / "tests" / "careful.json").read_text(encoding="utf-8"))
"""What was read of three brokers of 4.4.0 that are set up with care, with a group in use.

Its lock lasted 30 s when that was read, and was set to 60 s here. The brokers showed the same.
"""
CAREFUL["brokers"] = {node: {**CAREFUL["brokers"]["1"]} for node in "123"}
CARELESS = tomllib.loads((ROOT / "tests" / "careless.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("risk", CARELESS)
def test_each_risk_is_seen_where_it_is(risk: str) -> None:
    facts = copy.deepcopy(CAREFUL)
    for path, value in CARELESS[risk].items():
        *above, last = path.split("/")
        inside = facts
        for name in above:
            inside = inside[name]
        inside[last] = value
        if value == {}:
            del inside[last]
    assert look(from_plain(Facts, facts))[risk]
    assert risk not in look(from_plain(Facts, CAREFUL)) or not CARELESS[risk]


def test_the_table_is_whole() -> None:
    findings, rules = load_findings(), load_rules()
    places = {finding.where for finding in findings.values()} - {""}
    assert set(CARELESS) == {*load_risks(), *places}
    known = {entry.finding for entry in load_ledger("apache-kafka").expected}
    assert known - {""} <= findings.keys()
    named = re.findall(r"[A-Z]{3}-[0-9]{2,3}\b(?!-)", str([*load_risks().values()]))
    assert {name for name in named if not name.startswith("KIP")} <= rules.keys()


@pytest.mark.parametrize(
    ("release", "finding", "applies"),
    [
        ("4.4.0", "019", False),
        ("4.4.0", "015", True),
        ("4.4.0", "042", False),
        ("4.1.2", "042", True),
        ("4.1", "042", True),
        ("", "051", True),
    ],
)
def test_findings_go_by_release_and_configuration(
    release: str, finding: str, applies: bool
) -> None:
    facts = replace(from_plain(Facts, CAREFUL), release=release)
    found = risks_of(facts, load_ledger("apache-kafka"))
    assert (finding in {one.risk.number for one in found}) is applies


async def _there(info: ClusterInfo) -> object:
    async with Cluster(info) as cluster:
        connection = await cluster.any()
        topics = (await connection.call("Metadata", topics=None)).topics
        groups = await connection.call("ListConfigResources", resource_types=[GROUP_RESOURCE])
        return sorted(topic.name for topic in topics), groups.to_dict()


async def _use(info: ClusterInfo) -> object:
    async with Cluster(info) as cluster:
        await Admin(cluster).group_config("g", {"errors.deadletterqueue.topic.name": "dlq.g"})
    return await _there(info)


def test_a_cluster_is_read_and_nothing_is_written(shell: Shell, tmp_path: Path) -> None:
    with restricted("broker-configs") as info:
        target, before = f"external:{info.bootstrap[0]}", run_blocking(_use(info))
        code, out, _ = shell("risks", "--target", target, "--out", str(tmp_path), "--json")
        assert run_blocking(_there(info)) == before
        _, text, _ = shell("risks", "--target", target, "--release", "4.1.2")
        accepted = ",".join(json.loads(out)["counted"])
        assert shell("risks", "--target", target, "--accept", accepted)[0] == 0
    assert shell("risks", "--target", target)[0] == 3
    found = json.loads(out)
    assert code == 1
    assert {"dead-letter-topic-missing", "reset-latest"} <= {
        one["risk"]["id"] for one in found["risks"]
    }
    assert found["facts"]["unread"]
    assert "could not be read: " in text
    assert "042-moving-coordinator" in text
    assert "dead-letter-topic-missing" in (tmp_path / "risks.html").read_text(encoding="utf-8")
