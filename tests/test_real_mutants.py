"""Mutants of real Kafka: the agent has those that are described, and the record has all of them."""

from __future__ import annotations

import json

from fixtures.machine.java import find_java
from fixtures.mutants import MUTANTS
from fixtures.mutants.agency import known
from shareproof.runner.inventory import read_checks
from spec.requirement import load_requirements
from tools.real_mutants import RECORD

ENOUGH = 15
"""Mutants that must be dead at least."""


def test_the_agent_compiles_and_has_every_mutant() -> None:
    """The agent is compiled here and now, and its names are the described ones."""
    assert known(find_java()) == list(MUTANTS)


def test_mutants_break_rules_that_exist() -> None:
    """Every mutant says in a sentence what is wrong, and which live rules that breaks."""
    rules = load_requirements()

    assert all(mutant.sentence and mutant.rules for mutant in MUTANTS.values())
    assert {rule for mutant in MUTANTS.values() for rule in mutant.rules} <= rules.keys()


def test_the_record_is_of_these_mutants() -> None:
    """Every mutant is dead, by a check that reports one of its rules, or it says why it lives."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    dead, alive = record["mutants"], record["survivors"]
    checks = {check.id: check.rules for check in read_checks(drafts=True)}

    assert sorted([*dead, *alive]) == sorted(MUTANTS)
    assert len(dead) >= ENOUGH
    assert [name for name, why in alive.items() if not why] == []
    for name, kill in dead.items():
        assert kill["rule"] in MUTANTS[name].rules
        assert kill["rule"] in checks[kill["check"]]
