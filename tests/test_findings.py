"""What becomes of findings on a target, as runs of their rules and cases tell it."""

from dataclasses import replace
from datetime import date

import pytest

from fixtures.targets import UsageFault
from reports.headlines import causes
from reports.reader import parse
from reports.results import CheckResult, KnownFailure, Results, Word
from shareproof.findings.fates import Fate, Finding, chosen, fates
from spec.findings import load_findings
from spec.ledger import Expected
from spec.verdict import Verdict
from tests.shell import Shell
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
