"""Runs a program in front of a cluster, scenario by scenario, and makes the report of it."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from fixtures.interface.capability import Capability
from fixtures.interface.credentials import security_of
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import innermost
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.targets.asked import asked_target
from reports import writing
from reports.building import Context, build, timing_of
from reports.console import line
from reports.results import Results, Run, Target, suite_version
from reports.verdicts import exit_code, settle
from spec.profile import Profile
from spec.requirement import Requirement, load_requirements
from spec.verdict import Observation, Verdict
from suites.app.load import Template
from suites.app.program import ProgramSpec
from suites.app.rules import JUDGES
from suites.app.run import AppRun, transcript_of
from suites.app.scenarios import SCENARIOS, Scenario
from suites.options import RunOptions, checked, load_ledger, words

if TYPE_CHECKING:
    from shareproof.commands.application import AppOptions

LONGEST = 60
"""Characters of a program's name that is made of its command."""

STRICT = "strict"
"""The ledger that knows no failures."""


def run(asked: AppOptions, console: Console) -> Results:
    """Try a program, write the report, and return the results.

    Raises:
        UsageFault: the options make no sense.
        EnvironmentFault: the target or the program does not start.
    """
    rules = _rules(asked)
    scenarios = _scenarios(asked, [*rules])
    ledger = _about(load_ledger(str(asked.profile) or STRICT))
    spec = _trial(asked)
    out = asked.out.absolute()
    started, began = datetime.now(UTC), time.monotonic()
    line(console, f"seed {asked.seed}, {shlex.join(asked.command or ())}, facing {asked.target}")
    target = open_target(
        asked_target(asked.target, str(asked.command_config or "")),
        TargetOptions(brokers=asked.brokers, security=security_of(str(asked.command_config or ""))),
    )
    for name in ("programs", "transcripts"):
        shutil.rmtree(out / name, ignore_errors=True)
    target.start()
    try:
        ready, info = time.monotonic(), target.info
        run = AppRun(
            info=info,
            spec=spec,
            seed=asked.seed,
            out=out,
            tell=lambda text: line(console, text),
        )
        found = asyncio.run(run.play(scenarios, [*rules]))
    finally:
        target.stop()
    times = (began, ready, time.monotonic())
    results = _document(asked, rules, found, ledger, info, started=started, times=times)
    writing.publish(out, results)
    return results


def _rules(asked: AppOptions) -> dict[str, Requirement]:
    options = checked(RunOptions(only=words(asked.only), out=str(asked.out.absolute())))
    known = load_requirements()
    found = {rule: known[rule] for rule in sorted(JUDGES) if options.wants(rule)}
    if not found:
        raise UsageFault(f"--only {','.join(asked.only or ())}: no program is judged by that.")
    return found


def _scenarios(asked: AppOptions, rules: Sequence[str]) -> list[Scenario]:
    known = SCENARIOS
    named = [name for text in asked.scenario or () for name in text.lower().split(",")]
    if strange := [name for name in named if name not in known]:
        raise UsageFault(f"--scenario {strange[0]}: there are {', '.join(known)}.")
    if named:
        return [known[name] for name in dict.fromkeys(named)]
    return [one for one in known.values() if not asked.only or set(rules) & set(one.rules)]


def _trial(asked: AppOptions) -> ProgramSpec:
    command = tuple(asked.command or ())
    if not shutil.which(command[0]):
        raise UsageFault(f"{command[0]}: there is no such program.")
    for option, text in (("--record", asked.record), ("--poison", asked.poison)):
        if "{key}" not in text:
            raise UsageFault(f"{option} {text}: it has to have {{key}} in it.")
    return ProgramSpec(
        command=command,
        records=asked.records,
        template=Template(record=asked.record, poison=asked.poison, every=asked.poison_every),
        attempts=asked.attempts,
        patience=asked.patience,
        grace=asked.grace,
        starting=asked.starting,
    )


