"""A scenario that was played: all that its rules are judged by, and nothing that still changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from suites.app.deliveries import Deliveries, Delivery, Place
from suites.app.load import Sent
from suites.app.program import Fault
from suites.app.scenarios import Scenario
from suites.app.stage import LEFT, Stage
from suites.client.wire import HEARTBEAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One process of the program. ``ended`` is None if it ran until the scenario was over.

    ``asked`` says that the scenario itself ended it.
    """

    ended: float | None
    code: int | None
    asked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What heartbeats of one member told: its group, its first one, and when it left."""

    member: str
    group: str
    first: float
    left: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What happened. Times are seconds on the monotonic clock.

    Attributes:
        sent: The records that were produced.
        deliveries: What became of each delivery to the group.
        outputs: When the first write about a record to the output topic was confirmed, by key.
        dead: The same for the topic of dead letters.
        writes_output: Whether the program ever wrote to the output topic.
        writes_dead: Whether it ever wrote to that of dead letters.
        limit: The group's delivery count limit.
        attempts: The delivery by which the program declares to finish what fails; 0 is none.
        grace: Seconds that the program may take to end.
        stopping: When it was asked to stop.
        over: When the scenario was over.
        moving: Whether records still came then.
        refused: How many writes to the output topic were refused.
        starved: The part of the time, from 0 to 1, that this machine kept the suite waiting.
        healthy: Whether the brokers still delivered to others then.
    """

    scenario: Scenario
    group: str
    sent: Mapping[Place, Sent]
    deliveries: Deliveries
    outputs: Mapping[str, float] = field(default_factory=dict)
    dead: Mapping[str, float] = field(default_factory=dict)
    writes_output: bool = False
    writes_dead: bool = False
    instances: Sequence[Instance] = ()
    beats: Sequence[Beat] = ()
    faults: Sequence[Fault] = ()
    limit: int = 5
    attempts: int = 0
    grace: float = 20.0
    stopping: float | None = None
    over: float = 0.0
    moving: bool = False
    refused: int = 0
    starved: float = 0.0
    healthy: bool = True

    def records(self, *, poison: bool) -> Iterator[tuple[Sent, list[Delivery]]]:
        """Yield the poison records, or the others, with their deliveries."""
        for place, one in self.sent.items():
            if one.poison is poison:
                yield one, self.deliveries.of.get(place, [])

    def finished(self, one: Sent) -> bool:
        """Tell whether a record is accepted, rejected or archived."""
        return self.deliveries.finished(one.place, self.limit, self.over)

    @property
    def unfinished(self) -> list[Sent]:
        """The records that are not finished."""
        return [one for one in self.sent.values() if not self.finished(one)]

    @property
    def crashed(self) -> list[Instance]:
        """The processes that ended and were not asked to."""
        return [one for one in self.instances if one.ended is not None and not one.asked]


def played(stage: Stage, scenario: Scenario, *, healthy: bool) -> Played:
    """Return what happened on a stage."""
    return Played(
        scenario=scenario,
        group=stage.group,
        sent=dict(stage.source.sent),
        deliveries=stage.deliveries(),
        outputs=stage.written(stage.output),
        dead=stage.written(stage.dead_letters),
        writes_output=stage.writes_to(stage.output),
        writes_dead=stage.writes_to(stage.dead_letters),
        instances=[
            Instance(ended=one.ended, code=one.code, asked=one.asked) for one in stage.programs
        ],
        beats=_beats(stage),
        faults=tuple(stage.faults),
        limit=stage.limit,
        attempts=stage.trial.attempts,
        grace=stage.trial.grace,
        stopping=stage.stopping,
        over=stage.over,
        moving=stage.moving,
        refused=stage.refuser.refused,
        starved=stage.starving.share,
        healthy=healthy,
    )


def _beats(stage: Stage) -> list[Beat]:
    found: dict[str, Beat] = {}
    for one in stage.tap.of(HEARTBEAT):
        member = one.request["member_id"]
        before = found.get(member)
        left = before.left if before else None
        if one.request["member_epoch"] == LEFT:
            left = one.sent
        found[member] = Beat(
            member=member,
            group=one.request["group_id"],
            first=before.first if before else one.sent,
            left=left,
        )
    return list(found.values())
