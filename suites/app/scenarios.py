"""What is done to a program, scenario by scenario; the rules each is there for; what happened."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from signal import Signals

from suites.app.deliveries import Deliveries, Delivery, Place
from suites.app.environment import Environment, Fault
from suites.app.load import Sent, confirmed
from suites.client.wire import HEARTBEAT

FROZEN = 3.0  # Seconds that a broker is frozen.
REFUSED = 3  # Writes to the output topic that are refused.
LOST = 2  # Responses to acknowledgements that are lost.
DENIED = 3.0  # Seconds without permission.
LONGER = 0.5  # Seconds for which a paused program stands still when its locks have ended.

# What READ on the group is for.
GROUP_READS = ["ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"]
LEAVE_EPOCH = -1  # The member epoch of a heartbeat that leaves the group.
Play = Callable[[Environment], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    sentence: str  # What happens in it.
    play: Play  # Does it.
    rules: tuple[str, ...]  # Those that it is there to put to the test.
    undisturbed: bool = False  # Whether nothing is done to the program, its brokers or its links.
    small: bool = False  # Whether locks are as short as the target allows from 3 s on.


SCENARIOS: dict[str, Scenario] = {}  # The scenarios by name, in their order.

# Rules that each scenario puts to the test, whatever else it is there for.
ALWAYS = ("FRM-01", "FRM-04", "FRM-05", "FRM-09", "FRM-10")


def _scenario(
    name: str, *rules: str, undisturbed: bool = False, small: bool = False
) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        SCENARIOS[name] = Scenario(
            name=name,
            sentence=" ".join((play.__doc__ or "").split()),
            play=play,
            rules=tuple(sorted({*rules, *ALWAYS})),
            undisturbed=undisturbed,
            small=small,
        )
        return play

    return register


@_scenario("calm", "FRM-02", "FRM-03", "FRM-07", "FRM-11", undisturbed=True)
async def calm(env: Environment) -> None:
    """Nothing is done; some of the records are poison."""
    await env.source.produce(env.spec.records)
    await env.start()
    await env.drained()


@_scenario("small-lock", "FRM-02", "FRM-03", "FRM-07", undisturbed=True, small=True)
async def small_lock(env: Environment) -> None:
    """Nothing is done, and locks last three seconds, or as short as the target allows."""
    await calm(env)


@_scenario("two-instances", "FRM-03", "FRM-07", "FRM-13", undisturbed=True)
async def two_instances(env: Environment) -> None:
    """Two instances of the program run at once."""
    await env.start()
    await env.start()
    await env.source.produce(env.spec.records)
    await env.drained()


@_scenario("leader-moves", "FRM-11")
async def leader_moves(env: Environment) -> None:
    """The leader of a partition moves while the program holds records."""
    if await _begun(env):
        await env.move_leader()
    await _rest(env)


@_scenario("broker-frozen", "FRM-11")
async def broker_frozen(env: Environment) -> None:
    """A broker that leads a partition is frozen for three seconds."""
    if await _begun(env):
        env.note("broker frozen")
        env.freezer.freeze(env.topic.leaders[0])
        await env.let_last(FROZEN)
        env.freezer.thaw()
    await _rest(env)


@_scenario("responses-lost", "FRM-11")
async def responses_lost(env: Environment) -> None:
    """Two connections end before the responses to acknowledgements arrive."""
    step = {"on": ["ShareAcknowledge", "ShareFetch"], "when": {"has": "acks"}}
    env.note("responses lost")
    (lost,) = env.tap.script.add({**step, "do": "close", "times": LOST})
    await _begun(env)
    await env.until(lambda: lost.taken, env.spec.patience)
    await _rest(env)


@_scenario("partition-added", "FRM-11")
async def partition_added(env: Environment) -> None:
    """A partition is added to the topic while the program holds records."""
    if await _begun(env):
        await env.add_partition()
    await _rest(env)


@_scenario("permission-lost", "FRM-11")
async def permission_lost(env: Environment) -> None:
    """READ on the group is taken away, and given back after three seconds, or when it has ended."""
    if await _begun(env):
        env.note("permission taken away")
        deny = {"do": "error", "code": "GROUP_AUTHORIZATION_FAILED", "times": 0, "applied": False}
        denied = env.tap.script.add({"on": GROUP_READS, **deny})
        await env.let_last(DENIED)
        env.tap.script.drop(denied)
        if not env.programs[-1].running:  # a program may end when it is denied
            env.programs[-1].asked = True
            await env.start()
    await _rest(env)


@_scenario("output-refused")
async def output_refused(env: Environment) -> None:
    """Three writes to the output topic fail."""
    env.note("writes refused")
    env.refuser.left = REFUSED
    await calm(env)


@_scenario("terminated", "FRM-06", "FRM-08", "FRM-12")
async def terminated(env: Environment) -> None:
    """The program gets SIGTERM while it holds records, and is started again when it has ended."""
    if await _begun(env):
        await _terminate(env)
    await _rest(env)


@_scenario("terminated-at-work", "FRM-08", "FRM-12", "FRM-14")
async def terminated_at_work(env: Environment) -> None:
    """The program gets SIGTERM after its first results, and is started again when it has ended."""
    if await _begun(env) and await env.acting():
        await _terminate(env)
    await _rest(env)


@_scenario("killed", "FRM-08")
async def killed(env: Environment) -> None:
    """The program gets SIGKILL in the middle of its records, and is started again."""
    if await _begun(env) and await env.acting():
        env.signal(Signals.SIGKILL)
        await env.programs[-1].ends(env.spec.grace)
        await env.start()
    await _rest(env)


@_scenario("paused", "FRM-11", small=True)
async def paused(env: Environment) -> None:
    """The program gets SIGSTOP while it holds records, and goes on when their locks have ended."""
    if await _begun(env):
        env.signal(Signals.SIGSTOP)
        await env.let_last(env.lock + LONGER)
        env.signal(Signals.SIGCONT)
    await _rest(env)


async def _begun(env: Environment) -> bool:
    await env.source.produce(env.spec.records // 2)
    await env.start()
    return await env.caught()


async def _terminate(env: Environment) -> None:
    env.stopping = time.monotonic()
    env.signal(Signals.SIGTERM)
    program = env.programs[-1]
    if not await program.ends(env.spec.grace):
        program.signal(Signals.SIGKILL)
        await program.ends(env.spec.grace)
    await env.start()


async def _rest(env: Environment) -> None:
    await env.source.produce(env.spec.records - len(env.source.sent))
    await env.drained()


# --- What happened ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    ended: float | None  # None if it ran until the scenario was over.
    code: int | None
    asked: bool  # Whether the scenario itself ended it.


@dataclass(slots=True, kw_only=True)
class Membership:
    member: str
    group: str
    first: float
    left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """What rules are judged by: nothing in it changes. Times are of the monotonic clock."""

    scenario: Scenario
    group: str
    sent: Mapping[Place, Sent]  # The records that were produced.
    deliveries: Deliveries
    # When the first write about a record to the output topic, or to that of dead letters, was
    # confirmed, by key.
    outputs: Mapping[str, float] = field(default_factory=dict)
    dead: Mapping[str, float] = field(default_factory=dict)
    writes_output: bool = False  # Whether the program ever wrote to the output topic.
    writes_dead: bool = False  # Whether it ever wrote to that of dead letters.
    instances: Sequence[Instance] = ()
    members: Sequence[Membership] = ()
    faults: Sequence[Fault] = ()
    limit: int = 5  # The group's delivery count limit.
    attempts: int = 0  # The delivery by which the program declares to finish what fails; 0 is none.
    grace: float = 20.0  # Seconds that the program may take to end.
    stopping: float | None = None  # When it was asked to stop.
    over: float = 0.0  # When the scenario was over.
    moving: bool = False  # Whether records still came then.
    refused: int = 0  # How many writes to the output topic were refused.
    # The part of the time, from 0 to 1, that this machine kept the suite waiting.
    starved: float = 0.0
    healthy: bool = True  # Whether the brokers still delivered to others then.

    def records(self, *, poison: bool) -> Iterator[tuple[Sent, list[Delivery]]]:
        for place, one in self.sent.items():
            if one.poison is poison:
                yield one, self.deliveries.of.get(place, [])

    def finished(self, one: Sent) -> bool:
        return self.deliveries.finished(one.place, self.limit, self.over)

    @property
    def crashed(self) -> list[Instance]:
        return [one for one in self.instances if one.ended is not None and not one.asked]


def result_of(env: Environment, scenario: Scenario, *, healthy: bool) -> ScenarioResult:
    writes = env.tap.of("Produce")
    members: dict[str, Membership] = {}
    for one in env.tap.of(HEARTBEAT):
        id_, group = one.request["member_id"], one.request["group_id"]
        member = members.setdefault(id_, Membership(member=id_, group=group, first=one.sent))
        member.group = group
        if one.request["member_epoch"] == LEAVE_EPOCH:
            member.left = one.sent
    return ScenarioResult(
        scenario=scenario,
        group=env.group,
        sent=dict(env.source.sent),
        deliveries=env.deliveries(),
        outputs=confirmed(writes, env.output, env.source),
        dead=confirmed(writes, env.dead_letters, env.source),
        writes_output=env.writes_to(env.output),
        writes_dead=env.writes_to(env.dead_letters),
        instances=[Instance(ended=p.ended, code=p.code, asked=p.asked) for p in env.programs],
        members=[*members.values()],
        faults=tuple(env.faults),
        limit=env.limit,
        attempts=env.spec.attempts,
        grace=env.spec.grace,
        stopping=env.stopping,
        over=env.over,
        moving=env.moving,
        refused=env.refuser.refused,
        starved=env.delay.part,
        healthy=healthy,
    )
