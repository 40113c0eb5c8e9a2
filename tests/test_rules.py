"""Rules: what each rests on, which check judges it, and the lists that they must reach."""

import json
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.features import PROBES
from reports import headlines
from reports.analysis.rules import load_invariants
from reports.headlines import bases, headline
from reports.html import render
from reports.reader import parse as parse_results
from shareproof.runner.inventory import CLIENT, Check, by_rule, in_tier, read_checks, tiers
from spec.catalogue import Entry, entries_of, load_catalogue, load_defects
from spec.configs import load_configs
from spec.ledger import load_ledger
from spec.rule import (
    Basis,
    Honesty,
    Internal,
    Kind,
    Level,
    Source,
    SpecError,
    load_kips,
    load_rules,
    parse_sources,
)
from spec.tiers import (
    ALL,
    BESIDE,
    CONSUMER,
    CONVENIENT,
    FAILOVER,
    check_tier,
    recorded,
    rule_tiers,
    tier_of,
)
from suites.app.rules import JUDGES
from suites.options import RunOptions
from tests.release import RELEASE, schemas
from tests.shell import judged
from tests.test_results import document

RULES = load_rules()
Loader = Callable[[], dict[str, Entry]]


@pytest.mark.parametrize("load", [load_catalogue, load_defects])
def test_entries_are_reached_by_live_rules_and_have_labels_of_their_own(load: Loader) -> None:
    entries = load().values()
    labels = [entry.label for entry in entries]
    assert [entry.id for entry in entries if not entry.rules] == []
    assert [(e.id, rule) for e in entries for rule in e.rules if rule not in RULES] == []
    assert [label for label in labels if not 3 <= len(label.split()) <= 6] == []
    assert [label for label, times in Counter(labels).items() if times > 1] == []


def test_defects_alone_name_public_reports_and_untested_rules_say_why() -> None:
    assert [entry.id for entry in load_defects().values() if not entry.bug] == []
    assert [entry.id for entry in load_catalogue().values() if entry.bug] == []
    untested = [one for one in RULES.values() if one.honesty is Honesty.UNTESTED]
    reasons = [rule.why for rule in untested]
    assert [reason for reason, times in Counter(reasons).items() if times > 1] == []
    assert [reason for reason in reasons if len(reason.split()) < 6] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('A-1 = { rules = "X-01" }', "label is missing"),
        ('A-1 = { label = "l" }', "rules is missing"),
        ('A-1 = "text"', "must be a table"),
        ('A-1 = { label = "l", rules = "X-01", stars = 3 }', "unknown keys"),
        ('A-1 = { label = "l", rules = ["X-01"] }', "ids in one text"),
        ('A-1 = { label = "l", rules = "X-01 X-01" }', "twice"),
        ('A-1 = { label = "l", rules = "X-01" }\n[B]\nA-1 = { label = "m" }', "twice"),
    ],
)
def test_a_malformed_list_is_refused(line: str, message: str) -> None:
    good = 'ACK-1 = { label = "l", rules = "ACK-07", star = true, bug = ["K-1"] }'
    entry = Entry(id="ACK-1", area="A", label="l", rules=("ACK-07",), star=True, bug=("K-1",))
    assert entries_of(f"[A]\n{good}\n") == {"ACK-1": entry}
    with pytest.raises(SpecError, match=rf"A-1.*{message}"):
        entries_of(f"[A]\n{line}\n")


def holes(entries: Iterable[Entry], reached: Collection[str]) -> dict[str, list[str]]:
    excused = {rule.id for rule in RULES.values() if rule.honesty is Honesty.UNTESTED and rule.why}
    missing = {one.id: [r for r in one.rules if r not in {*reached, *excused}] for one in entries}
    return {identity: rules for identity, rules in missing.items() if rules}


