"""``report``: pages of finished runs, a site over many, and what changed between two."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from fixtures.targets import UsageFault
from shareproof.commands import alone
from shareproof.options import place_of, takes
from spec.rule import APP_AREA, Honesty, Level, Rule, load_rules
from suites.options import AsJson, Only, Option, RunOptions, checked

if TYPE_CHECKING:
    from reports.site.archive import Archive, Run


@takes()
def report(
    *,
    runs: Annotated[
        list[Path],
        Option(
            "Directories of finished runs, or directories above them, or their URIs.",
            argument=True,
            parser=place_of,
        ),
    ],
    site: Annotated[
        Path | None, Option("Output directory of a static site over all the runs.", parser=place_of)
    ] = None,
    diff: Annotated[bool, Option("Print what changed from the first run to the second.")] = False,
    as_json: Annotated[
        bool, Option("With --diff: print JSON, and nothing else, on stdout.", "--json")
    ] = False,
) -> None:
    """Render the page of finished runs again, or a site that compares many runs."""
    from reports import html

    if as_json and not diff:
        raise UsageFault("--json is for --diff; a run's own results.json is JSON already.")
    if diff and site is not None:
        raise UsageFault("--diff prints and --site writes: give one of them.")
    if diff:
        _print_changes(runs, as_json=as_json)
        return
    archive = _find(runs)
    if site is not None:
        from fixtures.history.mirror import kept_at
        from reports.nights import find as find_nights
        from reports.site.build import build
        from shareproof.detected import detection

        nights = find_nights(*(path for path in runs if path.is_dir()))
        with alone(site), writing(), kept_at(site, partial(typer.echo, err=True)) as folder:
            first = build(archive, folder, detection(), nights=nights, watched=_watched)
        typer.echo(site / first.relative_to(folder).as_posix())
        return
    for run in archive.runs:
        changes = archive.told(run, partial(_page_of, run.folder))
        with writing():
            page = html.write_page(run.folder, run.results, told=changes)
        typer.echo(page)


@contextmanager
def writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageFault(f"{error.filename}: cannot be written: {error.strerror}.") from None


def _watched(runs: Sequence[Run]) -> Iterable[Run]:
    from rich.progress import track

    from reports.console import screen

    console = screen(stderr=True)
    hidden = not console.is_terminal
    return track(runs, "pages of runs", console=console, transient=True, disable=hidden)


def _find(paths: list[Path]) -> Archive:
    from fixtures.machine.storage import reached
    from reports.site.archive import find

    try:
        with reached(paths[0]):
            archive = find(paths)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    for problem in archive.left_out:
        typer.echo(f"left out: {problem}", err=True)
    return archive


def _print_changes(paths: list[Path], *, as_json: bool) -> None:
    from reports.site.archive import compare

    found = [run for path in paths for run in _find([path]).runs]
    if len(found) != 2:
        raise UsageFault(f"--diff compares two runs, and there are {len(found)}: give two.")
    old, new = found
    changes = compare(old.rules, new.rules)
    if as_json:
        sides = {"old": _named(old), "new": _named(new)}
        typer.echo(json.dumps({**sides, **changes.to_plain()}, indent=1, ensure_ascii=False))
        return
    typer.echo(f"{old.subject}, {old.started} -> {new.subject}, {new.started}")
    for line in changes.lines:
        typer.echo(line)


def _named(run: Run) -> dict[str, str]:
    return {"subject": run.subject, "started": run.started, "folder": str(run.folder)}


def _page_of(seen_from: Path, run: Run) -> str:
    page = os.path.relpath(str(run.folder / "report.html"), str(seen_from))
    return quote(Path(page).as_posix())


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
