"""The swarm: schedules from rising seeds, each played and judged, and the shrinking of what failed.

A schedule of the swarm has a handful of kinds of fault of its own. The many plays that shrinking
takes share a cluster for as long as it stays whole, and are judged by the oracle, which needs no
Spark.
"""

from __future__ import annotations

import random
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from chaos.fitting import fitting, offered, usual_proxies
from chaos.run import Chaos, RunningTarget, running, usual_load
from chaos.schedule import Schedule, draw
from chaos.shrink import described, shrink
from fixtures.targets import UsageFault
from reports.analysis.files import open_history
from reports.analysis.request import Request
from reports.oracle import judging as oracle
from reports.reading import read as read_results
from reports.results import Results
from reports.verdicts import BROKEN, OK
from shareproof.chaos.judging import judge

_SOME = (3, 7)
"""How many kinds of fault a schedule of the swarm has, at least and at most."""
_DRAIN = 20.0
"""Seconds that the groups of a smaller schedule may take to reach the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """What the night is to bring."""

    target: str
    brokers: int
    seconds: float
    rate: float
    archive: Path

    def draw(self, seed: int) -> Schedule:
        """Return a seed's schedule: some kinds of fault often find what all together hide."""
        rng = random.Random(f"swarm {seed}")
        proxies = usual_proxies(self.target, ())
        kinds = fitting((), offered(self.target, brokers=self.brokers, proxies=proxies))
        some = rng.sample(kinds, min(len(kinds), rng.randint(*_SOME)))
        return draw(seed, self.seconds, sorted(some, key=lambda kind: kind.name))

    def play(self, schedule: Schedule, out: Path) -> Results:
        """Play a schedule on a cluster of its own, and judge it."""
        chaos = self.chaos(schedule)
        with running(chaos, tell) as ready:
            ready.play(chaos, out)
        return judge(Request(runs=(out,), command=tuple(sys.argv)), out, _quiet)

    def chaos(self, schedule: Schedule) -> Chaos:
        """Return a schedule as a run of the target."""
        return Chaos(
            target=self.target,
            brokers=self.brokers,
            schedule=schedule,
            load=usual_load(schedule, self.rate),
            proxies=usual_proxies(self.target, [strike.fault for strike in schedule.strikes]),
        )


class Replays:
    """Plays schedules on a cluster that they share until one of them leaves it unwell."""

    def __init__(self, swarm: Swarm, whole: Schedule, folder: Path) -> None:
        self._swarm, self._folder = swarm, folder
        self._whole = swarm.chaos(whole)
        self._stack = ExitStack()
        self._ready: RunningTarget | None = None
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def broken(self, schedule: Schedule) -> set[str]:
        """Play a schedule and return the rules that it broke."""
        if self._ready is None:
            self._ready = self._stack.enter_context(running(self._whole, _quiet))
        self._number += 1
        out = self._folder / str(self._number)
        chaos = self._swarm.chaos(schedule)
        # Who does not get to the end soon never does, and many plays are to come.
        chaos = replace(chaos, load=replace(chaos.load, drain=_DRAIN))
        broke = self._ready.play(chaos, out)
        found = broken_by_oracle(out)
        shutil.rmtree(out)
        if broke.trouble:
            self._stack.close()
            self._ready = None
        return found


def broken(results: Results, *, known: bool = False) -> list[str]:
    """Return the rules that a run broke unexpectedly, or the known failures among them."""
    failed = [rule for rule in results.requirements if rule.verdict == "fail"]
    return [rule.id for rule in failed if rule.expected == known]


def told(results: Results) -> str:
    """Return in a few words what a night has to know of a run."""
    runs = results.chaos or ()
    missed = [fault for run in runs for fault in run.faults if not fault.hit]
    owed = {rule for run in runs for rule in run.owed}
    idle = [rule.id for rule in results.requirements if rule.verdict == "vacuous"]
    said = {
        "broken": broken(results),
        "never took effect": [one.fault for one in missed if not one.blocked_by],
        "blocked by another fault": [one.fault for one in missed if one.blocked_by],
        "never exercised": [rule for rule in idle if rule in owed],
        "went wrong": [trouble for run in runs for trouble in run.trouble],
    }
    words = [f"{what}: {', '.join(dict.fromkeys(which))}" for what, which in said.items() if which]
    return "; ".join(words) or "nothing broken"


def broken_by_oracle(run: Path) -> set[str]:
    """Return the rules that the oracle sees broken in a run."""
    found = oracle.judge(open_history(run).folder)
    return {rule for rule, places in found.items() if any(bad for _, bad in places.values())}


def shrink_run(swarm: Swarm, run: Path, *, tries: int, replays: int, most: int) -> int:
    """Shrink the schedule of a run that failed, and write ``shrunk.json`` beside it.

    Raises:
        UsageFault: the run broke no rule.
    """
    if (run / "results.json").is_file():
        results = read_results(run)
        rules = broken(results) or broken(results, known=True)
    else:
        rules = sorted(broken_by_oracle(run))
    if not rules:
        raise UsageFault(f"{run}: that run broke no rule.")
    schedule = Schedule.from_json((run / "schedule.json").read_text(encoding="utf-8"))
    with Replays(swarm, schedule, run / "shrinking") as plays:

        def fails(candidate: Schedule) -> bool:
            if plays.broken(candidate).isdisjoint(rules):
                return False
            # Whatever fails is the smallest so far, and worth keeping should we be interrupted.
            (run / "shrunk.json").write_text(candidate.to_json(), encoding="utf-8")
            return True

        found = shrink(schedule, fails, tries=tries, replays=replays, tell=tell, most=most)
    print(f"{', '.join(rules)}: {described(found.schedule)}")
    print(f"{found.reliability}, after {found.tried} plays")
    print(f"shareproof chaos --target {swarm.target} --schedule {run / 'shrunk.json'}")
    return BROKEN if found.failed else OK


def tell(line: str) -> None:
    """Say on standard error what is going on."""
    print(line, file=sys.stderr, flush=True)


def _quiet(_: str) -> None:
    return