def test_every_behaviour_is_checked_or_says_why_not(checks: list[Check]) -> None:
    reached = by_rule(checks).keys() | {rule.id for rule in load_invariants()}
    assert holes(load_catalogue().values(), reached) == {}
    entry = Entry(id="A-1", area="A", label="l", rules=("ACK-07", "CLI-45", "ACK-01", "XXX-01"))
    assert holes([entry], ["ACK-01"]) == {"A-1": ["ACK-07", "XXX-01"]}


# --- Checks -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    return [*read_checks(), *read_checks(CLIENT)]


def test_every_rule_is_reached_or_says_why_not(checks: list[Check]) -> None:
    untested = {rule.id for rule in RULES.values() if rule.honesty is Honesty.UNTESTED}
    checked = by_rule(checks).keys()
    reached = checked | {rule.id for rule in load_invariants()} | JUDGES.keys()
    assert sorted(RULES.keys() - untested - reached) == []
    assert sorted(untested & checked) == []


def test_every_check_names_live_rules(checks: list[Check]) -> None:
    assert [check.id for check in checks if not check.rules] == []
    assert [(check.id, rule) for check in checks for rule in check.rules if rule not in RULES] == []


def test_every_feature_is_declared_used_and_has_a_probe(checks: list[Check]) -> None:
    named = {feature for check in checks for feature in check.features}
    absent = load_ledger("apache-kafka").absent
    assert sorted({entry.feature for entry in absent} - named) == []
    assert sorted((named | {entry.probe for entry in absent}) - PROBES.keys()) == []


def test_inventory_reads_what_pytest_would(tmp_path: Path) -> None:
    folder = tmp_path / "suites" / "broker"
    folder.mkdir(parents=True)
    source = '''
        import pytest
        pytestmark = [pytest.mark.fast]

        @pytest.mark.rule("ACK-01", "ACK-02")
        @pytest.mark.parametrize("x", ["not a rule"])
        async def test_one(x):
            """ACK-01: One."""

        class TestMore:
            pytestmark = pytest.mark.rule("ACK-03")

            @pytest.mark.feature("renew")
            @pytest.mark.solo({"a": "b"})
            def test_two(self):
                """ACK-03: Two."""

        @check("ACK-04", "ACK-05", feature=("a", "b"), crossed=BESIDE, solo={}, draft="x")
        def test_three():
            pass

        def helper():
            pass
    '''
    (folder / "test_x.py").write_text(textwrap.dedent(source), encoding="utf-8")

    one, two, three = read_checks(folder, drafts=True)

    assert (one.id, one.rules, one.fast) == (
        "suites/broker/test_x.py::test_one",
        ("ACK-01", "ACK-02"),
        True,
    )
    assert (two.id, two.rules) == ("suites/broker/test_x.py::TestMore::test_two", ("ACK-03",))
    assert (two.features, two.solo) == (("renew",), True)
    assert (three.rules, three.features) == (("ACK-04", "ACK-05"), ("a", "b"))
    assert (three.solo, three.draft, read_checks(folder)) == (True, True, (one, two))


# --- Sources ----------------------------------------------------------------------------------


def test_levels_rest_on_contracts() -> None:
    of_contract = [rule for rule in RULES.values() if rule.basis is Basis.CONTRACT]
    assert [r.id for r in of_contract if not any(source.contract for source in r.source)] == []
    musts = [rule for rule in RULES.values() if rule.level is Level.MUST]
    assert [rule.id for rule in musts if rule.basis is Basis.REFERENCE] == []
    assert RULES["ACQ-03"].level is RULES["COO-33"].level
    assert {RULES[rule].level for rule in ("COO-36", "COO-37", "COO-38")} == {Level.MUST}


CITED = [(rule.id, source) for rule in RULES.values() for source in rule.source]
NOT_FIELDS = {"Supported errors", "valid versions", "listeners"}
"""What a message definition says beside its fields."""


