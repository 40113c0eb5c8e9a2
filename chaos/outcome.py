"""What came of a run: which injections hit, which could not, and whether it tested anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chaos.play import InjectionResult
from chaos.schedule import Schedule
from fixtures.workload.plan import Loaded

_AFTERMATH = 5_000_000_000
"""Nanoseconds for which a fault that was healed may still be in the way of the next one."""


def in_the_way(missed: InjectionResult, injections: Sequence[InjectionResult]) -> str:
    """Return the names of the faults that kept an injection from hitting, or nothing.

    Strikes overlap on purpose, and now and then one takes away what another one wanted to break:
    no topic can be recreated while the disk of its leader is full. Only a fault that did hit,
    and that was under way or just healed, is in the way of another one.
    """
    others = (
        one
        for one in injections
        if one is not missed
        and one.hit
        and one.since < missed.until
        and missed.since < one.until + _AFTERMATH
    )
    return ", ".join(dict.fromkeys(one.strike.fault for one in others))


def verdict(injections: Sequence[InjectionResult], *, scenario: bool) -> str:
    """Return ``vacuous`` if a run did not break what it was to break, else ``pass``.

    That is a run of which no injection was seen to hit, and a scenario that has to do without one
    of its kinds of fault: it is about them.
    """
    hit = {one.strike.fault for one in injections if one.hit}
    wanted = {one.strike.fault for one in injections}
    missed = not hit >= wanted if scenario else bool(wanted and not hit)
    return "vacuous" if missed else "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosResult:
    """What came of a run.

    ``trouble`` says what went wrong that no fault explains, ``notes`` what else is worth knowing.
    """

    loaded: Loaded
    injections: tuple[InjectionResult, ...]
    trouble: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_document(
        self, schedule: Schedule, *, scenario: str, owed: Sequence[str], judged: float
    ) -> dict[str, Any]:
        """Return it as ``chaos.json`` keeps it, and as an entry of ``chaos`` in results.json."""
        return {
            "scenario": scenario,
            "seed": schedule.seed,
            "seconds": schedule.seconds,
            "verdict": verdict(self.injections, scenario=bool(scenario)),
            "owed": list(owed),
            "judged": judged,
            "produced": self.loaded.produced,
            "delivered": self.loaded.delivered,
            "drained": self.loaded.drained,
            "trouble": list(self.trouble),
            "notes": list(self.notes),
            "faults": [self._strike(one) for one in self.injections],
        }

    def _strike(self, one: InjectionResult) -> dict[str, Any]:
        return {
            "fault": one.strike.fault,
            "subject": one.subject,
            "at": one.strike.at,
            "lasts": one.strike.lasts,
            "since": one.since,
            "until": one.until,
            "hit": one.hit,
            "healed": one.healed,
            "trouble": one.trouble,
            "blocked_by": "" if one.hit else in_the_way(one, self.injections),
        }
