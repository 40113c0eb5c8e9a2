"""The command line: thin, and the same exit codes everywhere.

0 all required rules hold or fail as the ledger says, 1 a rule does not hold, 2 wrong usage,
3 harness or environment, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table

from fixtures.clients.shipped import SHIPPED
from fixtures.targets import DEFAULT_TARGET, UsageFault, open_target
from fixtures.targets.doctor import examine
from fixtures.targets.names import FORMS
from reports import html
from reports.console import show
from reports.results import suite_version
from reports.site.archive import Run as ArchivedRun
from reports.site.archive import find
from reports.site.build import build as build_site
from reports.verdicts import FAULT, USAGE
from shareproof import HOUSE, histories
from shareproof.detection import self_test
from shareproof.run import run_checks, show_end
from spec.requirement import Honesty, Level, Requirement, SpecError, load_requirements
from spec.verdict import EnvironmentFault
from suites.inventory import CLIENT, by_rule, read_checks
from suites.options import Client, RunOptions, checked, new_seed, words

INTERRUPTED = 130

app = typer.Typer(
    name="shareproof",
    help="Certify implementations of Kafka share groups (KIP-932), rule by rule.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)

Target = Annotated[str, typer.Option(help=f"{FORMS}.")]
Brokers = Annotated[int, typer.Option(help="Brokers to start: 1 or 3.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Area (ACK) or rule (ACK-07); repeatable, or a,b,c."),
]
Seed = Annotated[int | None, typer.Option(help="Repeat the choices of an earlier run.")]
LowestLevel = Annotated[
    Level, typer.Option(case_sensitive=False, help="Rules from MUST down to this must hold.")
]
Out = Annotated[Path, typer.Option(help="Directory for the reports.")]
Fast = Annotated[bool, typer.Option("--fast", help="Only the fast subset.")]
Drafts = Annotated[bool, typer.Option("--drafts", help="Also checks that are not trusted yet.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-n", min=0, help="Checks at the same time.")
]
Ledger = Annotated[str, typer.Option(help="Ledger: a shipped name, or a path to a .toml file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


@app.command()
def broker(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    only: Only = None,
    level: LowestLevel = Level.SHOULD,
    seed: Seed = None,
    out: Out = Path("out"),
    fast: Fast = False,
    drafts: Drafts = False,
    workers: Workers = None,
    expect_version: Annotated[
        str, typer.Option(help="Judge an external target as this release.")
    ] = "",
    profile: Ledger = "",
    as_json: AsJson = False,
) -> None:
    """Check a broker against the rules and write a report."""
    options = RunOptions(
        target=target,
        brokers=brokers,
        only=words(only or []),
        level=level,
        seed=new_seed() if seed is None else seed,
        out=str(out.absolute()),
        fast=fast,
        drafts=drafts,
        expect_version=expect_version,
        profile=str(Path(profile).absolute()) if profile.endswith(".toml") else profile,
    )
    console = Console(stderr=True)
    console.print(f"seed {options.seed}, target {target}", highlight=False)
    _certify(options, workers, console, as_json=as_json)


@app.command()
def client(
    *,
    client: Annotated[
        str,
        typer.Option(help=f"An adapter of ours: {', '.join(SHIPPED)}; or NAME:VERSION."),
    ] = "",
    adapter: Annotated[
        str, typer.Option(help="The command of your own adapter; see docs/adapter-protocol.md.")
    ] = "",
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 1,
    only: Only = None,
    level: LowestLevel = Level.SHOULD,
    seed: Seed = None,
    out: Out = Path("out"),
    fast: Fast = False,
    drafts: Drafts = False,
    workers: Workers = None,
    profile: Ledger = "",
    as_json: AsJson = False,
) -> None:
    """Check a client library against the rules and write its certificate."""
    if bool(client) is bool(adapter):
        raise UsageFault("Give --client NAME or --adapter COMMAND: one of them.")
    asked = ("--client", client) if client else ("--adapter", adapter)
    options = RunOptions(
        target=target,
        brokers=brokers,
        only=words(only or []),
        level=level,
        seed=new_seed() if seed is None else seed,
        out=str(out.absolute()),
        fast=fast,
        drafts=drafts,
        profile=str(Path(profile).absolute()) if profile.endswith(".toml") else profile,
        client=Client.unmet(*asked),
    )
    console = Console(stderr=True)
    console.print(f"seed {options.seed}, client {asked[1]}, facing {target}", highlight=False)
    _certify(options, workers, console, as_json=as_json)


def _certify(
    options: RunOptions, workers: int | None, console: Console, *, as_json: bool
) -> NoReturn:
    ended = run_checks(options, workers, console)
    if as_json and ended.document:
        typer.echo(json.dumps(ended.document, indent=1, ensure_ascii=False))
    else:
        show_end(ended, Console(stderr=as_json))
        console.print(f"reports in {options.out}", highlight=False, soft_wrap=True)
    raise typer.Exit(ended.code)


@app.command()
def load(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    seconds: Annotated[float, typer.Option(min=1, help="How long to produce.")] = 20.0,
    rate: Annotated[
        float, typer.Option(min=0, help="Records a second; 0 for as many as possible.")
    ] = 4000.0,
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Directory for the history.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Put a mixed load on a target, without faults, and record its history."""
    chosen = new_seed() if seed is None else seed
    console = Console(stderr=True)
    console.print(f"seed {chosen}, target {target}", highlight=False)
    done = histories.load(
        target=target,
        brokers=brokers,
        seconds=seconds,
        rate=rate,
        seed=chosen,
        out=out.absolute(),
        console=console,
    )
    if as_json:
        typer.echo(json.dumps(done, indent=1))
    else:
        for name, value in done.items():
            typer.echo(f"{name}: {value}")


