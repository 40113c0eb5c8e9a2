"""``python -m tools.campaign``: break something on purpose, and see which checks notice."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import typer
from rich.console import Console

from fixtures.adapters.model.mutants import MUTANTS as CLIENTS
from fixtures.interface.mutant import Mutant
from fixtures.mutants import MUTANTS as KAFKAS
from fixtures.proxies.alter import Alteration
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as BROKERS
from fixtures.reference.mutants import VARIANTS
from fixtures.targets import UsageFault
from reports import evidence
from reports.console import screen
from reports.evidence import FOLDER, Entry
from reports.results import suite_version
from reports.verdicts import BROKEN, FAULT, OK
from shareproof.cli import run
from shareproof.detected import BROKEN as BROKEN_THINGS
from shareproof.options import takes
from shareproof.runner.inventory import CLIENT, read_checks
from shareproof.runner.run import moving_line
from spec.rule import load_rules
from tools import requests
from tools.campaign import (
    alterations,
    clients,
    coverage,
    fields,
    kafka,
    points,
    reference,
    releases,
    repeats,
    rules,
    variants,
)
from tools.campaign.options import EvidenceStore, Options, Outcome, Progress, means_rule, meant

ENTRY = "kind name rule check verdict release reason"  # What ``--json`` prints of an entry.
CHECK = "check"  # Stands for the subjects that a new check has to come through.


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    play: Callable[[Options], Outcome]
    broken: Mapping[str, Mutant[Any] | Alteration] = field(default_factory=dict)
    # Plays again what entries are about; returns those that were not seen again.
    replay: Callable[[Sequence[Entry], Options], list[Entry]] | None = None
    owns: Callable[[Entry], bool] = lambda entry: False  # noqa: ARG005


def _on(release: bool, *kinds: str) -> Callable[[Entry], bool]:
    return lambda one: one.kind in kinds and (one.release == evidence.REFERENCE) != release


def _histories(options: Options) -> Outcome:
    # Histories are tables of Arrow, which only an installation with the judge has.
    from tools.campaign import histories  # noqa: PLC0415

    return histories.play(options)


SUBJECTS = {
    "reference": Subject(
        play=reference.play,
        broken=BROKERS,
        replay=reference.replay,
        owns=_on(False, *reference.KINDS),
    ),
    "variants": Subject(play=variants.accuse, broken=VARIANTS),
    "others": Subject(play=variants.blame, broken=BROKERS),
    "alterations": Subject(
        play=alterations.play,
        broken=ALTERATIONS,
        replay=alterations.replay,
        owns=_on(True, evidence.ALTERATION),
    ),
    "kafka": Subject(
        play=kafka.play, broken=KAFKAS, replay=kafka.replay, owns=_on(True, evidence.KAFKA_MUTANT)
    ),
    **{name: Subject(play=play) for name, play in points.PLAYS.items()},
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
    "histories": Subject(play=_histories),
    "coverage": Subject(play=coverage.play),
    "fields": Subject(play=fields.play, replay=fields.replay, owns=_on(False, evidence.FIELD)),
    "rules": Subject(play=rules.play),
    "declared": Subject(play=rules.play_on_kafka),
}


@takes(Options)
def campaign(options: Options) -> None:
    """Break something on purpose, see which checks notice, and keep that as evidence."""
    console = screen(stderr=True, soft_wrap=True, highlight=False)
    recording = options.record or options.again
    if recording and not (FOLDER.parent / "tox.ini").exists():
        raise UsageFault("evidence is written in a checkout; this is an installation.")
    if options.listed:
        for subject in options.subjects or SUBJECTS:
            for one in _subject(subject).broken.values():
                typer.echo(f"{subject}  {one.name}  {','.join(one.rules)}  {one.sentence}")
        raise typer.Exit(OK)
    with _watching(console) as progress:
        options = replace(
            options,
            store=EvidenceStore(record=recording),
            say=lambda line: console.print(line, markup=False),
            progress=progress,
        )
        began = time.monotonic()
        outcomes = _replayed(options) if options.again else _played(options)
    # Which requests trusted checks send, those of clusters of their own apart.
    sending = [one.id for one in meant(options.only, read_checks()) if not one.solo]
    if options.record and CHECK in options.subjects and sending:
        requests.play(sending)
    codes = [FAULT if o.faults else BROKEN if o.broken else OK for o in outcomes.values()]
    code = max(codes, default=OK)
    if options.as_json:
        document = _document(options, outcomes, code, time.monotonic() - began)
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        for outcome in outcomes.values():
            for line in (*outcome.faults, *outcome.broken, *outcome.said):
                typer.echo(line)
    raise typer.Exit(code)


def _played(options: Options) -> dict[str, Outcome]:
    names = list(options.subjects or ["reference"])
    if CHECK in names:
        if not options.only:
            raise UsageFault("check needs --only, with a part of the check's name.")
        names = [name for name in names if name != CHECK] + ["reference", "alterations", "repeat"]
    return {name: _subject(name).play(options) for name in dict.fromkeys(names)}


def _replayed(options: Options) -> dict[str, Outcome]:
    options.store.drop(gone(options.store.known))
    words = options.only
    parts = [word for word in words if len(word) > len("ACK-01")]
    found = [
        one
        for one in options.store.known
        if not words
        or one.name in words
        or any(means_rule(word, [one.rule]) for word in words)
        or any(word in one.check for word in parts)
    ]
    outcomes = {}
    for name in options.subjects or SUBJECTS:
        subject = _subject(name)
        mine = [one for one in found if subject.owns(one)]
        if subject.replay is None or not mine:
            continue
        options.say(f"{name}: {len(mine)} entries")
        lost = subject.replay(mine, replace(options, only=()))
        options.store.drop(lost)
        hunt = f"`python -m tools.campaign {name} --record --only ...` looks for others"
        named = [" ".join(filter(None, (o.rule, o.check, o.kind, o.name, o.release))) for o in lost]
        outcomes[name] = Outcome(
            said=[f"{len(mine) - len(lost)} of {len(mine)} entries of {name} seen again"],
            broken=[f"not seen again: {one}; {hunt}" for one in named],
        )
    return outcomes or {"again": Outcome(said=["there is no such evidence"])}


def gone(entries: Iterable[Entry]) -> list[Entry]:
    known: dict[str, Mapping[str, Any]] = {**BROKEN_THINGS, evidence.ALTERATION: ALTERATIONS}
    checks = {one.id: one.rules for one in (*read_checks(drafts=True), *read_checks(CLIENT))}
    rules = load_rules()
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


def _document(
    options: Options, outcomes: dict[str, Outcome], code: int, seconds: float
) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": {
            "seed": options.seed,
            "full": options.full,
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
            {name: getattr(one, name) for name in ENTRY.split()} for one in options.store.new
        ],
    }


@contextmanager
def _watching(console: Console) -> Iterator[Progress]:
    with moving_line(console) as bar:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
                if not console.is_terminal:
                    console.print(f"{what}: {total}", highlight=False)
            bar.update(tasks[what], completed=done)

        yield progress


def main() -> NoReturn:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(campaign)
    run(app)


if __name__ == "__main__":
    main()
