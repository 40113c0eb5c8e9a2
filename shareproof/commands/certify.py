"""What runs checks, cases and scenarios: of brokers, of clients, of any program, of the model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from fixtures.targets import UsageFault
from shareproof.commands import alone, end
from shareproof.options import takes
from suites.options import (
    FILE,
    LISTED,
    Adapter,
    AppOptions,
    AsJson,
    Brokers,
    Client,
    ModelOptions,
    Option,
    RunOptions,
    ShippedClient,
    Target,
    checked,
    repeated,
    resolved,
    split,
)
from suites.sweep import Named

C = TypeVar("C", bound=Named)

if TYPE_CHECKING:
    from rich.console import Console

    from reports.results import Results
    from suites.client.settings import Trial
    from suites.client.sweep.working import AnyCase

Workers = Annotated[
    int | None, Option("Number of checks run in parallel.", "--workers", "-n", min=0, max=100)
]
_SHARED = (
    "target brokers only level seed out fast drafts strict_reach workers ledger broker_option "
    "broker_jvm command_config prefix as_json"
)


@takes(RunOptions, f"tier expect_version topics second_config hooks {_SHARED}", out=Path("out"))
def broker(options: RunOptions, *, workers: Workers = None, as_json: AsJson = False) -> None:
    """Test a broker against the rules and write a report."""
    _certify(options, workers, as_json=as_json)


@takes(RunOptions, f"client adapter {_SHARED}", out=Path("out"), brokers=1)
def client(
    options: RunOptions,
    *,
    client: ShippedClient = "",
    adapter: Adapter = "",
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Test a client library against the rules and write its certificate."""
    options = replace(options, client=_tested(client, adapter))
    _certify(options, workers, as_json=as_json)


