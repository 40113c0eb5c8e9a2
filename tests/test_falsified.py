"""Every check was seen rejecting something: the record of the sweep has no hole."""

from __future__ import annotations

import json

from fixtures.proxies.alterations import ALTERATIONS
from shareproof.runner.inventory import read_checks
from tools.falsified import RECORD


def recorded() -> dict[str, dict[str, list[str]]]:
    """Return the record: by check, by rule, the alterations that made it fail."""
    checks: dict[str, dict[str, list[str]]] = json.loads(RECORD.read_text("utf-8"))["checks"]
    return checks


def test_every_check_was_seen_failing_each_of_its_rules() -> None:
    """A check that no broken broker ever made fail proves nothing when it passes."""
    seen = recorded()
    never = [
        f"{check.id} {rule}"
        for check in read_checks()
        for rule in check.rules
        if not seen.get(check.id, {}).get(rule)
    ]

    assert never == [], "run `tox -e falsify`, and give each of these a lie that it can notice"


def test_the_record_names_only_living_alterations() -> None:
    """An alteration that was removed or renamed is evidence of nothing."""
    named = {name for rules in recorded().values() for names in rules.values() for name in names}

    assert named <= ALTERATIONS.keys()
