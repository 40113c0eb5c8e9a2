"""``list``: the rules, and which checks reach each."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from shareproof import ROOT
from shareproof.commands.options import AsJson, Only
from spec.requirement import APP_AREA, Honesty, Level, Requirement, load_requirements


def list_rules(
    *,
    only: Only = None,
    level: Annotated[
        Level, typer.Option(case_sensitive=False, help="Lowest level of rules to list.")
    ] = Level.MAY,
    as_json: AsJson = False,
) -> None:
    """List the rules, and which checks reach each."""
    from shareproof.runner.inventory import CLIENT, by_rule, read_checks
    from suites.options import RunOptions, checked, words

    options = checked(RunOptions(only=words(only), level=level))
    order = list(Level)
    rules = [
        rule
        for rule in load_requirements().values()
        if options.wants(rule.id) and order.index(rule.level) <= order.index(level)
    ]
    checks = by_rule([*read_checks(ROOT / "suites" / "broker"), *read_checks(CLIENT)])
    if as_json:
        plain = [
            {
                **asdict(rule),
                "source": [str(source) for source in rule.source],
                "area": rule.area,
                "checks": [check.id for check in checks.get(rule.id, [])],
            }
            for rule in rules
        ]
        typer.echo(json.dumps(plain, indent=1, ensure_ascii=False))
        return
    from rich.markup import escape
    from rich.table import Table

    from reports.console import screen

    table = Table("rule", "level", "since", "reached", "text", box=None)
    for rule in rules:
        reached = _reached(rule, len(checks.get(rule.id, [])))
        table.add_row(rule.id, rule.level.value, rule.since, reached, escape(rule.text))
    screen().print(table)


def _reached(rule: Requirement, checks: int) -> str:
    if rule.honesty is Honesty.UNTESTED:
        return "untested"
    if not checks and rule.area == "INV":
        return "histories"
    if rule.area == APP_AREA:
        return "programs"
    return f"{checks} check{'' if checks == 1 else 's'}"
