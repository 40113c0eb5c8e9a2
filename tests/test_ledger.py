"""The ledger, and settlement: which entries speak for a version, and what a rule's verdict is."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reports.verdicts import BROKEN, FAULT, OK, Judged, exit_code, settle, tally
from spec.ledger import (
    SETUPS,
    Expected,
    Ledger,
    check_ledger,
    covers,
    load_ledger,
    parse_ledger,
    shipped,
)
from spec.rule import Honesty, Level, Rule, SpecError, load_rules
from spec.verdict import SEVERITY, Observation, Verdict
from suites.broker import check
from tests.test_results import contract_rule

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "docs" / "findings"
LEDGERS = ROOT / "spec" / "ledgers"

GOOD = """
[ledger]
name = "p"

[[absent]]
feature = "renew"
versions = "<4.2"
probe = "renew"
reason = "came with 4.2"

[[known]]
reason = "known"
versions = ">=4.1,<4.3"
bug = "KAFKA-1"
expires = 2027-01-31
failures = [
  { rule = "ACK-01", match = "redelivered .* times" },
  { rules = [
    "ACK-02", "ACK-03",
  ], verdict = "unknown", versions = "<4.2", intermittent = true, match = "late" },
]
"""


def test_setups_that_are_left_out() -> None:
    assert parse_ledger(GOOD, "p").as_written == ()
    text = GOOD.replace('name = "p"', 'name = "p"\nas_written = ["beside"]')
    assert parse_ledger(text, "p").as_written == ("beside",)
    with pytest.raises(SpecError, match="as_written must be a list of names"):
        parse_ledger(text.replace('["beside"]', '"beside"'), "p")
    with pytest.raises(SpecError, match="as_written: besides is none of beside, "):
        parse_ledger(text.replace("beside", "besides"), "p")
    assert set(check.SETUPS) == set(SETUPS)


def test_shipped_ledger_is_sound() -> None:
    ledger = load_ledger("apache-kafka")
    assert ledger.name == "apache-kafka"
    assert check_ledger(ledger, load_rules()) == []
    assert "ACK-01" in check_ledger(parse_ledger(GOOD, "p.toml"), {})[0]
    with pytest.raises(SpecError, match="apache-kafka"):
        load_ledger("other")


CLIENTS = sorted(path.stem for path in LEDGERS.glob("client-*.toml"))


@pytest.mark.parametrize("name", CLIENTS)
def test_every_failure_of_a_client_was_reproduced(name: str) -> None:
    strange = []
    for entry in load_ledger(name).expected:
        page = FINDINGS / f"{entry.finding}.md"
        text = page.read_text(encoding="utf-8") if entry.finding and page.exists() else ""
        if entry.rule not in text or "**Reproduce**" not in text:
            strange.append((entry.rule, entry.finding))
    assert strange == []


def test_findings_name_scripts_that_are_there() -> None:
    links = [
        (page.name, link)
        for page in sorted(FINDINGS.glob("*.md"))
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    ]
    assert [(page, link) for page, link in links if not (FINDINGS / link).exists()] == []


def test_entries_are_read() -> None:
    ledger = parse_ledger(GOOD, "p.toml")

    assert ledger.absent[0].probe == "renew"
    assert ledger.expected[0].verdict is Verdict.FAIL
    assert ledger.expected[0].explains(Verdict.FAIL, "was redelivered 6 times")
    assert not ledger.expected[0].explains(Verdict.UNKNOWN, "was redelivered 6 times")
    witness = ("offset 3: was redelivered 6 times (during kill-leader)",)
    assert ledger.expected[0].explains(Verdict.FAIL, "6 of 9 cases break the rule", witness)
    assert not ledger.expected[0].explains(Verdict.FAIL, "6 of 9 cases break the rule")
    second, third = ledger.expected[1:]
    assert (second.rule, second.verdict, second.versions) == ("ACK-02", "unknown", "<4.2")
    assert third == replace(second, rule="ACK-03")
    assert (second.reason, second.bug, second.intermittent) == ("known", "KAFKA-1", True)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "p"', "", "no name"),
        ('verdict = "unknown"', 'verdict = "error"', "verdict must be one of"),
        ('match = "redelivered .* times"', 'match = "("', "regular expression"),
        (', match = "redelivered .* times"', "", "match is missing"),
        ('rule = "ACK-01", ', "", "rule is missing"),
        ('rule = "ACK-01", ', 'rules = "ACK-01", ', "either rule or rules, a list"),
        ('rule = "ACK-01", ', "rules = [], ", "either rule or rules, a list"),
        ("{ rules = [", '{ rule = "ACK-04", rules = [', "either rule or rules, a list"),
        ("failures = [", "failures = 1\nothers = [", "failures must be a list"),
        ("expires = 2027-01-31", 'expires = "soon"', "expires must be a date"),
        ("expires = 2027-01-31", "expires = 2027-01-31\nowner = 1", "unknown keys"),
        ('versions = "<4.2"', 'versions = "old"', "no version range"),
        ('probe = "renew"', "", "probe is missing"),
        ("[[absent]]", "[[missing]]", "unknown tables"),
        ("[ledger]", "[ledger", "p.toml"),
        ('bug = "KAFKA-1"', "bug = 1", "must be a string"),
        (GOOD, GOOD + GOOD.split("\n\n")[1], "two entries"),
        (GOOD, GOOD + GOOD.split("\n\n")[2], "two entries"),
    ],
)
def test_malformed_ledger_is_refused(old: str, new: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        parse_ledger(GOOD.replace(old, new), "p.toml")


@pytest.mark.parametrize(
    ("versions", "version", "inside"),
    [
        ("", "", True),
        ("", "4.4.0", True),
        ("<4.2", "4.1.2", True),
        ("<4.2", "4.2.0", False),
        (">=4.1,<4.3", "4.2.1", True),
        (">=4.4", "4.4", True),
        (">=4.4", "", False),
        (">=4.4", "4.4.0-rc1", False),
        (">=4.4", "trunk", False),
    ],
)
def test_ranges_cover_versions(versions: str, version: str, inside: bool) -> None:
    assert covers(versions, version) is inside


WENT_BACK = (
    "t-1 offset 460 in group calm: start offset 1400 was shown, then 460 (from 150.825 s to "
    "151.884 s; during lose-state-responses of every 2. answer of WriteShareGroupState)"
)
SKIPPED = (
    "t-4 offset 0 in group calm: record 0 of producer 7 never came to 2 of 2 groups (from 7.134 s "
    "to 7.351 s of the run; during add-partition-at-latest of t, which has 5 partitions)"
)
LEFT = "t-5 offset 814 in group odd: start offset 814 of 1086, lag 1 at the end"
STUCK = "t-1 offset 50 in group sp-dead-f-10: start offset 50 of 105, lag 35 at the end"
FIRST, BELOW = (
    f"delivered though the log began at 9, in {batch}"
    for batch in ("the batch in which it begins", "a batch below")
)


@pytest.mark.parametrize(
    ("rule", "release", "witness", "known"),
    [
        ("INV-19", "4.2.1", (WENT_BACK,), True),
        ("INV-19", "4.2.1", (WENT_BACK.partition("; during")[0],), False),
        ("INV-05", "4.2.1", (SKIPPED,), True),
        ("INV-05", "4.2.1", (SKIPPED.partition("; during")[0],), False),
        ("INV-24", "4.4.0", (f"{LEFT}, the log begins at 951 (from 69 s to 70 s)",), True),
        ("INV-24", "4.4.0", (f"{LEFT} (from 69.133 s to 69.134 s of the run)",), False),
        ("INV-24", "4.4.0", (f"{LEFT}, the log begins at 951 (at 1 s)", f"{LEFT} (at 1 s)"), False),
        ("INV-24", "4.4.0", (f"{LEFT}, the first 200 records deleted (at 1 s)",), True),
        ("INV-24", "4.4.0", (f"{STUCK} (at 1 s)", f"{STUCK} (at 1 s)"), True),
        ("INV-24", "4.4.0", (f"{STUCK} (at 1 s)", f"{LEFT} (at 1 s)"), False),
        ("INV-36", "4.4.0", (f"{FIRST} (at 1 s)",), True),
        ("INV-36", "4.4.0", (f"{BELOW} (at 1 s)",), False),
        ("INV-36", "4.4.0", (FIRST, BELOW), False),
    ],
)
def test_known_defects_are_known_by_their_witness(
    rule: str, release: str, witness: tuple[str, ...], *, known: bool
) -> None:
    ledger = load_ledger("apache-kafka")
    entries = ledger.expectations(release)[rule]
    reason = "2 of 136 cases break the rule"
    assert any(entry.explains(Verdict.FAIL, reason, witness) for entry in entries) == known
    assert release == "4.4.0" or rule not in ledger.expectations("4.4.0")


@pytest.mark.parametrize("name", shipped())
def test_every_known_failure_has_a_page_or_a_bug(name: str) -> None:
    pages = {page.stem for page in FINDINGS.glob("*.md")}
    bare = [
        entry.rule
        for entry in load_ledger(name).expected
        if not (entry.bug or entry.finding) or (entry.finding and entry.finding not in pages)
    ]
    assert bare == []


SEEN = tomllib.loads((ROOT / "tests" / "known_reasons.toml").read_text(encoding="utf-8"))["seen"]


def explained(rule: str, release: str, verdict: str, reason: str) -> list[str]:
    entries = load_ledger("apache-kafka").expectations(release).get(rule, [])
    return [entry.match for entry in entries if entry.explains(Verdict(verdict), reason)]


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: f"{seen['rule']}-{seen['release']}")
def test_known_failures_match_their_witness(seen: dict[str, str]) -> None:
    rule, release, verdict = seen["rule"], seen["release"], seen.get("verdict", "fail")
    head, got, _ = seen["reason"].rpartition("got ")
    assert explained(rule, release, verdict, seen["reason"])
    if got and verdict == "fail":
        assert explained(rule, release, verdict, f"{head}got 'SOMETHING ELSE'") == []


def test_every_known_failure_was_seen() -> None:
    shown = {
        (seen["rule"], match)
        for seen in SEEN
        for match in explained(
            seen["rule"], seen["release"], seen.get("verdict", "fail"), seen["reason"]
        )
    }
    entries = load_ledger("apache-kafka").expected

    assert [
        (entry.rule, entry.match)
        for entry in entries
        if not entry.intermittent and (entry.rule, entry.match) not in shown
    ] == []


# --- Settlement --------------------------------------------------------------------------------

TODAY = date(2026, 6, 1)


def rule(**changes: Any) -> Rule:
    return replace(contract_rule("text", honesty=Honesty.REQUIRED), **changes)


def saw(verdict: Verdict, reason: str = "", **changes: object) -> Observation:
    facts: dict[str, object] = {"rule": "ACK-01", "check": "test", "verdict": verdict}
    return Observation(**{**facts, "reason": reason, **changes})  # type: ignore[arg-type]


def entry(**changes: object) -> Expected:
    facts: dict[str, object] = {
        "rule": "ACK-01",
        "verdict": Verdict.FAIL,
        "versions": ">=4.1",
        "match": "twice",
        "reason": "known",
        "expires": date(2027, 1, 1),
    }
    return Expected(**{**facts, **changes})  # type: ignore[arg-type]


def judged(
    observations: Sequence[Observation],
    *entries: Expected,
    subject: Rule | None = None,
    unfinished: Sequence[str] = (),
) -> list[Judged]:
    subject = subject or rule()
    return settle(
        {subject.id: subject},
        observations,
        ledger=Ledger(name="p", expected=entries),
        version="4.4.0",
        today=TODAY,
        unfinished=unfinished,
    )


@pytest.mark.parametrize("worse", SEVERITY[1:])
def test_worst_check_decides(worse: Verdict) -> None:
    (result,) = judged([saw(Verdict.PASS), saw(worse, "why")])
    assert (result.verdict, result.reason) == (worse, "why")


def test_evidence_adds_up() -> None:
    one = saw(Verdict.PASS, evidence={"a": 1, "b": 2})
    (result,) = judged([one, saw(Verdict.PASS, evidence={"a": 4})])
    assert result.evidence == {"a": 5, "b": 2}


def test_which_rules_are_listed() -> None:
    assert judged([]) == []
    (result,) = judged([], subject=rule(honesty=Honesty.UNTESTED, why="no way to see it"))
    assert (result.word, result.reason, result.expected) == ("untested", "no way to see it", True)
    young = rule(since="4.9")
    assert judged([saw(Verdict.FAIL)], subject=young) == []
    assert judged([saw(Verdict.UNSUPPORTED)], subject=young)[0].expected


TWICE, LOST = saw(Verdict.FAIL, "released twice"), saw(Verdict.FAIL, "lost")
HELD, BEYOND = saw(Verdict.PASS), saw(Verdict.OUT_OF_REACH, "one broker")
YESTERDAY = date(2026, 5, 31)


@pytest.mark.parametrize(
    ("seen", "entries", "expected", "problem", "code"),
    [
        pytest.param([TWICE], [entry()], True, "", OK, id="known"),
        pytest.param([LOST], [entry()], False, "wrong reason", BROKEN, id="wrong reason"),
        pytest.param([TWICE, LOST], [entry()], False, "wrong", BROKEN, id="one of two is known"),
        pytest.param([HELD], [entry()], True, "stale", BROKEN, id="needless"),
        pytest.param([HELD], [entry(intermittent=True)], True, "", OK, id="never stale"),
        pytest.param([LOST], [entry(intermittent=True)], False, "wrong", BROKEN, id="another"),
        pytest.param([TWICE], [entry(expires=YESTERDAY)], None, "expired", BROKEN, id="old"),
        pytest.param([HELD], [entry(expires=YESTERDAY)], None, "expired", BROKEN, id="old pass"),
        pytest.param([TWICE], [entry(versions="<4.2")], False, "", BROKEN, id="another version"),
        pytest.param([saw(Verdict.ERROR, "twice")], [entry()], False, "", FAULT, id="error"),
        pytest.param([HELD, BEYOND], [entry()], True, "", OK, id="out of reach"),
        pytest.param([TWICE, BEYOND], [], False, "", BROKEN, id="hides no failure"),
        pytest.param([saw(Verdict.VACUOUS, excused=True)], [], True, "", OK, id="excused"),
    ],
)
def test_what_is_expected_of_a_rule(
    seen: list[Observation], entries: list[Expected], expected: bool | None, problem: str, code: int
) -> None:
    (result,) = judged(seen, *entries)
    assert expected in (None, result.expected)
    assert problem in result.problem
    assert bool(problem) == bool(result.problem)
    assert exit_code([result], [], Level.MUST) == code


def test_what_is_beyond_reach_or_another_versions_is_told() -> None:
    (result,) = judged([HELD, BEYOND], entry())
    assert (result.word, result.reason) == ("out of reach", "one broker")
    assert judged([TWICE, BEYOND])[0].word == "fail"
    assert judged([TWICE], entry(versions="<4.2"))[0].entries == ()


def test_entry_is_not_called_stale_on_half_the_checks() -> None:
    (result,) = judged([saw(Verdict.PASS)], entry(), unfinished=["ACK-01"])
    assert result.problem == ""


def test_a_loose_problem_fails_the_run_and_a_tally_names_every_verdict() -> None:
    assert exit_code([], ["stale"], Level.MUST) == BROKEN
    assert tally([]) == {**{verdict.value: 0 for verdict in SEVERITY}, "untested": 0}