def _about(profile: Profile) -> Profile:
    """Leave out what a ledger says of rules that no program is judged by."""
    kept = tuple(entry for entry in profile.expected if entry.requirement in JUDGES)
    return Profile(name=profile.name, title=profile.title, absent=(), expected=kept)


def _document(
    asked: AppOptions,
    rules: dict[str, Requirement],
    found: Sequence[Observation],
    ledger: Profile,
    info: ClusterInfo,
    *,
    started: datetime,
    times: tuple[float, float, float],
) -> Results:
    began, ready, ended = times
    partial = bool(asked.scenario)
    verdicts = settle(
        rules,
        found,
        profile=ledger,
        version=info.version,
        today=started.date(),
        unfinished=rules if partial else (),
    )
    timing = timing_of(
        total=ended - began,
        cluster_start=ready - began,
        before_checks=ready - began,
        checks=ended - ready,
        by_check={one.check: one.seconds for one in found},
    )
    facts = _facts(asked, info, started, timing.total, exit_code(verdicts, (), asked.level))
    out = asked.out.absolute()
    troubled = {one.check for one in found if one.verdict in {Verdict.FAIL, Verdict.UNKNOWN}}
    return build(
        facts,
        Target(
            name=f"{called(asked)}, facing {info.name}",
            version=info.version,
            profile=ledger.name,
            brokers=len(info.bootstrap),
            properties=info.properties,
        ),
        verdicts,
        Context(
            reproduce=lambda rule: reproduce(asked, rule),
            transcript=lambda check, _first: (
                _existing(out, transcript_of(check)) if check in troubled else ""
            ),
        ),
        timing=timing,
    )


def _facts(
    asked: AppOptions, info: ClusterInfo, started: datetime, seconds: float, code: int
) -> Run:
    return Run(
        started=started.isoformat(timespec="seconds"),
        seconds=seconds,
        seed=asked.seed,
        command=tuple(sys.argv),
        exit_code=code,
        partial=False,
        errors=(),
        notices=info.notices,
        level=asked.level,
        only=words(asked.only),
        fast=False,
        versions={"shareproof": suite_version()},
        canary=None,
    )


def called(asked: AppOptions) -> str:
    """Return what the program is called: the name that was given, or its command without paths."""
    plain = (word.rpartition("/")[2] for word in asked.command or ())
    return asked.name or shorten(" ".join(plain), LONGEST, placeholder=" …")


def _existing(out: Path, name: str) -> str:
    return name if (out / name).is_file() else ""


def reproduce(asked: AppOptions, rule: str) -> str:
    """Return the command that judges one rule again as it was judged here."""
    said = [
        "shareproof",
        "app",
        "--target",
        asked.target,
        "--only",
        rule,
        "--seed",
        str(asked.seed),
    ]
    ours = Capability.OWN_CLUSTER in innermost(asked.target).offers
    for name in ("brokers", "records", "record", "poison", "poison_every", "attempts", "patience"):
        value, usual = getattr(asked, name), getattr(type(asked), name)
        if value != usual and (ours or name != "brokers"):
            said += [f"--{name.replace('_', '-')}", str(value)]
    for scenario in asked.scenario or ():
        said += ["--scenario", scenario]
    if asked.command_config:
        said += ["--command-config", str(asked.command_config)]
    return shlex.join([*said, "--", *(asked.command or ())])


def list_scenarios() -> list[dict[str, object]]:
    """Return every scenario, for machines."""
    return [
        {"scenario": one.name, "sentence": one.sentence, "rules": list(one.rules)}
        for one in SCENARIOS.values()
    ]


def show_scenarios(console: Console) -> None:
    """Print every scenario."""
    table = Table("scenario", "what happens", "rules", box=None)
    for one in SCENARIOS.values():
        rules = " ".join(rule.removeprefix("FRM-") for rule in one.rules)
        table.add_row(one.name, one.sentence, rules)
    console.print(table)
