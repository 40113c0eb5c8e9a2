"""``list``: the rules, and which checks reach each. ``definitions``: what a release changed."""

import json
from dataclasses import asdict
from itertools import groupby
from typing import Annotated

import typer

from shareproof.options import takes
from spec.rule import APP_AREA, Honesty, Level, Rule, load_rules
from suites.options import AsJson, Only, Option, RunOptions, checked


@takes()
def list_rules(
    *,
    only: Only = (),
    level: Annotated[
        Level, Option("Lowest level of rules to list.", case_sensitive=False)
    ] = Level.MAY,
    as_json: AsJson = False,
) -> None:
    """List the rules, and how many checks reach each; with --only, which."""
    from shareproof.runner.inventory import BROKER, CLIENT, by_rule, read_checks

    options = checked(RunOptions(only=only, level=level))
    order = list(Level)
    rules = [
        rule
        for rule in load_rules().values()
        if options.wants(rule.id) and order.index(rule.level) <= order.index(level)
    ]
    checks = by_rule([*read_checks(BROKER), *read_checks(CLIENT)])
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
        found = [check.id for check in checks.get(rule.id, [])]
        reached = ", ".join(found) if only and found else _reached(rule, len(found))
        table.add_row(rule.id, rule.level.value, rule.since, reached, escape(rule.text))
    screen().print(table)


def _reached(rule: Rule, checks: int) -> str:
    if rule.honesty is Honesty.UNTESTED:
        return "untested"
    if not checks and rule.area == "INV":
        return "histories"
    if rule.area == APP_AREA:
        return "programs"
    return f"{checks} check{'' if checks == 1 else 's'}"


@takes()
def definitions(
    *,
    old: Annotated[str, Option("A release of Kafka, such as 4.3.1.", argument=True)],
    new: Annotated[str, Option("Another release, such as 4.4.0.", argument=True)],
    everything: Annotated[bool, Option("Also what is not about share groups.", "--all")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two releases' message definitions and configs; name the rules about what changed."""
    from shareproof.definitions import compare

    work = compare(old, new, load_rules(), everything=everything)
    if as_json:
        plain = [{**asdict(one.change), "rules": list(one.rules)} for one in work]
        typer.echo(json.dumps(plain, indent=1, ensure_ascii=False))
        return
    for definition, found in groupby(work, key=lambda one: one.change.definition):
        typer.echo(definition)
        for one in found:
            typer.echo(f"  {one.change.short}")
            if one.change.what != "comment":
                typer.echo(f"      {' '.join(one.rules) or 'no rule names it'}")
    if not work:
        typer.echo(f"nothing about share groups changed from {old} to {new}")
        return
    touched = {rule for one in work for rule in one.rules}
    silent = sum(not one.rules for one in work if one.change.what != "comment")
    head = f"{len(work)} changed from {old} to {new}; rules about that: {len(touched)}"
    typer.echo(f"{head}; changed, and named by no rule: {silent}")
