"""A night from end to end: old runs judged again, new ones played, what failed made small, a site.

The archive grows from night to night. What it has already is judged by the rules of today first,
the latest runs at least; then the swarm plays for some hours; then every run that broke a rule
unexpectedly is shrunk; and last a site is built over all that there is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from chaos.shrink import described
from reports.site.archive import find
from reports.site.build import build
from reports.verdicts import FAULT, OK
from shareproof.chaos.again import earlier, exit_code, rejudge
from shareproof.chaos.swarm import Swarm, broken, shrink_run, tell, told
from shareproof.detected import detection
from spec.verdict import EnvironmentFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What a night is to bring beside its runs.

    Attributes:
        hours: How long to play.
        seed: That of the first run.
        site: Where the site goes.
        again: How many of the archive's latest runs are judged again, at most.
        shrunk: How many of the runs that failed are shrunk, at most.
        tries: How often a smaller schedule is played.
        replays: How often the smallest one is.
        most: How many plays of smaller schedules there may be for a run.
    """

    hours: float
    seed: int
    site: Path
    again: int
    shrunk: int
    tries: int
    replays: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the swarm came to: its worst exit code, and the runs that broke a rule unexpectedly."""

    code: int
    runs: int
    failed: tuple[Path, ...]


def whole_night(swarm: Swarm, night: Night) -> int:
    """Do all of it; return the worst exit code of the runs and of the verdicts that changed."""
    changed = _judge_again(swarm.archive, night.again)
    played = play(swarm, night.hours, night.seed)
    for run in played.failed[: night.shrunk]:
        tell(f"== shrinking {run}")
        try:
            shrink_run(swarm, run, tries=night.tries, replays=night.replays, most=night.most)
        except EnvironmentFault as fault:
            tell(f"== {run} was not shrunk: {fault}")
    if _has_runs(swarm.archive):
        tell(f"site: {build(find([swarm.archive]), night.site, detection())}")
    kept = f"worst exit code {played.code}, kept in {swarm.archive}"
    print(f"{played.runs} runs from seed {night.seed} on, {kept}")
    return max(played.code, changed)


def _judge_again(archive: Path, latest: int) -> int:
    """Return 0 if no verdict of the latest runs changed, and otherwise what judging again says."""
    if not latest or not _has_runs(archive):
        return OK
    try:
        found = find([archive])
        known = earlier(found)[-latest:]
    except ValueError as nothing:
        tell(f"== nothing to judge again: {nothing}")
        return OK
    for problem in found.left_out:
        tell(f"== left out: {problem}")
    tell(f"== judging {len(known)} earlier runs again")
    return exit_code(rejudge(known, replace=False))


def _has_runs(archive: Path) -> bool:
    return next(archive.rglob("results.json"), None) is not None


def play(swarm: Swarm, hours: float, seed: int) -> Played:
    """Play schedules until the time is over, one at least."""
    ends = time.monotonic() + hours * 3600
    worst, number = OK, seed
    failed: list[Path] = []
    while number == seed or time.monotonic() < ends:
        out = swarm.archive / f"seed-{number}"
        schedule = swarm.draw(number)
        tell(f"== seed {number}: {described(schedule)}")
        try:
            results = swarm.play(schedule, out)
            code, said = results.run.exit_code, told(results)
            failed += [out] if broken(results) else []
        except EnvironmentFault as fault:
            code, said = FAULT, str(fault)
        worst = max(worst, code)
        tell(f"== seed {number}: exit code {code}, {said}")
        number += 1
    return Played(code=worst, runs=number - seed, failed=tuple(failed))
