"""Shrinking a schedule that makes a run fail: fewer injections, then shorter ones, then less load.

Pure: the caller plays a schedule, and says whether it fails. A run under faults is no
function of its schedule, so a schedule that once did not fail may fail the next time: each
candidate is played several times, and counts as failing when one of them fails. What is left is
played again, to say how reliably it fails.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from chaos.schedule import Schedule

Fails = Callable[[Schedule], bool]
Log = Callable[[str], None]

_AFTER = 4.0  # Seconds of load that are left after the last injection.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """The smallest schedule that still fails, and how many of its last plays failed."""

    schedule: Schedule
    failed: int
    played: int
    tried: int

    @property
    def reliability(self) -> str:
        """How reliably it fails, in words."""
        return f"fails {self.failed} of {self.played}"


def shrink(
    schedule: Schedule, fails: Fails, *, tries: int, replays: int, log: Log, most: int = 60
) -> Shrunk:
    """Return a smaller schedule that still fails, and how reliably.

    Args:
        schedule: what failed.
        fails: plays a schedule and tells whether it failed.
        tries: how often a candidate is played before it counts as passing.
        replays: how often the result is played again.
        log: takes a line for each candidate.
        most: how many plays are spent on candidates.
    """
    spent = 0

    def still_fails(candidate: Schedule) -> bool:
        nonlocal spent
        for _ in range(tries):
            if spent >= most:
                return False
            spent += 1
            if fails(candidate):
                log(f"still fails: {described(candidate)}")
                return True
        log(f"passes: {described(candidate)}")
        return False

    best = _fewer(schedule, still_fails)
    best = _shorter(best, still_fails)
    failed = sum(fails(best) for _ in range(replays))
    return Shrunk(schedule=best, failed=failed, played=replays, tried=spent)


def described(schedule: Schedule) -> str:
    what = ", ".join(f"{s.fault} at {s.at:g} s for {s.lasts:g} s" for s in schedule.injections)
    return f"{what or 'nothing'}, in {schedule.seconds:g} s"


def _fewer(schedule: Schedule, fails: Fails) -> Schedule:
    """Leave out halves, quarters and so on of the injections, as delta debugging does."""
    pieces = 2
    while len(schedule.injections) > 0:
        smaller = next((one for one in _without(schedule, pieces) if fails(one)), None)
        if smaller is not None:
            schedule, pieces = smaller, max(2, pieces - 1)
        elif pieces >= len(schedule.injections):
            break
        else:
            pieces = min(len(schedule.injections), pieces * 2)
    return schedule


def _without(schedule: Schedule, pieces: int) -> Iterator[Schedule]:
    injections = schedule.injections
    size = -(-len(injections) // pieces)
    for start in range(0, len(injections), size):
        yield replace(schedule, injections=injections[:start] + injections[start + size :])


def _shorter(schedule: Schedule, fails: Fails) -> Schedule:
    """End the load soon after the last injection, then halve each injection."""
    end = max((one.ends for one in schedule.injections), default=0.0) + _AFTER
    if end < schedule.seconds:
        sooner = replace(schedule, seconds=end)
        schedule = sooner if fails(sooner) else schedule
    for index, planned in enumerate(schedule.injections):
        if planned.lasts / 2 >= 0.5:
            injections = list(schedule.injections)
            injections[index] = replace(planned, lasts=round(planned.lasts / 2, 1))
            halved = replace(schedule, injections=tuple(injections))
            schedule = halved if fails(halved) else schedule
    return schedule
