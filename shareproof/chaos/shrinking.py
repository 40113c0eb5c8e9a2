"""Shrinks the schedule of a run that failed, by playing smaller ones.

The many plays that this takes share a cluster for as long as it stays whole, and are judged by the
oracle, which needs no Spark.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from chaos.faults import Fault
from chaos.fitting import usual_proxies
from chaos.run import Chaos, RunningTarget, running, usual_load
from chaos.schedule import Schedule
from chaos.shrink import described, shrink
from fixtures.targets import UsageFault
from reports.analysis.files import open_history
from reports.oracle import judging as oracle
from reports.reading import read as read_results
from reports.verdicts import BROKEN, OK

SHRUNK = "shrunk.json"
TRIES, REPLAYS, MOST = 3, 10, 40
"""Plays of a smaller schedule, of the smallest one, and of all smaller ones together."""
_SOME = (3, 7)
"""How many kinds of fault a schedule of a night has, at least and at most."""
_DRAIN = 20.0
"""Seconds that the groups of a smaller schedule may take to reach the end."""


def kinds_of(seed: int, kinds: Sequence[Fault]) -> tuple[str, ...]:
    """Return the kinds of a seed: some of them often find what all together hide."""
    rng = random.Random(f"swarm {seed}")
    some = rng.sample(sorted(kind.name for kind in kinds), min(len(kinds), rng.randint(*_SOME)))
    return tuple(sorted(some))


@dataclass(slots=True)
class _Replays:
    """Plays schedules on a cluster that they share until one of them leaves it unwell."""

    target: str
    brokers: int
    rate: float
    whole: Schedule
    folder: Path
    _stack: ExitStack
    _ready: RunningTarget | None = None
    _number: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _chaos(self, schedule: Schedule) -> Chaos:
        load = usual_load(schedule, self.rate)
        return Chaos(
            target=self.target,
            brokers=self.brokers,
            schedule=schedule,
            # Who does not get to the end soon never does, and many plays are to come.
            load=replace(load, drain=_DRAIN),
            proxies=usual_proxies(self.target, [strike.fault for strike in self.whole.strikes]),
        )

    def broken(self, schedule: Schedule) -> set[str]:
        if self._ready is None:
            self._ready = self._stack.enter_context(running(self._chaos(self.whole), _quiet))
        self._number += 1
        out = self.folder / str(self._number)
        broke = self._ready.play(self._chaos(schedule), out)
        found = _broken_by_oracle(out)
        shutil.rmtree(out)
        if broke.trouble:
            self._stack.close()
            self._ready = None
        return found


def _broken_by_oracle(run: Path) -> set[str]:
    found = oracle.judge(open_history(run).folder)
    return {rule for rule, places in found.items() if any(bad for _, bad in places.values())}


def _rules_of(run: Path) -> list[str]:
    """Return what a run broke: unexpectedly, or if nothing was unexpected, at all."""
    if not (run / "results.json").is_file():
        return sorted(_broken_by_oracle(run))
    failed = [rule for rule in read_results(run).requirements if rule.verdict == "fail"]
    new = [rule.id for rule in failed if not rule.expected]
    return new or [rule.id for rule in failed]


def shrink_run(
    run: Path, target: str, brokers: int, rate: float, tell: Callable[[str], None]
) -> int:
    """Shrink the schedule of a run that failed, and write ``shrunk.json`` beside it."""
    try:
        schedule = Schedule.from_json((run / "schedule.json").read_text(encoding="utf-8"))
        rules = _rules_of(run)
    except (OSError, ValueError) as error:
        raise UsageFault(f"--shrink {run}: no run of chaos: {error}.") from None
    if not rules:
        raise UsageFault(f"--shrink {run}: that run broke no rule.")
    replays = _Replays(target, brokers, rate, schedule, run / "shrinking", ExitStack())
    with replays as plays:

        def fails(candidate: Schedule) -> bool:
            if plays.broken(candidate).isdisjoint(rules):
                return False
            # Whatever fails is the smallest so far, and worth keeping should we be interrupted.
            (run / SHRUNK).write_text(candidate.to_json(), encoding="utf-8")
            return True

        found = shrink(schedule, fails, tries=TRIES, replays=REPLAYS, tell=tell, most=MOST)
    print(f"{', '.join(rules)}: {described(found.schedule)}")
    print(f"{found.reliability}, after {found.tried} plays")
    print(f"shareproof chaos --target {target} --schedule {run / SHRUNK}")
    return BROKEN if found.failed else OK


def _quiet(_: str) -> None:
    return
