"""``python -m tools.campaign``: break something on purpose, and see which checks notice."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from fixtures.adapters.model.mutants import MUTANTS as CLIENTS
from fixtures.interface.mutant import Mutant
from fixtures.mutants import MUTANTS as KAFKAS
from fixtures.proxies.alter import Alteration
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as BROKERS
from fixtures.targets import DEFAULT_TARGET, UsageFault
from reports import evidence
from reports.console import screen
from reports.evidence import FOLDER, Entry
from reports.results import suite_version
from reports.verdicts import BROKEN, FAULT, OK
from shareproof.cli import run
from shareproof.runner.inventory import CLIENT, read_checks
from spec.requirement import load_requirements
from tools import requests
from tools.campaign import (
    alterations,
    clients,
    histories,
    kafka,
    reference,
    releases,
    repeats,
    rules,
)
from tools.campaign.asked import Asked, Outcome, Progress, means_check, means_rule, split
from tools.campaign.record import Keeper

CHECK = "check"
"""Stands for the subjects that a new check has to come through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What can be played, and played again: the entries of ``owns``."""

    play: Callable[[Asked], Outcome]
    broken: Mapping[str, Mutant[Any] | Alteration] = field(default_factory=dict)
    replay: Callable[[Sequence[Entry], Asked], list[Entry]] | None = None
    owns: Callable[[Entry], bool] = lambda entry: False  # noqa: ARG005


def _on(release: bool, *kinds: str) -> Callable[[Entry], bool]:
    return lambda one: one.kind in kinds and (one.release == evidence.REFERENCE) != release


SUBJECTS = {
    "reference": Subject(
        play=reference.play,
        broken=BROKERS,
        replay=reference.replay,
        owns=_on(False, *reference.KINDS),
    ),
    "alterations": Subject(
        play=alterations.play,
        broken=ALTERATIONS,
        replay=alterations.replay,
        owns=_on(True, evidence.ALTERATION),
    ),
    "kafka": Subject(
        play=kafka.play,
        broken=KAFKAS,
        replay=kafka.replay,
        owns=_on(True, evidence.KAFKA_MUTANT),
    ),
    "clients": Subject(
        play=clients.play,
        broken=CLIENTS,
        replay=clients.replay,
        owns=_on(False, evidence.CLIENT_MUTANT),
    ),
    "releases": Subject(
        play=releases.play, replay=releases.replay, owns=_on(True, evidence.RELEASE)
    ),
    "repeat": Subject(play=repeats.play),
    "histories": Subject(play=histories.play),
    "rules": Subject(play=rules.play),
    "declared": Subject(play=rules.play_on_kafka),
}


Subjects = Annotated[
    list[str] | None,
    typer.Argument(
        help="What to play: reference (mutants of the reference broker, in virtual time; the "
        "default), alterations (in front of real Kafka), kafka (mutants of real Kafka), "
        "clients (mutants of the model client), releases (past defects), repeat, histories (random "
        "ones, against both judges), rules (what breaks a rule that nothing has died by yet), "
        "declared (the same on real Kafka); or "
        "check, which is reference, alterations and repeat for the checks of --only, and with "
        "--record which requests they send.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Mutant, alteration, area, rule or part of a check's name; repeatable, or a,b,c."
    ),
]
Listed = Annotated[bool, typer.Option("--list", help="List what is broken on purpose, and exit.")]
Again = Annotated[
    bool, typer.Option("--again", help="Play what evidence has again, and record what was seen.")
]
Record = Annotated[bool, typer.Option("--record", help="Write what is seen to evidence/.")]
Full = Annotated[
    bool, typer.Option("--full", help="Go on where something was seen to notice already.")
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Workers = Annotated[
    int, typer.Option("--workers", "-n", min=0, help="Plays at a time; 0: the usual number.")
]
Rounds = Annotated[int, typer.Option(min=1, help="How often repeat plays.")]
Count = Annotated[int, typer.Option(min=1, help="How many seeds histories plays.")]
Target = Annotated[
    str, typer.Option(help="Cluster of alterations and repeat, such as external:HOST:PORT.")
]
Client = Annotated[str, typer.Option(help="With repeat: repeat a client's checks.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def campaign(
    subjects: Subjects = None,
    *,
    only: Only = None,
    listed: Listed = False,
    again: Again = False,
    record: Record = False,
    full: Full = False,
    seed: Seed = 1,
    workers: Workers = 0,
    rounds: Rounds = 20,
    count: Count = 1000,
    target: Target = DEFAULT_TARGET,
    client: Client = "",
    as_json: Json = False,
) -> None:
    """Break something on purpose, see which checks notice, and keep that as evidence."""
    console = screen(stderr=True, soft_wrap=True, highlight=False)
    keeper = Keeper(record=record or again)
    if (record or again) and not (FOLDER.parent / "tox.ini").exists():
        raise UsageFault("evidence is written in a checkout; this is an installation.")
    words = split(only or [])
    if listed:
        for line in _listing(subjects):
            typer.echo(line)
        raise typer.Exit(OK)
    with _watching(console) as progress:
        asked = Asked(
            keeper=keeper,
            only=words,
            full=full,
            seed=seed,
            workers=workers,
            rounds=rounds,
            count=count,
            target=target,
            client=client,
            say=lambda line: console.print(line, markup=False),
            progress=progress,
        )
        began = time.monotonic()
        outcomes = _replayed(subjects, asked) if again else _played(subjects, asked)
    if record and CHECK in (subjects or ()):
        _record_requests(words)
    code = _code(outcomes)
    if as_json:
        document = _document(asked, outcomes, code, time.monotonic() - began)
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        for line in (line for one in outcomes.values() for line in _lines(one)):
            typer.echo(line)
    raise typer.Exit(code)


def _listing(subjects: Sequence[str] | None) -> Iterator[str]:
    """Yield what is broken on purpose: its name, the rules that it breaks, and how."""
    for subject in subjects or SUBJECTS:
        for one in _subject(subject).broken.values():
            yield f"{subject}  {one.name}  {','.join(one.rules)}  {one.sentence}"


def _played(subjects: Sequence[str] | None, asked: Asked) -> dict[str, Outcome]:
    names = list(subjects or ["reference"])
    if CHECK in names:
        if not asked.only:
            raise UsageFault("check needs --only, with a part of the check's name.")
        names = [name for name in names if name != CHECK] + ["reference", "alterations", "repeat"]
    outcomes = {}
    for name in dict.fromkeys(names):
        outcomes[name] = _subject(name).play(asked)
    return outcomes


def _record_requests(words: Sequence[str]) -> None:
    """Record which requests trusted checks send, those of clusters of their own apart."""
    known = (check for check in read_checks() if not check.solo)
    if found := [one.id for one in known if any(means_check(word, one) for word in words)]:
        requests.play(found)


def _replayed(subjects: Sequence[str] | None, asked: Asked) -> dict[str, Outcome]:
    """Play what evidence has again, and forget what is not seen again, or is no more."""
    asked.keeper.drop(gone(asked.keeper.known))
    found = [one for one in asked.keeper.known if _means(asked.only, one)]
    outcomes = {}
    for name in subjects or SUBJECTS:
        subject = _subject(name)
        mine = [one for one in found if subject.owns(one)]
        if subject.replay is None or not mine:
            continue
        asked.say(f"{name}: {len(mine)} entries")
        lost = subject.replay(mine, replace(asked, only=()))
        asked.keeper.drop(lost)
        hunt = f"`python -m tools.campaign {name} --record --only ...` looks for others"
        outcomes[name] = Outcome(
            said=[f"{len(mine) - len(lost)} of {len(mine)} entries of {name} seen again"],
            broken=[f"not seen again: {_named(one)}; {hunt}" for one in lost],
        )
    return outcomes or {"again": Outcome(said=["there is no such evidence"])}


def _means(words: Sequence[str], entry: Entry) -> bool:
    if not words:
        return True
    named = [word for word in words if len(word) > len("ACK-01")]
    return (
        entry.name in words
        or any(means_rule(word, [entry.rule]) for word in words)
        or any(word in entry.check for word in named)
    )


def _named(entry: Entry) -> str:
    return " ".join(filter(None, (entry.rule, entry.check, entry.kind, entry.name, entry.release)))


def gone(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries whose check, rule, mutant or alteration is no more."""
    known: dict[str, Mapping[str, Any]] = {
        evidence.REFERENCE_MUTANT: BROKERS,
        evidence.ALTERATION: ALTERATIONS,
        evidence.KAFKA_MUTANT: KAFKAS,
        evidence.CLIENT_MUTANT: CLIENTS,
    }
    checks = {one.id: one.rules for one in (*read_checks(drafts=True), *read_checks(CLIENT))}
    rules = load_requirements()
    return [
        one
        for one in entries
        if one.rule not in rules
        or ("::" in one.check and one.rule not in checks.get(one.check, ()))
        or one.name not in known.get(one.kind, {one.name})
    ]


