"""Runs the cases of a sweep: spreads them over hostile brokers, judges, and makes the report.

Each process has a hostile broker of its own. What broke a rule, could not be decided, or was in the
way when the adapter died is played once more when everything else is done, a few at a time; that is
what counts. If the adapter dies again, each case that it ran is played alone: one that ends it
then, ended the client.
"""

import multiprocessing
import platform
import queue
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from rich.console import Console

from reports.document import RunRecord, document, timing_of
from reports.headlines import of_results
from reports.html import publish
from reports.results import Results, Target
from reports.verdicts import FAULT, INTERRUPTED, OK
from shareproof.runner.options import HOSTILE, facing
from shareproof.runner.outcome import broken, with_second_try
from shareproof.runner.run import moving_line
from spec.ledger import check_ledger
from spec.rule import load_rules
from spec.verdict import EnvironmentFault, Observation, Verdict
from suites.client import settings
from suites.client.sweep.rules import RULES
from suites.client.sweep.working import TOGETHER, AnyCase, work
from suites.options import RunOptions, named_ledger, typed
from suites.sweep import Named, Played

SILENCE = 400.0  # seconds without news after which a worker is taken for hung
FEW, ALONE = 4, 1
"""Cases at a time when they are played once more, and when the adapter died then, too."""

Watch = Callable[[str, int, Played | None], None]
"""Is told of a stage, its number of cases, and each case that was played in it."""

_PREFIX = "sweep/"
_OF_BROKERS = "brokers command_config prefix broker_option broker_jvm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    rules: tuple[str, ...]
    option: tuple[str, ...] = ()
    together: int = TOGETHER


