"""The scenarios of ``scenarios.toml``: what breaks when, and the rules that this puts to the test.

All are data. A scenario's name says what it is about; times are seconds after the load began.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from typing import Any

from chaos.capabilities import needed, offered
from chaos.faults.restart import FROM
from chaos.schedule import ScheduledFault
from fixtures.interface.capability import Capability
from fixtures.interface.names import no_such
from fixtures.targets import DEFAULT_TARGET

SAFE = ("INV-01", "INV-02", "INV-04", "INV-05")
LIVE = ("INV-24", "INV-25")
STORED = ("INV-21", "INV-22")
COUNTED = ("INV-12", "INV-13")
LOCKED = ("INV-01", "INV-18", "INV-23")

CALM, MIXED, TARDY, DYING, SLOW = "calm", "mixed", "tardy", "dying", "slow"
"""Members that accept at once, members that do whatever acknowledging offers, members that say
nothing for ten seconds, so that locks run out and counts rise, members that crash while they keep
some records and have let others go, and members that nearly always hold some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str  # What it is called.
    sentence: str  # What happens.
    injections: tuple[ScheduledFault, ...]  # What breaks, and when.
    # What it has to put to the test; what it exercises beyond is judged as well.
    rules: tuple[str, ...] = (*SAFE, *LIVE)
    seconds: float = 25.0  # How long records are produced.
    rate: float = 600.0  # Records a second.
    lock_ms: int = 5000  # How long locks last.
    members: str = MIXED  # Which members there are.
    release: str = ""  # The Kafka that it begins with, if that is not the one that is asked for.
    judged: float = 0.9  # Which share of the cases of these rules it may not excuse.


ALL, SOME = "all", "some"

_SETS = {"SAFE": SAFE, "LIVE": LIVE, "STORED": STORED, "COUNTED": COUNTED, "LOCKED": LOCKED}


def _read() -> Iterator[Scenario]:
    file = resources.files("suites") / "chaos" / "scenarios.toml"
    for name, raw in tomllib.loads(file.read_text(encoding="utf-8")).items():
        fields: dict[str, Any] = {**raw, "name": name}
        fields["injections"] = tuple(_planned(*one) for one in fields.pop("strikes", ()))
        if rules := raw.get("rules"):
            sets = (_SETS.get(rule, (rule,)) for rule in rules)
            fields["rules"] = tuple(chain.from_iterable(sets))
        if "release" in raw:
            fields["release"] = FROM
        yield Scenario(**fields)


def _planned(at: float, fault: str, lasts: float, subject: int = 0) -> ScheduledFault:
    return ScheduledFault(fault=fault, at=at, lasts=lasts, subject=subject)


SCENARIOS: Mapping[str, Scenario] = {one.name: one for one in _read()}
TEN_MINUTES = (
    "leader-change",
    "coordinator-write-failure",
    "lock-expiry",
    "compaction-gaps",
    "records-deleted",
    "leader-killed",
    "leader-zombie",
    "share-coordinator-killed",
    "share-coordinator-cut",
    "group-coordinator-killed",
    "client-link-cut",
    "members-die",
)
"""What ``some`` stands for: one scenario of each kind, for which ten minutes are enough."""

SHORT, SHORT_CONTAINED = "short", "short-unplugged"
"""The scenarios that stand for all where there is time for one only; one is for containers."""


def chosen(names: Sequence[str], target: str = DEFAULT_TARGET) -> list[Scenario]:
    """Return the scenarios of these names, of ``all`` or of ``some``; raises UsageFault."""
    if ALL in names:
        # Whoever lacks a C compiler is fields so, not given fewer scenarios.
        offers = offered(target) | {Capability.CLOCK_LIBRARY}
        every = [one for one in SCENARIOS.values() if not one.release]
        return [one for one in every if offers.issuperset(needed(s.fault for s in one.injections))]
    wanted = [one for name in names for one in (TEN_MINUTES if name == SOME else (name,))]
    for name in wanted:
        if name not in SCENARIOS:
            raise no_such(name, "scenario", SCENARIOS, "shareproof chaos --list-scenarios")
    return [SCENARIOS[name] for name in dict.fromkeys(wanted)]