def of(kind: Kind) -> list[tuple[str, Source]]:
    return [(rule, source) for rule, source in CITED if source.kind is kind]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({}, "ACK-01 names no source"),
        ({"kip": {"932": {"In-flight records": []}}}, "ACK-01 names no source"),
        ({"kip": "KIP-932"}, "kip 'KIP-932' is no pinpoint"),
        ({"kip": {"932": "A record is delivered."}}, "kip '932' is no pinpoint"),
        ({"message": {"ShareFetchResponse": ["An error."]}}, "'ShareFetchResponse' is no pinpoint"),
        ({"kip": {"932": {"x": ""}}}, "kip 932 x: what it says is a text"),
        ({"doc": {"group-configs": {"x": {"y": "z"}}}}, "doc group-configs x: what it says is"),
        ({"kip": {"1": {"x": "y"}}}, "KIP-1 is not in kips.toml"),
    ],
)
def test_a_source_is_a_pinpoint(raw: Mapping[str, object], sentence: str) -> None:
    with pytest.raises(SpecError, match=re.escape(sentence)):
        parse_sources(raw, "x.toml: ACK-01")


@pytest.mark.parametrize("raw", ["", ["T.t", ""], {"key": "T.t"}])
@pytest.mark.parametrize("kind", ["code", "test", "issue"])
def test_what_is_no_contract_is_a_name(kind: str, raw: object) -> None:
    with pytest.raises(SpecError, match=f"ACK-01: {kind} is a name or a list of names"):
        parse_sources({kind: raw}, "x.toml: ACK-01")


def test_kips_say_which_text_was_read() -> None:
    kips, cited = load_kips(), of(Kind.KIP)
    assert [number for number, kip in kips.items() if not kip.revision] == []
    assert kips.keys() == {source.name for _, source in cited}
    sections = kips["932"].sections
    assert {one.place for _, one in cited if one.name == "932"} == sections.keys()
    unread = {place for place, text in sections.items() if text == "later"}
    alone = [
        rule.id
        for rule in RULES.values()
        if rule.level is Level.MUST
        and all(s.name == "932" and s.place in unread for s in rule.source if s.contract)
    ]
    assert alone == []


def _fields(fields: list[Mapping[str, Any]]) -> Iterator[str]:
    for field in fields:
        yield field["name"]
        yield from _fields(field.get("fields", []))


def test_messages_and_fields_exist() -> None:
    wrong = []
    for rule, source in of(Kind.MESSAGE):
        text = schemas().texts.get(source.name, "{}")
        plain = re.sub(r"(?m)^\s*//.*$", "", text)
        fields = {*_fields(json.loads(plain).get("fields", [])), *NOT_FIELDS}
        errors = re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b", source.says)
        if source.place not in fields or (
            source.place == "Supported errors"
            and not all((error in text) != (f"{error} is none" in source.says) for error in errors)
        ):
            wrong.append((rule, str(source)))

    assert wrong == []


def test_configurations_exist() -> None:
    known = load_configs(RELEASE).keys()
    cited = {
        source.place.partition("_")[2]
        for _, source in of(Kind.DOC)
        if source.place.startswith(("groupconfigs_", "brokerconfigs_")) and "share" in source.place
    }
    assert {name for name in cited if "*" not in name} - known == set()


# --- Rules about Apache's own implementation --------------------------------------------------

INTERNAL = {rule.id for rule in RULES.values() if rule.internal}


@pytest.mark.parametrize(
    ("options", "held"),
    [
        (RunOptions(target="kafka:4.4.0"), True),
        (RunOptions(target="kafka:4.4.0", ledger="strict"), True),
        (RunOptions(target="reference"), True),
        (RunOptions(target="external:127.0.0.1:9092"), False),
        (RunOptions(target="external:127.0.0.1:9092", ledger="strict"), False),
        (RunOptions(target="external:127.0.0.1:9092", ledger="apache-kafka"), True),
        (RunOptions(target="kfake"), False),
    ],
)
def test_internals_are_for_kafka(options: RunOptions, *, held: bool) -> None:
    brokers = {rule for rule in RULES if not rule.startswith(("CLI-", "FRM-"))}
    assert options.selected().keys() == (brokers if held else brokers - INTERNAL)