@takes(
    RunOptions,
    "numbers client target brokers seed out workers ledger broker_option broker_jvm "
    "command_config prefix as_json",
    out=Path("out"),
)
def finding(
    options: RunOptions,
    *,
    numbers: Annotated[
        tuple[str, ...],
        Option(
            "Findings by their numbers, such as 051; all if none.",
            kind=LISTED,
            parse=split,
            argument=True,
        ),
    ] = (),
    client: ShippedClient = "",
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Play findings again, and say which are still there: by rules, sweeps and programs."""
    from textwrap import shorten

    from fixtures.targets.kafka import LEDGER
    from reports.console import screen
    from reports.verdicts import BROKEN, OK
    from shareproof.findings import fates
    from shareproof.findings.programs import decided
    from shareproof.runner.options import introduced
    from shareproof.sweep.broker import cases_of
    from shareproof.sweep.broker import run as sweep_of
    from spec.plain import text_of
    from suites.sweep import chosen

    if client:
        options = introduced(replace(options, client=_tested(client, "")))
    findings = fates.chosen(options.ledger_for(LEDGER), numbers)
    results, out = None, Path(options.out)
    swept: dict[str, Results] = {}
    with alone(out):
        checked(options)
        if rules := tuple(dict.fromkeys(rule for each in findings for rule in each.rules)):
            results = _results(replace(options, only=rules), workers, as_json=as_json)
        for one in findings:  # each apart: some lines of a broker's log name no case
            if one.cases:
                into = checked(replace(options, brokers=1, out=str(out / "sweep" / one.number)))
                cases = chosen(cases_of(into.version), one.cases, mark=".")
                swept[one.page] = sweep_of(into, cases, one.cases, screen(stderr=True))
        played = fates.fates(findings, results, swept)
        if not client:
            played = tuple(decided(each, options.target, out) for each in played)
        text = text_of(played)
        (out / fates.FILE).write_text(text, encoding="utf-8")
    if as_json:
        typer.echo(text, nl=False)
    for each in () if as_json else played:
        typer.echo(f"{each.finding}  {each.fate:22}{shorten(each.why, 250)}")
    there = any(each.fate in (fates.Fate.THERE, fates.Fate.OTHERWISE) for each in played)
    raise typer.Exit(BROKEN if there else OK)


def _tested(client: str, adapter: str) -> Client:
    if tested := Client.from_cli(client=client, adapter=adapter):
        return tested
    raise UsageFault("Give --client NAME or --adapter COMMAND: one of them.")


def _certify(options: RunOptions, workers: int | None, *, as_json: bool) -> NoReturn:
    with alone(options.out):
        end(_results(options, workers, as_json=as_json), options.out, as_json=as_json)


def _results(options: RunOptions, workers: int | None, *, as_json: bool) -> Results:
    from reports.console import line, screen
    from shareproof.runner.run import run_checks

    console = screen(stderr=True)
    ended = run_checks(options, workers, console)
    if ended.results:
        return ended.results
    line(screen(stderr=as_json), f"The run produced no results; see {ended.log}.")
    line(console, f"reports in {options.out}")
    raise typer.Exit(ended.code)


@takes(
    RunOptions,
    "client adapter target only list_cases hostile_brokers settings sequences minutes replay level "
    "seed out ledger brokers broker_option broker_jvm command_config prefix as_json",
    out=Path("out"),
    target="",
    brokers=1,
)
def sweep(
    options: RunOptions,
    *,
    client: ShippedClient = "",
    adapter: Adapter = "",
    only: Annotated[
        tuple[str, ...],
        Option(
            "Cases by API (Metadata), setting or name (ShareFetch/*/9999/*); repeatable.",
            kind=LISTED,
            parse=split,
        ),
    ] = (),
    list_cases: Annotated[bool, Option("List the cases, and exit.")] = False,
    hostile_brokers: Annotated[
        int,
        Option(
            "Number of hostile brokers, each in a process of its own, with many cases at a time.",
            "--hostile-brokers",
            "-n",
            min=1,
        ),
    ] = 2,
    settings: Annotated[
        bool, Option("Try the client's settings instead: each takes effect or is refused by name.")
    ] = False,
    sequences: Annotated[
        bool, Option("Draw sequences of calls instead, and shrink those that break an invariant.")
    ] = False,
    minutes: Annotated[float, Option("How long to draw sequences.", min=0.1)] = 10.0,
    replay: Annotated[
        Path | None, Option("Play a script that --sequences wrote.", kind=FILE)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send a client every error code, or a broker every odd request, and judge what it does then.

    With --client or --adapter a client is judged, with --target a broker.
    """
    from reports.console import line, screen

    console = screen(stderr=True)
    if options.target and not client and not adapter:
        if settings or sequences or replay:
            raise UsageFault("--settings, --sequences and --replay are for clients.")
        _sweep_broker(options, only, console, list_cases=list_cases, as_json=as_json)
    if options.target:
        raise UsageFault("--target is for the sweep of a broker: leave --client and --adapter out.")
    from shareproof.runner.options import introduced
    from shareproof.sweep.run import ERRORS, SETTINGS, run
    from suites.client.sweep.cases import all_cases
    from suites.sweep import chosen

    cases: Sequence[AnyCase] = []
    if not settings:
        cases = _listed(chosen(all_cases(), only), only, list_cases)
    if not client and not adapter:
        raise UsageFault("Give --client or --adapter for a client, or --target for a broker.")
    if settings and (sequences or replay):
        raise UsageFault("--settings excludes --sequences and --replay: give one of them.")
    tested = _tested(client, adapter)
    options = checked(replace(options, target="reference", client=tested))
    if sequences or replay:
        # Hypothesis, which pytest wants to import itself where checks are run, too.
        from shareproof.sweep import sequences as scripts

        line(console, f"seed {options.seed}, client {tested.option[1]}")
        if replay:
            raise typer.Exit(scripts.replay(options, replay, console))
        with alone(options.out):
            raise typer.Exit(scripts.search(options, minutes, console))
    options = introduced(options)
    if settings:
        cases = _listed(chosen(_trials(options), only, mark="="), only, list_cases)
    subject = SETTINGS if settings else ERRORS
    line(console, f"seed {options.seed}, client {client or adapter}, {len(cases)} cases")
    with alone(options.out):
        results = run(options, cases, only, hostile_brokers, console, subject=subject)
    end(results, options.out, as_json=as_json)


def _sweep_broker(
    options: RunOptions, only: tuple[str, ...], console: Console, *, list_cases: bool, as_json: bool
) -> NoReturn:
    from reports.console import line
    from shareproof.sweep.broker import cases_of, run
    from suites.sweep import chosen

    cases = _listed(chosen(cases_of(options.version), only, mark="."), only, list_cases)
    options = checked(options)
    line(console, f"seed {options.seed}, {options.subject}, {len(cases)} cases")
    with alone(options.out):
        end(run(options, cases, only, console), options.out, as_json=as_json)


def _trials(options: RunOptions) -> list[Trial]:
    from spec.settings import settings_of
    from suites.client.settings import trials

    assert options.client is not None
    name, version = options.client.name, options.client.version
    found = settings_of(name, version)
    if found is None:
        raise UsageFault(f"There is no table of the settings of {name}: spec/settings/{name}.toml.")
    return trials(found)


def _listed(cases: Sequence[C], only: Sequence[str], list_cases: bool) -> Sequence[C]:
    if not cases:
        raise UsageFault(f"No case matches {', '.join(only)}; --list-cases prints them.")
    if list_cases:
        for case in cases:
            typer.echo(case.name)
        raise typer.Exit
    return cases


@takes(AppOptions)
def try_app(options: AppOptions) -> None:
    """Run your program against a cluster, inject faults, and judge it by the FRM rules."""
    from reports.console import screen
    from shareproof import app

    if options.list_them:
        if options.as_json:
            typer.echo(json.dumps(app.list_scenarios(), indent=1))
        else:
            app.show_scenarios(screen())
        raise typer.Exit
    if not options.command:
        raise UsageFault("Give the command of your program after --.")
    with alone(options.out):
        end(app.run(options, screen(stderr=True)), options.out, as_json=options.as_json)


@takes()
def hostile(
    *,
    script: Annotated[
        Path, Option("TOML file of steps; see docs/hostile-broker.md.", argument=True)
    ],
    program: Annotated[
        list[str], Option("The program and its arguments.", argument=True, metavar="-- PROGRAM...")
    ],
    target: Target = "reference",
    brokers: Brokers = 1,
    frames: Annotated[int, Option("Lines of frames to print.", min=0)] = 0,
    seconds: Annotated[float, Option("Time for the program.", min=1)] = 30.0,
    seed: Annotated[int, Option("Random seed.", min=0)] = 1,
) -> None:
    """Run a program in front of a broker that misbehaves by a script; print what it asked for.

    SHAREPROOF_BOOTSTRAP, SHAREPROOF_TOPIC and SHAREPROOF_GROUP tell the program where to consume.
    """
    import asyncio

    from fixtures.hostile.script import ScriptError
    from shareproof.hostile import play

    limits: Any = {"frames": frames, "seconds": seconds}
    if not shutil.which(program[0]):
        raise UsageFault(f"{program[0]}: there is no such program.")
    try:
        code = asyncio.run(play(script, program, on=target, brokers=brokers, seed=seed, **limits))
    except ScriptError as error:
        raise UsageFault(str(error)) from None
    raise typer.Exit(code)


@takes(ModelOptions)
def model(options: ModelOptions) -> None:
    """Play the model in lock-step with a target: random actions, each judged at once."""
    from suites.model.run import play

    raise typer.Exit(play(resolved(options)))


@takes()
def walk(
    *,
    clients: Annotated[
        tuple[str, ...],
        Option(
            "Shipped adapters, each NAME or NAME:VERSION. Default: all.",
            kind=LISTED,
            parse=repeated,
            argument=True,
            autocompletion="clients",
        ),
    ] = (),
    target: Target = "reference",
    record: Annotated[Path | None, Option("Directory of the recorded conversations.")] = None,
) -> None:
    """Send each request of the adapter protocol once to adapters; no rule is judged."""
    import asyncio

    from fixtures.adapters.versions import NEWEST
    from shareproof.walk import walk_all

    if record:
        record.mkdir(parents=True, exist_ok=True)
    raise typer.Exit(asyncio.run(walk_all(clients or list(NEWEST), target, record)))