ERRORS = Subject(rules=RULES)
SETTINGS = Subject(rules=settings.RULES, option=("--settings",), together=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    played: Played
    first: Played | None = None


def run(
    options: RunOptions,
    cases: Sequence[AnyCase],
    words: tuple[str, ...],
    brokers: int,
    console: Console,
    *,
    subject: Subject = ERRORS,
) -> Results:
    client = options.client
    assert client is not None
    target = Target(
        name=client.option[1],
        version=client.version,
        ledger=options.ledger_for(""),
        brokers=3,
        properties={},
    )

    def play(watch: Watch) -> Iterator[Swept]:
        seed, together = options.seed, subject.together
        return spread(client.command, cases, seed, brokers, watch, together=together)

    return judged(options, cases, words, console, target=target, play=play, subject=subject)


def judged(
    options: RunOptions,
    cases: Sequence[Named],
    words: tuple[str, ...],
    console: Console,
    *,
    target: Target,
    play: Callable[[Watch], Iterator[Swept]],
    subject: Subject,
) -> Results:
    started, began, interrupted = datetime.now(UTC), time.monotonic(), False
    swept: list[Swept] = []
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with _watching(console) as watch:
        try:
            swept.extend(play(watch))
        except KeyboardInterrupt:
            interrupted = True
    order = {case.name: number for number, case in enumerate(cases)}
    swept.sort(key=lambda one: order[one.played.case])
    seconds = time.monotonic() - began
    by_check = {_PREFIX + one.played.case: one.played.seconds for one in swept}
    ledger, rules = named_ledger(target.ledger), load_rules()
    seen = observations(swept)
    frames = _transcripts(swept, out, lambda case: command(options, case, subject))

    def reproduce(rule: str) -> str:
        failed = (
            one.played.case
            for one in swept
            if any(each.rule == rule and each.broken for each in one.played.findings)
        )
        return command(options, next(failed, swept[0].played.case), subject)

    found = document(
        RunRecord(
            rules={id_: rule for id_, rule in rules.items() if id_ in subject.rules},
            observations=seen,
            ledger=ledger,
            target=target,
            client=facing(options, None) if options.client else None,
            release=options.version,
            unfinished=() if len(swept) == len(cases) and not words else subject.rules,
            problems=check_ledger(ledger, rules),
            seed=options.seed,
            level=options.level,
            only=words,
            started=started,
            timing=timing_of(total=seconds, checks=seconds, by_check=by_check),
            partial=interrupted,
            notices=_notices(swept, len(cases), client=bool(options.client)),
            broken=OK if seen else FAULT,
            ended=INTERRUPTED if interrupted else OK,
            versions={"python": platform.python_version(), "platform": platform.platform()},
            reproduce=reproduce,
            transcript=lambda check, first: "" if first else frames.get(check, ""),
            faced=lambda _check: HOSTILE if options.client else "",
        )
    )
    publish(out, found)
    of_results(found).write(out)
    return found


def command(options: RunOptions, case: str, subject: Subject = ERRORS) -> str:
    client = options.client
    tested = client.option if client else ("--target", options.target, *typed(options, _OF_BROKERS))
    words = ["shareproof", "sweep", *tested, *subject.option, "--only", case]
    return shlex.join([*words, "--seed", str(options.seed), *typed(options, "ledger")])


def observations(swept: Sequence[Swept]) -> list[Observation]:
    found = []
    for one in swept:
        tried = _seen(one.first) if one.first else []
        first = {o.rule: o for o in tried if o.verdict is not Verdict.PASS}
        for seen in _seen(one.played):
            before = first.get(seen.rule)
            found.append(with_second_try(before, seen) if before else seen)
    return found


def _seen(played: Played) -> list[Observation]:
    check = _PREFIX + played.case
    trouble = played.fault or played.undecided
    if trouble:
        verdict = Verdict.ERROR if played.fault else Verdict.UNKNOWN
        return broken(check, [played.rule], f"{played.case}: {trouble}", verdict)
    return [
        Observation(
            rule=one.rule,
            check=check,
            verdict=Verdict.FAIL if one.broken else Verdict.PASS,
            reason=one.broken,
            evidence={"cases": 1, "responses": one.responses},
            witness=one.witness,
            seconds=round(played.seconds, 3),
        )
        for one in played.findings
    ]


def _transcripts(
    swept: Sequence[Swept], out: Path, command_of: Callable[[str], str]
) -> dict[str, str]:
    names = {}
    for played in (one.played for one in swept if one.played.frames):
        name = f"transcripts/{re.sub(r'[^A-Za-z0-9_.-]+', '-', played.case)}.txt"
        sentences = [f"{each.rule}: {each.broken}" for each in played.findings if each.broken]
        head = "\n".join([f"$ {command_of(played.case)}", *sentences])
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(f"{head}\n\n{played.frames}\n", encoding="utf-8")
        names[_PREFIX + played.case] = name
    return names


def _notices(swept: Sequence[Swept], planned: int, *, client: bool) -> list[str]:
    unmet = [
        one.played.case
        for one in swept
        if not (one.played.findings or one.played.fault or one.played.undecided)
    ]
    apis = sorted({re.split(r"/[^/]*/[^/]*$|\.", name)[0] for name in unmet})
    why = "the client sent no such request" if client else "they are out of reach here"
    sentence = f"{len(unmet)} of {planned} cases judged nothing, because {why}: {', '.join(apis)}."
    return [sentence] if unmet else []


def spread(
    command: Sequence[str],
    cases: Sequence[AnyCase],
    seed: int,
    brokers: int,
    watch: Watch,
    *,
    together: int = TOGETHER,
) -> Iterator[Swept]:
    first: dict[str, Played] = {}
    left = list(cases)
    for stage, at_once in (("cases", together), ("once more", FEW), ("alone", ALONE)):
        watch(stage, len(left), None)
        again = set()
        for played in _played(command, left, seed, min(brokers, len(left)), at_once):
            watch(stage, len(left), played)
            open_ = not played.is_clear if stage == "cases" else played.died and stage != "alone"
            if open_:
                first.setdefault(played.case, played)
                again.add(played.case)
            else:
                yield Swept(played=played, first=first.get(played.case))
        left = [case for case in left if case.name in again]
        if not left:
            return


def _played(
    command: Sequence[str], cases: Sequence[AnyCase], seed: int, brokers: int, together: int
) -> Iterator[Played]:
    context = multiprocessing.get_context("spawn")
    news: Any = context.Queue()
    processes = [
        context.Process(
            target=_worker,
            args=(tuple(command), cases[number::brokers], seed, together, news),
            daemon=True,
        )
        for number in range(brokers)
    ]
    for process in processes:
        process.start()
    try:
        for _ in cases:
            yield _next(news, processes)
        for process in processes:
            process.join(30.0)
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join(5.0)


def _worker(
    command: Sequence[str], cases: Sequence[AnyCase], seed: int, together: int, news: Any
) -> None:
    try:
        work(command, cases, seed, news.put, together)
    except EnvironmentFault as fault:
        news.put(str(fault))


def _next(news: Any, processes: Sequence[BaseProcess]) -> Played:
    deadline = time.monotonic() + SILENCE
    while time.monotonic() < deadline:
        try:
            found: Played | str = news.get(timeout=1.0)
        except queue.Empty:
            if dead := [one.exitcode for one in processes if one.exitcode]:
                raise EnvironmentFault(f"a worker of the sweep ended with {dead[0]}") from None
            continue
        if isinstance(found, str):
            raise EnvironmentFault(found)
        return found
    raise EnvironmentFault(f"no case ended within {SILENCE:g} s")


@contextmanager
def _watching(console: Console) -> Iterator[Watch]:
    progress = moving_line(console, "broken")
    task = progress.add_task("starting", total=None, broken="")
    unclear: dict[str, int] = {}

    def watch(stage: str, number: int, played: Played | None) -> None:
        if stage not in unclear:
            unclear[stage] = 0
            progress.update(task, description=stage, total=number, completed=0)
        if played is not None:
            unclear[stage] += not played.is_clear
            note = f"[bold red]{unclear[stage]} not clear[/]" if unclear[stage] else ""
            progress.update(task, advance=1, broken=note)

    with progress:
        yield watch
