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
from fixtures.targets.arguments import resolve_target
from reports import html
from reports.console import line
from reports.document import RunRecord, about, document, timing_of
from reports.results import Results, Target
from reports.verdicts import INTERRUPTED, OK
from spec.rule import load_rules
from spec.verdict import Verdict
from suites.app.rules import JUDGES
from suites.app.run import AppRun, transcript_of
from suites.app.scenarios import SCENARIOS
from suites.options import AppOptions, RunOptions, checked, named_ledger, typed

LONGEST = 60  # characters of a program's name that is made of its command
STRICT = "strict"  # the ledger that knows no failures


def run(options: AppOptions, console: Console) -> Results:
    out = options.out.absolute()
    run_options = checked(RunOptions(only=options.only, out=str(out)))
    live = load_rules()
    rules = {rule: live[rule] for rule in sorted(JUDGES) if run_options.wants(rule)}
    if not rules:
        raise UsageFault(f"--only {','.join(options.only)}: no program is judged by that.")
    known = SCENARIOS
    if strange := [name for name in options.scenario if name not in known]:
        raise UsageFault(f"--scenario {strange[0]}: there are {', '.join(known)}.")
    scenarios = [known[name] for name in options.scenario] or [
        one for one in known.values() if not options.only or set(rules) & set(one.rules)
    ]
    ledger = about(named_ledger(options.ledger or STRICT), JUDGES)
    _check_program(options)
    began_at, began = datetime.now(UTC), time.monotonic()
    command = shlex.join(options.command or ())
    line(console, f"seed {options.seed}, {command}, facing {options.target}")
    target = open_target(
        resolve_target(options.target, options.command_config),
        TargetOptions(brokers=options.brokers, security=security_of(options.command_config)),
    )
    for name in ("programs", "transcripts"):
        shutil.rmtree(out / name, ignore_errors=True)
    with started(target):
        ready, info = time.monotonic(), target.info
        log = functools.partial(line, console)
        program = AppRun(info=info, spec=options, seed=options.seed, out=out, log=log)
        found = asyncio.run(program.play(scenarios, [*rules]))
    ended, interrupted = time.monotonic(), program.interrupted
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
                name=f"{called(options)}, facing {info.name}",
                version=info.version,
                ledger=ledger.name,
                brokers=len(info.bootstrap),
                properties=info.properties,
            ),
            unfinished=rules if options.scenario or interrupted else (),
            partial=interrupted,
            ended=INTERRUPTED if interrupted else OK,
            seed=options.seed,
            level=options.level,
            only=options.only,
            started=began_at,
            timing=timing_of(
                total=ended - began,
                cluster_start=ready - began,
                checks=ended - ready,
                by_check={one.check: one.seconds for one in found},
            ),
            notices=info.notices,
            reproduce=lambda rule: reproduce(options, rule),
            transcript=transcript,
        )
    )
    html.publish(out, results)
    return results


def _check_program(options: AppOptions) -> None:
    command = options.command or [""]
    if not shutil.which(command[0]):
        raise UsageFault(f"{command[0]}: there is no such program.")
    for option, text in (("--record", options.record), ("--poison", options.poison)):
        if "{key}" not in text:
            raise UsageFault(f"{option} {text}: it has to have {{key}} in it.")


def called(options: AppOptions) -> str:
    plain = (word.rpartition("/")[2] for word in options.command or ())
    return options.name or shorten(" ".join(plain), LONGEST, placeholder=" …")


def reproduce(options: AppOptions, rule: str) -> str:
    words = ["shareproof", "app", "--target", options.target, "--only", rule]
    words += ["--seed", str(options.seed)]
    if Capability.OWN_CLUSTER in innermost(options.target).offers:
        words += typed(options, "brokers")
    words += typed(options, "records record poison poison_every attempts patience")
    words += typed(options, "grace starting scenario ledger command_config")
    return shlex.join([*words, "--", *(options.command or ())])


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
