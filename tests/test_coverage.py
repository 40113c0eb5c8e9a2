"""Both sides of the catalogue: every rule is reached by a check, every check names its rules."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fixtures.clients.features import PROBES
from reports.analysis.rules import load_invariants
from shareproof.runner.inventory import CLIENT, Check, by_rule, read_checks
from spec.profile import load_profile
from spec.requirement import Honesty, Requirement, load_requirements
from suites.app.rules import JUDGES


@pytest.fixture(scope="module")
def rules() -> dict[str, Requirement]:
    """The live rules."""
    return load_requirements()


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    """The checks of brokers and of clients, read from their source."""
    return [*read_checks(), *read_checks(CLIENT)]


def test_every_rule_is_reached_or_says_why_not(
    rules: dict[str, Requirement], checks: list[Check]
) -> None:
    reached = by_rule(checks).keys() | {rule.id for rule in load_invariants()} | JUDGES.keys()
    bare = [
        rule.id
        for rule in rules.values()
        if rule.honesty is not Honesty.UNTESTED and rule.id not in reached
    ]

    assert bare == []


def test_no_rule_is_both_untested_and_checked(
    rules: dict[str, Requirement], checks: list[Check]
) -> None:
    untested = {rule.id for rule in rules.values() if rule.honesty is Honesty.UNTESTED}

    assert sorted(untested & by_rule(checks).keys()) == []


def test_every_check_names_live_rules(rules: dict[str, Requirement], checks: list[Check]) -> None:
    bare = [check.id for check in checks if not check.rules]
    dead = [(check.id, rule) for check in checks for rule in check.rules if rule not in rules]

    assert bare == []
    assert dead == []


def test_every_declared_absence_is_used(checks: list[Check]) -> None:
    named = {feature for check in checks for feature in check.features}
    declared = {entry.feature for entry in load_profile("apache-kafka").absent}

    assert sorted(declared - named) == []


def test_every_feature_has_a_probe(checks: list[Check]) -> None:
    named = {feature for check in checks for feature in check.features}
    probes = {entry.probe for entry in load_profile("apache-kafka").absent}

    assert sorted((named | probes) - PROBES.keys()) == []


def test_inventory_reads_what_pytest_would(tmp_path: Path) -> None:
    folder = tmp_path / "suites" / "broker"
    folder.mkdir(parents=True)
    source = '''
        import pytest
        pytestmark = [pytest.mark.fast]

        @pytest.mark.requirement("ACK-01", "ACK-02")
        @pytest.mark.parametrize("x", ["not a rule"])
        async def test_one(x):
            """ACK-01: One."""

        class TestMore:
            pytestmark = pytest.mark.requirement("ACK-03")

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
    assert (three.solo, three.draft, read_checks(folder)) == (True, True, [one, two])