def test_internals_can_be_named_and_are_all_used() -> None:
    options = RunOptions(target="external:127.0.0.1:9092", only=("LAG-16", "PER"))
    assert options.selected().keys() & INTERNAL == {"LAG-16"}
    assert {rule.internal for rule in RULES.values()} - {None} == set(Internal)
    known = {entry.rule for entry in load_ledger("kfake").expected}
    assert known & INTERNAL == set()


def test_contract_rules_are_counted_first() -> None:
    whole = parse_results(document())
    one = replace(whole.rules[0], verdict="pass", problem="", expected=True)
    rules = (
        one,
        replace(one, id="ACK-02", verdict="fail"),
        replace(one, id="ACK-03", basis=Basis.REFERENCE),
        replace(one, id="ACK-04", internal=Internal.JMX),
    )
    green = replace(whole.run, exit_code=0, partial=False, only=(), fast=False)
    results = replace(whole, rules=rules, problems=(), run=green)

    assert headline(results).sentence.startswith("1 of 2 contract rules hold; 2 of 2 others")
    assert bases(results) == [
        ("contract", {"fail": 1, "pass": 1}),
        ("reference", {"pass": 1}),
        ("Kafka's own", {"pass": 1}),
    ]


# --- Tiers ------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[1]


def test_tiers_of_requests_checks_and_rules() -> None:
    checks = read_checks()
    assert {check.id for check in checks if not check.solo} <= set(recorded())
    assert set(recorded()) <= {check.id for check in checks}
    assert tier_of([*CONSUMER, *BESIDE, *CONVENIENT]) == tier_of([]) == 1
    assert tier_of([*CONSUMER, "ShareGroupDescribe"]) == tier_of(["DeleteRecords"]) == 2
    assert {tier_of(["ShareFetch", api]) for api in FAILOVER} == {3}
    one, two = (next(each for each in recorded() if check_tier(each) == tier) for tier in (1, 2))
    found = rule_tiers([(one, False, ["A", "B"]), (two, False, ["B"]), (one, True, ["C"])])
    assert found == {"A": 1, "B": 2, "C": 3}
    assert check_tier("suites/broker/test_x.py::test_nobody_recorded") == ALL


def test_tiers_of_known_rules() -> None:
    rules = load_rules()
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
    whole = parse_results(plain)
    part = replace(whole, run=replace(whole.run, tier=1))
    assert headlines.of_results(whole).label == "share groups"
    assert headlines.of_results(part).label == "share groups, tier 1"
    assert "Certificate of conformance, tier 1" in render(part)
    assert "Tier 1 has the rules about what a share consumer sends" in render(part)
    assert "tier" not in re.sub(r"<style.*?</style>", "", render(whole), flags=re.DOTALL).lower()


def test_a_listener_of_tier_1(tmp_path: Path) -> None:
    rules = ["--tier", "1", "--only", "ACQ-01,ACQ-15,ACK-01,SES-20,DLV-01,ADM-01"]
    command = [sys.executable, "-m", "shareproof.listener", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        listener = process.stdout.readline().split()[-1]
        where = ["--target", f"external:{listener}", "--workers", "0"]
        try:
            done, found = judged(tmp_path, *rules, *where)
        finally:
            process.terminate()

    results = json.loads((tmp_path / "results.json").read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["ACK-01"][0] == found["SES-20"][0] == "pass"
    assert found["ACQ-15"][0] == "out of reach"
    assert "ADM-01" not in found
    assert results["run"]["tier"] == 1
    assert json.loads((tmp_path / "badge.json").read_text())["label"] == "share groups, tier 1"