@app.command()
def analyse(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs that left a history.")],
    *,
    control: Annotated[
        Path | None, typer.Option(help="A run without faults, to compare broken rules with.")
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[N] or spark://HOST:PORT.")
    ] = "local[*]",
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver and executors.")] = "2g",
    level: LowestLevel = Level.SHOULD,
    only: Only = None,
    out: Annotated[Path | None, typer.Option(help="Directory for results.json.")] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Verdicts and witnesses only, no statistics."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge recorded histories by the invariants and write the verdicts."""
    console = Console(stderr=True)
    where = (out or runs[0] / "analysis").absolute()
    document = histories.analyse(
        runs,
        control=control,
        master=master,
        memory=memory,
        level=level,
        only=words(only or []),
        out=where,
        brief=brief,
        console=console,
    )
    if as_json:
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        show(document, Console())
        console.print(f"results in {where}", highlight=False, soft_wrap=True)
    raise typer.Exit(int(document["run"]["exit_code"]))


@app.command(name="chaos")
def break_things(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    faults: Annotated[
        list[str] | None, typer.Option(help="Kinds of fault; repeatable, or a,b,c. All if none.")
    ] = None,
    no_faults: Annotated[bool, typer.Option("--no-faults", help="A control run.")] = False,
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="Say what can be broken, and end.")
    ] = False,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long to produce.")] = 2.0,
    schedule: Annotated[
        Path | None, typer.Option(help="Play the schedule.json of an earlier run.")
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Play a scenario by its name, or all; repeatable.")
    ] = None,
    list_scenarios: Annotated[
        bool, typer.Option("--list-scenarios", help="Say which scenarios there are, and end.")
    ] = False,
    proxies: Annotated[
        str,
        typer.Option(
            help="What stands in front of the brokers: ours or toxiproxy. In containers toxiproxy, "
            "unless a fault is about single frames.",
        ),
    ] = "",
    allow_faults: Annotated[
        bool, typer.Option("--allow-faults", help="Break a cluster that is not ours, by --hooks.")
    ] = False,
    hooks: Annotated[
        Path | None,
        typer.Option(help="TOML file of commands that break and mend such a broker."),
    ] = None,
    rejudge: Annotated[
        list[Path] | None, typer.Option(help="Judge an earlier run again; repeatable.")
    ] = None,
    judged: Annotated[
        bool, typer.Option("--judge/--no-judge", help="Whether Spark judges at the end.")
    ] = True,
    rate: Annotated[float, typer.Option(min=1, help="Records a second.")] = 1000.0,
    level: LowestLevel = Level.SHOULD,
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Directory for history and reports.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Break a cluster under load on purpose, heal it, and judge the whole history."""
    histories.require("pyarrow", "numpy", "pyspark")
    from shareproof import chaos  # noqa: PLC0415 - it is built of what the extra brings

    if list_faults or list_scenarios:
        listed = chaos.list_faults() if list_faults else chaos.list_scenarios()
        show_them = chaos.show_faults if list_faults else chaos.show_scenarios
        if as_json:
            typer.echo(json.dumps(listed, indent=1))
        else:
            show_them(Console())
        raise typer.Exit
    console = Console(stderr=True)
    if rejudge:
        document = chaos.rejudge(tuple(rejudge), out.absolute(), level, console)
    else:
        asked = chaos.Asked(
            target=target,
            brokers=brokers,
            faults=tuple(word.lower() for word in words(faults or [])),
            no_faults=no_faults,
            minutes=minutes,
            seed=new_seed() if seed is None else seed,
            schedule=schedule,
            proxies=proxies,
            allowed=allow_faults,
            hooks=hooks,
            scenarios=tuple(word.lower() for word in words(scenario or [])),
            rate=rate,
            level=level,
            out=out.absolute(),
            judged=judged,
        )
        console.print(f"seed {asked.seed}, target {target}", highlight=False)
        played = chaos.run(asked, console)
        if played is None:
            console.print(f"not judged: shareproof chaos --rejudge {out}", highlight=False)
            raise typer.Exit
        document = played
    if as_json:
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        chaos.show_struck(document, Console())
        show(document, Console())
        console.print(f"reports in {out}", highlight=False, soft_wrap=True)
    raise typer.Exit(int(document["run"]["exit_code"]))


@app.command()
def up(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 1,
    prop: Annotated[
        list[str] | None, typer.Option("--property", help="Broker property KEY=VALUE; repeat.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a cluster, print its bootstrap servers, and keep it until Ctrl-C."""
    cluster = open_target(target, brokers=brokers, properties=_properties(prop or []))
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        cluster.start()
        info = cluster.info
        typer.echo(info.to_json() if as_json else ",".join(info.bootstrap))
        sys.stdout.flush()
        ended.wait()
    finally:
        cluster.stop()


