"""``definitions``: what changed between two releases of Kafka, and which rules name it."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from typing import Annotated

import typer

from shareproof.commands.options import AsJson


def definitions(
    old: Annotated[str, typer.Argument(help="A release of Kafka, such as 4.3.1.")],
    new: Annotated[str, typer.Argument(help="Another release, such as 4.4.0.")],
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what is not about share groups.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two releases' message definitions and configs; name the rules about what changed."""
    from shareproof.definitions import compare
    from spec.requirement import load_requirements

    work = compare(old, new, load_requirements(), everything=everything)
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
    typer.echo(
        f"{len(work)} changed from {old} to {new}; rules about that: {len(touched)}; "
        f"changed, and named by no rule: {silent}"
    )
