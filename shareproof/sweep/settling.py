"""From the cases of a sweep to its results: one verdict for each rule, compared with the ledger."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from reports.badge import of_results
from reports.building import RunRecord, document, timing_of
from reports.results import Results, Target
from reports.verdicts import FAULT, OK
from reports.writing import publish
from shareproof.runner.adapters import HOSTILE, facing
from shareproof.sweep.spreading import Swept
from spec.profile import check_profile
from spec.requirement import load_requirements
from spec.verdict import Observation, Verdict
from suites.client.settings import trials
from suites.client.sweep.judging import RULES
from suites.client.sweep.working import Played
from suites.options import RunOptions, load_ledger, typed

INTERRUPTED = 130
_PREFIX = "sweep/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What cases are about: the rules, the option that asks for them, and how many run at once."""

    rules: tuple[str, ...]
    option: tuple[str, ...] = ()
    together: int = 0


ERRORS = Subject(rules=RULES)
SETTINGS = Subject(rules=trials.RULES, option=("--settings",), together=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep that ended: what it was asked, and what its cases showed.

    Attributes:
        options: Of the run, with the client as it introduced itself.
        subject: What its cases are about.
        words: The patterns that chose cases.
        planned: How many cases were to be played.
        swept: Those that were.
        started: When it began.
        seconds: How long it took.
        interrupted: Whether somebody ended it.
    """

    options: RunOptions
    subject: Subject
    words: tuple[str, ...]
    planned: int
    swept: tuple[Swept, ...]
    started: datetime
    seconds: float
    interrupted: bool = False


def observations(swept: Sequence[Swept]) -> list[Observation]:
    found = []
    for one in swept:
        first = {o.requirement: o for o in _seen(one.first)} if one.first else {}
        for seen in _seen(one.played):
            before = first.get(seen.requirement)
            found.append(_with_first(seen, before) if before else seen)
    return found


def _seen(played: Played) -> list[Observation]:
    check = _PREFIX + played.case
    trouble = played.fault or played.undecided
    if trouble:
        verdict = Verdict.ERROR if played.fault else Verdict.UNKNOWN
        sentence = f"{played.case}: {trouble}"
        return [Observation(requirement=played.rule, check=check, verdict=verdict, reason=sentence)]
    return [
        Observation(
            requirement=one.rule,
            check=check,
            verdict=Verdict.FAIL if one.broken else Verdict.PASS,
            reason=one.broken,
            evidence={"cases": 1, "responses": one.responses},
            witness=one.witness,
            seconds=round(played.seconds, 3),
        )
        for one in played.findings
    ]


def _with_first(seen: Observation, first: Observation) -> Observation:
    return replace(seen, first=first) if first.verdict is not Verdict.PASS else seen


def settled(sweep: Sweep, out: Path) -> Results:
    """Settle a sweep, and write its results, its page, and the frames of what broke a rule."""
    options = sweep.options
    assert options.client is not None
    profile = load_ledger(options.ledger(""))
    rules = {id_: rule for id_, rule in load_requirements().items() if id_ in sweep.subject.rules}
    whole = len(sweep.swept) == sweep.planned and not sweep.words
    problems = check_profile(profile, load_requirements())
    frames = _written(sweep, out)
    seen = observations(sweep.swept)
    found = document(
        RunRecord(
            rules=rules,
            observations=seen,
            ledger=profile,
            target=Target(
                name=options.client.asked[1],
                version=options.client.version,
                profile=profile.name,
                brokers=3,
                properties={},
            ),
            client=facing(options, None),
            release=options.version,
            unfinished=() if whole else sweep.subject.rules,
            problems=problems,
            seed=options.seed,
            level=options.level,
            only=sweep.words,
            started=sweep.started,
            timing=timing_of(
                total=sweep.seconds,
                checks=sweep.seconds,
                by_check={_PREFIX + one.played.case: one.played.seconds for one in sweep.swept},
            ),
            partial=sweep.interrupted,
            notices=_notices(sweep),
            broken=OK if seen else FAULT,
            ended=INTERRUPTED if sweep.interrupted else OK,
            versions={"python": platform.python_version(), "platform": platform.platform()},
            reproduce=lambda rule: _again(sweep, rule),
            transcript=lambda check, first: "" if first else frames.get(check, ""),
            faced=lambda _check: HOSTILE,
        )
    )
    publish(out, found)
    of_results(found).write(out)
    return found


def command(options: RunOptions, case: str, subject: Subject = ERRORS) -> str:
    assert options.client is not None
    words = ["shareproof", "sweep", *options.client.asked, *subject.option, "--only", case]
    return shlex.join([*words, "--seed", str(options.seed), *typed(options, "profile")])


def _again(sweep: Sweep, rule: str) -> str:
    broken = [
        one.played.case
        for one in sweep.swept
        if any(each.rule == rule and each.broken for each in one.played.findings)
    ]
    return command(
        sweep.options, broken[0] if broken else sweep.swept[0].played.case, sweep.subject
    )


def _written(sweep: Sweep, out: Path) -> dict[str, str]:
    """Write the frames of each case that broke a rule; return the files by check."""
    names = {}
    for one in sweep.swept:
        played = one.played
        if not played.frames:
            continue
        name = f"transcripts/{re.sub(r'[^A-Za-z0-9_.-]+', '-', played.case)}.txt"
        said = [f"{each.rule}: {each.broken}" for each in played.findings if each.broken]
        head = "\n".join([f"$ {command(sweep.options, played.case, sweep.subject)}", *said])
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(f"{head}\n\n{played.frames}\n", encoding="utf-8")
        names[_PREFIX + played.case] = name
    return names


def _notices(sweep: Sweep) -> list[str]:
    unmet = [
        one.played.case
        for one in sweep.swept
        if not (one.played.findings or one.played.fault or one.played.undecided)
    ]
    apis = sorted({name.rpartition("/")[0].rpartition("/")[0] for name in unmet})
    sentence = (
        f"{len(unmet)} of {sweep.planned} cases judged nothing, because the client sent no "
        f"such request: {', '.join(apis)}."
    )
    return [sentence] if unmet else []


def now() -> datetime:
    return datetime.now(UTC)
