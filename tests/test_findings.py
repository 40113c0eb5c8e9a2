"""Findings and risks on a target, and fixes of findings in a release."""

import copy
import json
import re
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from fixtures.clients.admin import GROUP_RESOURCE, Admin
from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import run_blocking
from fixtures.mutants import ALL, FIX, FIXES, fixes_of
from fixtures.targets import UsageFault, open_target, started
from reports.headlines import causes
from reports.reader import parse
from reports.results import CheckResult, KnownFailure, Results, Word
from shareproof.findings.fates import Fate, Finding, chosen, fates
from shareproof.risks import Facts, look, risks_of
from spec.catalogue import load_findings, load_risks
from spec.ledger import Expected, load_ledger
from spec.plain import from_plain
from spec.rule import load_rules
from spec.verdict import EnvironmentFault, Verdict
from tests.fake import ROOT
from tests.restricted import restricted
from tests.shell import Shell, judged, shareproof
from tests.test_results import document

ENTRY = Expected(
    rule="ACK-01",
    verdict=Verdict.FAIL,
    versions="<4.1",
    match="no such record",
    reason="a record is lost",
    expires=date(2099, 1, 1),
    finding="901-a-record-is-lost",
)
AT_TIMES = replace(ENTRY, intermittent=True)
IN_HISTORIES = replace(ENTRY, rule="INV-02")


def results(verdict: Word, reason: str, *, expected: bool = False) -> Results:
    found = parse(document())
    (rule,) = [rule for rule in found.rules if rule.id == "ACK-01"]
    rule = replace(
        rule, verdict=verdict, reason=reason, witness=(), checks=(), expected=expected, problem=""
    )
    return replace(found, rules=(rule,))


@pytest.mark.parametrize(
    ("fate", "entry", "run"),
    [
        # Whatever releases the ledger names: a new one is none of them.
        (Fate.THERE, ENTRY, results("fail", "no such record: 1")),
        (Fate.OTHERWISE, ENTRY, results("fail", "two such records")),
        (Fate.NOT_PLAYED, ENTRY, results("fail", "two such records", expected=True)),
        (Fate.NOT_PLAYED, ENTRY, results("unsupported", "it has no records")),
        (Fate.NOT_PLAYED, IN_HISTORIES, None),
        (Fate.GONE, ENTRY, results("pass", "")),
        (Fate.NOT_SEEN, AT_TIMES, results("pass", "")),
    ],
)
def test_fates(fate: Fate, entry: Expected, run: Results | None) -> None:
    finding = Finding(page=entry.finding, entries=(entry,))
    (played,) = fates([finding], run)
    assert played.fate is fate
    assert entry.rule in played.why
    assert ("no such record: 1" in played.why) is (fate is Fate.THERE)


def test_a_rule_that_others_break_leaves_the_fate_to_the_rest() -> None:
    (broken,) = results("fail", "two such records", expected=True).rules
    held = replace(broken, id="ACK-02", verdict="pass", reason="")
    run = replace(results("pass", ""), rules=(broken, held))
    for entry, fate in ((ENTRY, Fate.NOT_PLAYED), (AT_TIMES, Fate.GONE)):
        finding = Finding(page=ENTRY.finding, entries=(entry, replace(ENTRY, rule="ACK-02")))
        assert fates([finding], run)[0].fate is fate


def test_cases_of_a_sweep_tell_a_fate() -> None:
    finding = Finding(page=ENTRY.finding, entries=(ENTRY,), cases=("Metadata.*",))
    (rule,) = results("fail", "").rules
    seen = CheckResult(
        check="sweep/Metadata.a", verdict=Verdict.FAIL, reason="", seconds=0.0, transcript=""
    )
    for fate, checks in (
        (Fate.THERE, (replace(seen, reason="no such record: 1"),)),
        (Fate.GONE, (replace(seen, reason="two such records"),)),
        (Fate.NOT_PLAYED, ()),
    ):
        swept = replace(results("fail", ""), rules=(replace(rule, checks=checks),))
        (played,) = fates([finding], None, {finding.page: swept})
        assert (finding.rules, played.fate) == ((), fate)
    said = {one.finding: one.why for one in fates(chosen("apache-kafka", []), None)}
    assert said["026"].endswith("shareproof finding 026 --client franz-go")


