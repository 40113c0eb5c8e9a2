"""What a judge finds in a scenario, and the observation that it becomes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spec.verdict import Observation, Verdict
from suites.app.played import Played

WITNESSES = 3

STARVED = 0.1
"""More than so much of the time on a busy machine makes what is a little late undecided."""


@dataclass(slots=True)
class Finding:
    """What a scenario says about a rule: what exercised it, and what broke it.

    ``stuck`` says that it is broken by what never happened, which may be the brokers' fault.
    ``clear`` says that a machine that is slow is no excuse for what broke it.
    ``needless`` says that the program has nothing that the rule is about, and why.
    """

    evidence: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    stuck: bool = False
    needless: str = ""
    clear: bool = True

    def saw(self, holds: object, sentence: str, what: str) -> None:
        """Count one case, and keep what is wrong with it if the rule is broken."""
        self.evidence[what] += 1
        if not holds:
            self.broken.append(sentence)


def observation(rule: str, found: Finding, seen: Played, *, owed: bool = True) -> Observation:
    """Return what a scenario says about a rule; ``owed`` if the program claims what it is about."""
    verdict, reason = _verdict(found, seen)
    return Observation(
        requirement=rule,
        check=f"suites/app/scenarios::{seen.scenario.name}",
        verdict=verdict,
        reason=reason,
        evidence={name: count for name, count in found.evidence.items() if count},
        witness=tuple(found.broken[:WITNESSES]),
        excused=verdict is Verdict.VACUOUS and bool(found.needless) and not owed,
        situations=(seen.scenario.name,) if verdict is Verdict.PASS else (),
    )


def _verdict(found: Finding, seen: Played) -> tuple[Verdict, str]:
    if found.broken and found.stuck and not seen.healthy:
        return Verdict.UNKNOWN, (
            "records stopped coming, and a new topic and group on the same broker got none either"
        )
    if found.broken and not found.clear and seen.starved > STARVED:
        return Verdict.UNKNOWN, (
            f"locks ended a little too soon, while this machine was busy with something else for "
            f"{seen.starved:.0%} of the time"
        )
    if found.broken:
        return (
            Verdict.FAIL,
            f"{len(found.broken)} cases break the rule, the first: {found.broken[0]}",
        )
    if not found.evidence:
        return Verdict.VACUOUS, found.needless or "nothing put the rule to the test"
    return Verdict.PASS, ""
