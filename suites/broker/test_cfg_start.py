"""Brokers that must not start: properties that do not fit their own bounds, or each other.

Each is a broker of its own that gives up within a second. Which bound is crossed is drawn by lot,
so that a run needs one start for each key.
"""

from fixtures.targets import TargetOptions
from spec.verdict import EnvironmentFault
from suites import clusters
from suites.broker.kit import *

Properties = Mapping[str, str]

pytestmark = [pytest.mark.solo, pytest.mark.timeout(120)]


def _outside(key: str, low: int, high: int) -> tuple[Properties, Properties]:
    """Return properties that put a default below its lower bound, and above its upper one."""
    name = f"group.share.{key}"
    least, most = (f"group.share.{end}.{key}" for end in ("min", "max"))
    return (
        {name: str(low - 1), least: str(low), most: str(high)},
        {name: str(high + 1), least: str(low), most: str(high)},
    )


BEATS = _outside("heartbeat.interval.ms", 1000, 9000)
SESSIONS = _outside("session.timeout.ms", 20_000, 40_000)
LOCKS = _outside("record.lock.duration.ms", 20_000, 40_000)
LIMITS = _outside("delivery.count.limit", 4, 6)
WINDOWS = _outside("partition.max.record.locks", 500, 3000)
INTERVALS = _outside("assignment.interval.ms", 1000, 5000)


async def _refused(options: RunOptions, judge: Judge, properties: Properties) -> None:
    """Demand that a broker with these properties gives up and names one of them."""
    given = ", ".join(f"{name}={value}" for name, value in properties.items())
    try:
        with contextlib.ExitStack() as stack:
            own = clusters.own_cluster(options, TargetOptions(properties=properties))
            await asyncio.to_thread(stack.enter_context, own)
    except EnvironmentFault as fault:
        if not any(name in str(fault) for name in properties):
            raise Undecided(f"a broker with {given} ended for another reason: {fault}") from None
        judge.holds(True, f"the broker gave up: {given}")
    else:
        judge.holds(False, f"a broker started with {given}")


@check("CFG-06")
@pytest.mark.parametrize("outside", [BEATS, SESSIONS, LOCKS], ids=[HEARTBEAT, SESSION, LOCK])
async def test_default_outside_its_bounds(
    run_options: RunOptions, judge: Judge, rng: Random, outside: tuple[Properties, Properties]
) -> None:
    await _refused(run_options, judge, rng.choice(outside))


@check("CFG-29")
async def test_session_within_the_heartbeat(run_options: RunOptions, judge: Judge) -> None:
    same = {"group.share.session.timeout.ms": "9000", "group.share.heartbeat.interval.ms": "9000"}
    await _refused(run_options, judge, same)


@check("CFG-07")
async def test_fewer_sessions_than_members(run_options: RunOptions, judge: Judge) -> None:
    crossed = {"group.share.max.share.sessions": "99", "group.share.max.size": "100"}
    await _refused(run_options, judge, crossed)


@check("CFG-08")
@pytest.mark.parametrize(
    "outside",
    [LIMITS, WINDOWS, INTERVALS],
    ids=["delivery-limit", "record-locks", "assignment-interval"],
)
async def test_later_defaults_outside_their_bounds(
    run_options: RunOptions, judge: Judge, rng: Random, outside: tuple[Properties, Properties]
) -> None:
    await _refused(run_options, judge, rng.choice(outside))


@check("CFG-30")
async def test_too_many_updates_to_a_snapshot(run_options: RunOptions, judge: Judge) -> None:
    name = "share.coordinator.snapshot.update.records.per.snapshot"
    await _refused(run_options, judge, {name: "501"})
