"""No rule forbids an obvious repair of what a finding describes."""

import re
from pathlib import Path

import pytest

from fixtures.reference.mutants import REPAIRS
from tests.test_evidence import OUTSIDE
from tools.campaign.hunting import cases_of, checks, playable
from tools.campaign.player import HONEST, play

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "docs" / "findings"
STATE = "PER-05,PER-14,PER-16,PER-17,PER-18,PER-33"
ASKED = {
    "the-later-of-equal-counts": STATE,
    "the-last-write-counts": STATE,
    "starts-are-stored-when-decided": "OFF-01,OFF-02,OFF-06,OFF-19,OFF-46,LAG-05,LAG-07,ADM-10",
}
"""The rules that a repair is near to."""
CLIENTS = (
    "021 022 023 024 025 026 030 031 032 033 034 035 036 037 038 039 041 062 063 064 065 066 067"
    " 068 069 080 081 082 083 084 085 090 091 092 093 094 095 096 097 098 099"
    " 071 072 073 074 100 101 102 103 104 105 106"
)
NOT_PLAYED = {
    **dict.fromkeys(CLIENTS.split(), "about a client: a broker cannot repair it"),
    "018": "the reference broker has no replicas, so no election can cut its log",
    "019": "no quotas there; played by altered:quotas-first on real Kafka, which DLV-34 accepts",
    "020": "no authorizer there",
    "027": "state is written at once there, so that no write is late",
    "029": "state is written at once there; 4.4.0 has the repair and breaks no rule by it",
    "042": "no state is loaded there, so none is loaded too early",
    "043": "no state is loaded there over a connection that could be lost",
    "054": "about a whole history; the lag of the reference broker follows its log",
}
"""Findings whose repair the reference broker cannot show, and why."""


def rules_of(page: Path) -> list[str]:
    head = " ".join(page.read_text(encoding="utf-8").split("\n\n")[1].split())
    named = re.search(r"\*\*Rules?\*\* (.*?)\. \*\*Seen on", head)
    return re.findall(r"[A-Z]{3}-\d+", named[1]) if named else []


def test_every_finding_has_a_repair() -> None:
    """The reference broker is one, where it keeps a finding's rules beside all others of its own.

    Whole histories (INV) are judged of real clusters only.
    """
    within = (name for name in playable(drafts=True) if not name.startswith(OUTSIDE))
    kept = {rule for name in within for rule in checks()[name].rules}
    repaired = {number for repair in REPAIRS.values() for number in repair.rules}
    findings = {page.name[:3]: rules_of(page) for page in FINDINGS.glob("[0-9]*.md")}
    without = [
        number
        for number, rules in findings.items()
        if rules and number not in repaired | NOT_PLAYED.keys()
        if not {rule for rule in rules if not rule.startswith("INV-")} <= kept
    ]

    assert without == []
    assert NOT_PLAYED.keys() <= {number for number, rules in findings.items() if rules}
    assert repaired <= findings.keys()


@pytest.mark.parametrize("name", REPAIRS)
def test_no_rule_forbids_a_repair(name: str) -> None:
    near = set(ASKED[name].split(","))
    cases = [
        case for check in playable() if near & {*checks()[check].rules} for case in cases_of(check)
    ]
    played = {case.name: play(f"{HONEST}:{name}", case, seed=1) for case in cases}
    assert {case: seen.observations for case, seen in played.items() if not seen.held} == {}
    assert near <= {seen.requirement for one in played.values() for seen in one.observations}
