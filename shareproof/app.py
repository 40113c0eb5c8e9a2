"""``shareproof app``: runs a program in front of a cluster, scenario by scenario, and reports."""

import asyncio
import functools
import shlex
import shutil
import time
from datetime import UTC, datetime
from textwrap import shorten

from rich.console import Console
from rich.table import Table

from fixtures.interface.capability import Capability
from fixtures.interface.credentials import security_of
from fixtures.interface.names import innermost
from fixtures.targets import TargetOptions, UsageFault, open_target, started
from fixtures.targets.asked import asked_target
from reports import writing
from reports.building import RunRecord, about, document, timing_of
from reports.console import line
from reports.results import Results, Target
from shareproof.options import AppOptions
from spec.rule import load_rules
from spec.verdict import Verdict
from suites.app.load import Template
from suites.app.program import ProgramSpec
from suites.app.rules import JUDGES
from suites.app.run import AppRun, transcript_of
from suites.app.scenarios import SCENARIOS
from suites.options import RunOptions, checked, named_ledger, typed

LONGEST = 60  # characters of a program's name that is made of its command
STRICT = "strict"  # the ledger that knows no failures


def run(asked: AppOptions, console: Console) -> Results:
    out = asked.out.absolute()
    options = checked(RunOptions(only=asked.only, out=str(out)))
    live = load_rules()
    rules = {rule: live[rule] for rule in sorted(JUDGES) if options.wants(rule)}
    if not rules:
        raise UsageFault(f"--only {','.join(asked.only)}: no program is judged by that.")
    known = SCENARIOS
    if strange := [name for name in asked.scenario if name not in known]:
        raise UsageFault(f"--scenario {strange[0]}: there are {', '.join(known)}.")
    scenarios = [known[name] for name in asked.scenario] or [
        one for one in known.values() if not asked.only or set(rules) & set(one.rules)
    ]
    ledger = about(named_ledger(asked.ledger or STRICT), JUDGES)
    spec = _program(asked)
    began_at, began = datetime.now(UTC), time.monotonic()
    line(console, f"seed {asked.seed}, {shlex.join(asked.command or ())}, facing {asked.target}")
    target = open_target(
        asked_target(asked.target, asked.command_config),
        TargetOptions(brokers=asked.brokers, security=security_of(asked.command_config)),
    )
    for name in ("programs", "transcripts"):
        shutil.rmtree(out / name, ignore_errors=True)
    with started(target):
        ready, info = time.monotonic(), target.info
        tell = functools.partial(line, console)
        program = AppRun(info=info, spec=spec, seed=asked.seed, out=out, tell=tell)
        found = asyncio.run(program.play(scenarios, [*rules]))
    ended = time.monotonic()
    troubled = {one.check for one in found if one.verdict in {Verdict.FAIL, Verdict.UNKNOWN}}

    def transcript(check: str, _first: bool) -> str:
        name = transcript_of(check)
        return name if check in troubled and (out / name).is_file() else ""

    results = document(
        RunRecord(
            rules=rules,
            observations=found,
            ledger=ledger,
            target=Target(
                name=f"{called(asked)}, facing {info.name}",
                version=info.version,
                ledger=ledger.name,
                brokers=len(info.bootstrap),
                properties=info.properties,
            ),
            unfinished=rules if asked.scenario else (),
            seed=asked.seed,
            level=asked.level,
            only=asked.only,
            started=began_at,
            timing=timing_of(
                total=ended - began,
                cluster_start=ready - began,
                checks=ended - ready,
                by_check={one.check: one.seconds for one in found},
            ),
            notices=info.notices,
            reproduce=lambda rule: reproduce(asked, rule),
            transcript=transcript,
        )
    )
    writing.publish(out, results)
    return results


def _program(asked: AppOptions) -> ProgramSpec:
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


def called(asked: AppOptions) -> str:
    """Return what the program is called: the name that was given, or its command without paths."""
    plain = (word.rpartition("/")[2] for word in asked.command or ())
    return asked.name or shorten(" ".join(plain), LONGEST, placeholder=" …")


def reproduce(asked: AppOptions, rule: str) -> str:
    """Return the command that judges one rule again as it was judged here."""
    said = ["shareproof", "app", "--target", asked.target, "--only", rule]
    said += ["--seed", str(asked.seed)]
    if Capability.OWN_CLUSTER in innermost(asked.target).offers:
        said += typed(asked, "brokers")
    said += typed(asked, "records record poison poison_every attempts patience")
    said += typed(asked, "scenario command_config")
    return shlex.join([*said, "--", *(asked.command or ())])


def list_scenarios() -> list[dict[str, object]]:
    return [
        {"scenario": one.name, "sentence": one.sentence, "rules": list(one.rules)}
        for one in SCENARIOS.values()
    ]


def show_scenarios(console: Console) -> None:
    table = Table("scenario", "what happens", "rules", box=None)
    for one in SCENARIOS.values():
        rules = " ".join(rule.removeprefix("FRM-") for rule in one.rules)
        table.add_row(one.name, one.sentence, rules)
    console.print(table)