def test_a_page_shows_the_worst_cause_first() -> None:
    found = results("fail", "no such record", expected=True)
    (rule,) = found.rules
    known = KnownFailure(
        verdict=Verdict.FAIL,
        versions="",
        match="no such",
        reason="",
        bug="",
        finding="",
        expires="",
    )
    rules = [
        replace(rule, known_failures=(replace(known, finding=page),))
        for page in (
            "",
            "007-deleted-records-are-delivered",
            "051-state-writes-sent-together-share-one-answer",
        )
    ]
    shown = causes(replace(found, rules=tuple(rules)))
    assert list(shown) == ["duplicate", "wrong response", ""]


def test_findings_go_by_their_numbers(shell: Shell) -> None:
    assert [one.number for one in chosen("apache-kafka", ["7", "051-what-it-is"])] == ["007", "051"]
    assert len(chosen("apache-kafka", [])) == len(load_findings())
    with pytest.raises(UsageFault, match="There is no finding 999"):
        chosen("apache-kafka", ["999"])
    code, _, errors = shell("finding", "999")
    assert (code, errors.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("mutant", "code", "fate"),
    [("", 0, "gone"), (":reaching-into-nothing-is-a-server-error", 1, "still there")],
)
def test_a_finding_is_played(mutant: str, code: int, fate: str, tmp_path: Path) -> None:
    target = f"reference{mutant}"
    done = shareproof("finding", "107", "--target", target, "--json", "--out", str(tmp_path))
    assert done.returncode == code, done.stderr
    assert [one["fate"] for one in json.loads(done.stdout)] == [fate]


PAGES = Path(__file__).parents[1] / "docs/findings"


def test_each_fix_belongs_to_a_finding_that_tells_cause_and_fix() -> None:
    assert len(FIXES) > 25
    assert {rule for fix in FIXES.values() for rule in fix.rules} <= load_rules().keys()
    for name, fix in FIXES.items():
        (page,) = PAGES.glob(f"{name}-*.md")
        text = page.read_text(encoding="utf-8")
        missing = [part for part in ("**Cause**", "**Fix**", FIX + name) if part not in text]
        assert (page.name, missing) == (page.name, [])
        assert (page.name, [rule for rule in fix.rules if rule not in text]) == (page.name, [])


def test_the_table_of_fixes_is_that_of_the_agent() -> None:
    rows = re.findall(
        r"^\| \[(\d+)\]\(\1-[a-z0-9-]+\.md\) \| ([^|]+) \| .* \| ([^|]+) \|[^|]*\|$",
        (PAGES / "fixes.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    expected = [(one.name, one.sentence, ", ".join(one.rules)) for one in FIXES.values()]
    assert rows == expected
    pages = [page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")]
    assert {name for text in pages for name in re.findall(r"fix-(\d+)", text)} == set(FIXES)


@pytest.mark.parametrize(
    ("name", "findings"),
    [
        ("fix-051", ("051",)),
        ("fix-051+fix-028", ("051", "028")),
        ("fix-all", (ALL,)),
        ("fix-051+lock-a-third", ()),
        ("fix-999", ()),
        ("lock-a-third", ()),
    ],
)
def test_fixes_are_joined_by_a_plus(name: str, findings: tuple[str, ...]) -> None:
    assert fixes_of(name) == findings


def test_a_fix_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageFault, match=r"'fix-52' is no fix of Kafka: .*fix-052"):
        open_target("kafka:4.4.0:fix-051+fix-52")


def test_a_fixed_release_keeps_the_rule_that_it_breaks(tmp_path: Path) -> None:
    done, found = judged(tmp_path, "--target", "kafka:4.4.0:fix-059+fix-107", "--only", "COO-25")
    assert found["COO-25"][0] == "pass", done.stdout + done.stderr


def test_a_fix_that_does_not_fit_a_release_is_an_environment_fault() -> None:
    """No broker runs as it was published under the name of a fix."""
    reason = r"The fixes, which were made for Kafka 4\.4\.0, for 4\.1\.2 cannot be built"
    with pytest.raises(EnvironmentFault, match=reason), started(open_target("kafka:4.1.2:fix-051")):
        pass


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
