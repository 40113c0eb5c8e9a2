"""Every mutant of the model client is on record as killed by a check of a rule that it breaks."""

from __future__ import annotations

from fixtures.adapters.model.mutants import MUTANTS
from shareproof.runner.inventory import CLIENT, read_checks
from spec.requirement import load_requirements
from tools.client_mutants import known


def test_there_are_many() -> None:
    """There are enough mutants to believe in the checks."""
    assert len(MUTANTS) >= 25


def test_every_mutant_breaks_live_rules() -> None:
    """A mutant names rules that exist and that a check reaches, and says what is wrong with it."""
    rules = load_requirements()
    reached = {rule for check in read_checks(CLIENT) for rule in check.rules}
    strange = [
        (mutant.name, rule)
        for mutant in MUTANTS.values()
        for rule in mutant.rules
        if rule not in rules or rule not in reached
    ]

    assert strange == []
    assert [mutant.name for mutant in MUTANTS.values() if not mutant.sentence] == []


def test_every_mutant_is_killed() -> None:
    """No mutant is alive by the record; `python -m tools.client_mutants` hunts those that are."""
    assert sorted(MUTANTS.keys() - known().keys()) == []


def test_every_kill_was_for_the_right_reason() -> None:
    """What killed a mutant is a live check, and it named a rule that the mutant breaks."""
    checks = {check.id: check.rules for check in read_checks(CLIENT)}
    wrong = [
        name
        for name, kill in known().items()
        if name not in MUTANTS
        or kill["rule"] not in MUTANTS[name].rules
        or kill["rule"] not in checks.get(kill["check"], ())
    ]

    assert wrong == []


def test_every_check_was_seen_failing() -> None:
    """Each check of clients has caught at least one mutant."""
    killers = {kill["check"] for kill in known().values()}
    unseen = [check.id for check in read_checks(CLIENT) if check.id not in killers]

    assert unseen == []


def test_every_rule_was_seen_broken() -> None:
    """Each rule that a check of clients judges was broken by at least one mutant, by name."""
    broken = {kill["rule"] for kill in known().values()}
    judged = {rule for check in read_checks(CLIENT) for rule in check.rules}

    assert sorted(judged - broken) == []
