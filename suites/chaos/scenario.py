"""What a scenario is: what breaks when, under which load, and which rules that puts to the test."""

from dataclasses import dataclass

from chaos.schedule import ScheduledFault

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
    """One scenario.

    Attributes:
        name: What it is called.
        sentence: What happens.
        injections: What breaks, and when.
        rules: What it has to put to the test; what it exercises beyond is judged as well.
        judged: Which share of the cases of these rules it may not excuse.
        seconds: How long records are produced.
        rate: Records a second.
        lock_ms: How long locks last.
        members: Which members there are.
        release: The Kafka that it begins with, if that is not the one that is asked for.
    """

    name: str
    sentence: str
    injections: tuple[ScheduledFault, ...]
    rules: tuple[str, ...] = (*SAFE, *LIVE)
    seconds: float = 25.0
    rate: float = 600.0
    lock_ms: int = 5000
    members: str = MIXED
    release: str = ""
    judged: float = 0.9
