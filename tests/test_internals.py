"""Who is held to the rules about Apache's own implementation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.reading import parse
from reports.telling import bases, headline
from spec.profile import load_profile
from spec.requirement import Basis, Internal, load_requirements
from suites.options import RunOptions
from tests.test_results import document

RULES = load_requirements()
INTERNAL = {rule.id for rule in RULES.values() if rule.internal}


@pytest.mark.parametrize(
    ("options", "held"),
    [
        (RunOptions(target="kafka:4.4.0"), True),
        (RunOptions(target="kafka:4.4.0", profile="strict"), True),
        (RunOptions(target="reference"), True),
        (RunOptions(target="external:127.0.0.1:9092"), False),
        (RunOptions(target="external:127.0.0.1:9092", profile="strict"), False),
        (RunOptions(target="external:127.0.0.1:9092", profile="apache-kafka"), True),
        (RunOptions(target="kfake"), False),
    ],
)
def test_internals_are_for_kafka(options: RunOptions, *, held: bool) -> None:
    brokers = {rule for rule in RULES if not rule.startswith(("CLI-", "FRM-"))}

    assert options.selected().keys() == (brokers if held else brokers - INTERNAL)


def test_internals_can_be_named() -> None:
    options = RunOptions(target="external:127.0.0.1:9092", only=("LAG-16", "PER"))

    assert options.selected().keys() & INTERNAL == {"LAG-16"}


def test_every_internal_is_used() -> None:
    assert {rule.internal for rule in RULES.values()} - {None} == set(Internal)
    assert [
        e.requirement for e in load_profile("kfake").expected if e.requirement in INTERNAL
    ] == []


def test_contract_rules_are_counted_first() -> None:
    told = parse(document())
    one = replace(told.requirements[0], verdict="pass", problem="", expected=True)
    rules = (
        one,
        replace(one, id="ACK-02", verdict="fail"),
        replace(one, id="ACK-03", basis=Basis.REFERENCE),
        replace(one, id="ACK-04", internal=Internal.JMX),
    )
    green = replace(told.run, exit_code=0, partial=False, only=(), fast=False)
    results = replace(told, requirements=rules, problems=(), run=green)

    assert headline(results).sentence.startswith("1 of 2 contract rules hold; 2 of 2 others")
    assert bases(results) == [
        ("contract", {"fail": 1, "pass": 1}),
        ("reference", {"pass": 1}),
        ("Kafka's own", {"pass": 1}),
    ]