def _subject(name: str) -> Subject:
    if name not in SUBJECTS:
        raise UsageFault(f"{name!r} is no subject; there are {', '.join((*SUBJECTS, CHECK))}.")
    return SUBJECTS[name]


def _code(outcomes: dict[str, Outcome]) -> int:
    if any(one.faults for one in outcomes.values()):
        return FAULT
    return BROKEN if any(one.broken for one in outcomes.values()) else OK


def _lines(outcome: Outcome) -> Iterator[str]:
    yield from (*outcome.faults, *outcome.broken, *outcome.said)


def _document(
    asked: Asked, outcomes: dict[str, Outcome], code: int, seconds: float
) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": {
            "seed": asked.seed,
            "full": asked.full,
            "command": sys.argv,
            "version": suite_version(),
            "seconds": round(seconds, 1),
            "exit_code": code,
        },
        "subjects": {
            name: {"said": one.said, "broken": one.broken, "faults": one.faults, **one.more}
            for name, one in outcomes.items()
        },
        "entries": [
            {"kind": one.kind, "name": one.name, "rule": one.rule, "check": one.check}
            | {"verdict": one.verdict, "release": one.release, "reason": one.reason}
            for one in asked.keeper.new
        ],
    }


@contextmanager
def _watching(console: Console) -> Iterator[Progress]:
    with Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
                if not console.is_terminal:
                    console.print(f"{what}: {total}", highlight=False)
            bar.update(tasks[what], completed=done)

        yield progress


def main() -> NoReturn:
    """Do what the command line says."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(campaign)
    run(app)


if __name__ == "__main__":
    main()