@app.command()
def doctor(*, as_json: AsJson = False) -> None:
    """Say what this machine lacks for a run, and how to get it."""
    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        table = Table(box=None, show_header=False)
        for finding in findings:
            lacking = "[bold red]no[/]" if finding.needed else "[yellow]no[/]"
            mark = "[green]ok[/]" if finding.ok else lacking
            table.add_row(mark, finding.name, finding.detail)
            if not finding.ok and finding.remedy:
                table.add_row("", "", f"[bold]{finding.remedy}[/]")
        Console().print(table)
    raise typer.Exit(0 if all(each.ok or not each.needed for each in findings) else FAULT)


@app.command(name="list")
def list_rules(
    *,
    only: Only = None,
    level: Annotated[
        Level, typer.Option(case_sensitive=False, help="From MUST down to this level.")
    ] = Level.MAY,
    as_json: AsJson = False,
) -> None:
    """List the rules, and which checks reach each."""
    options = checked(RunOptions(only=words(only or []), level=level))
    order = list(Level)
    rules = [
        rule
        for rule in load_requirements().values()
        if options.wants(rule.id) and order.index(rule.level) <= order.index(level)
    ]
    checks = by_rule([*read_checks(HOUSE / "suites" / "broker"), *read_checks(CLIENT)])
    if as_json:
        plain = [
            {**asdict(rule), "area": rule.area, "checks": [c.id for c in checks.get(rule.id, [])]}
            for rule in rules
        ]
        typer.echo(json.dumps(plain, indent=1, ensure_ascii=False))
        return
    table = Table("rule", "level", "since", "reached", "text", box=None)
    for rule in rules:
        reached = _reached(rule, len(checks.get(rule.id, [])))
        table.add_row(rule.id, rule.level.value, rule.since, reached, rule.text)
    Console().print(table)


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Finished runs: their directories, or ones above them.")
    ],
    *,
    site: Annotated[
        Path | None,
        typer.Option(help="Build a static site over all the runs in this directory."),
    ] = None,
) -> None:
    """Render the page of finished runs again, or a site: who keeps which rule, and what changed."""
    try:
        archive = find(runs)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    for problem in archive.unreadable:
        typer.echo(f"left out: {problem}", err=True)
    if site is not None:
        typer.echo(build_site(archive, site))
        return
    for run in archive.runs:
        told = archive.told(run, partial(_page_of, run.folder))
        typer.echo(html.write(run.folder, run.document, told=told))


def _page_of(seen_from: Path, run: ArchivedRun) -> str:
    """Return where the page of a run is, seen from the page of another."""
    page = os.path.relpath(run.folder / "report.html", seen_from)
    return quote(Path(page).as_posix())


app.command(name="self")(self_test)


@app.callback()
def _shareproof(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Certify implementations of Kafka share groups (KIP-932), rule by rule."""
    if version:
        typer.echo(f"shareproof {suite_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


def _reached(rule: Requirement, checks: int) -> str:
    if rule.honesty is Honesty.UNTESTED:
        return "untested"
    if not checks and rule.area == "INV":
        return "histories"
    return f"{checks} check{'' if checks == 1 else 's'}"


def _properties(given: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise UsageFault(f"--property {key}: give KEY=VALUE.")
    return {key: value for key, _, value in pairs}


def _end(code: int, sentence: str) -> NoReturn:
    print(f"shareproof: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def main() -> NoReturn:
    """Run the command line; every failure is one sentence on standard error and an exit code."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        _end(USAGE, str(getattr(error, "format_message", error.__str__)()))
    except (UsageFault, SpecError) as fault:
        _end(USAGE, str(fault))
    except EnvironmentFault as fault:
        _end(FAULT, str(fault))
    except (typer.Abort, KeyboardInterrupt):
        _end(INTERRUPTED, "interrupted")
    raise SystemExit(code or 0)
