"""A broker freezes, is taken for dead, and wakes up: the zombie, and the path that was cut."""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import Pulse, cast, judge_member, judge_progress
from suites.broker.kit import *

CUT_FOR = 1.0  # Seconds without a share coordinator in which nobody else can have become one.
HELD_UP = 10.0
"""Seconds for which every attempt at a state write may be held up; then a leader may give up."""
SHORT_LOCK_MS = 3000  # A lock that runs out while its leader is frozen, so that its timer is late.


@check(
    "COO-01",
    "COO-02",
    "COO-03",
    "COO-13",
    "COO-21",
    "COO-22",
    "COO-23",
    "COO-28",
    "COO-29",
    meets="reload",
    timeout=120,
)
async def test_broker_frozen(stage: FailoverCluster, judge: Judge) -> None:
    roles = await cast(stage)
    pulses = [await Pulse.of(stage, s.holder.member) for s in (roles.grouped, roles.whole)]
    lock = stage.env.bounds.lock(SHORT_LOCK_MS)
    queue = await stage.queue(roles.victim, roles.near, state=roles.far, lock_ms=lock)
    expiring = await prepared(queue, lock)

    frozen = time.monotonic()
    stage.pause(roles.victim)
    zombies = [(scene, scene.send(accept(12, 13))) for scene in (roles.led, expiring)]
    cut = roles.kept.send(accept(12, 13))
    await asyncio.wait([cut], timeout=CUT_FOR)
    part = cut.result() if cut.done() else None
    soon = f"an ACCEPT was answered NONE within {CUT_FOR:g} s, its share coordinator being frozen"
    late = time.monotonic() - frozen > 2 * CUT_FOR  # then somebody else may have taken over
    judge["COO-29"].holds(late or part is None or part.ack_error, soon)
    heirs = [await judge_new_leader(judge, scene) for scene in (roles.led, roles.whole, expiring)]
    # The heir's own locks are as short; what it has settled is what late timers must not undo.
    if (told := await _settled(expiring, heirs[-1])) != "NONE":
        raise Undecided(f"before anybody woke, an ACCEPT of the new holder got {told}")
    for pulse in pulses:
        await judge_member(judge, pulse)

    stage.resume(roles.victim)
    held_up = time.monotonic() - frozen
    for scene, task in zombies:
        # Nothing comes where our patience, or the connection, ended first.
        told = scene.answered([12, 13], await task)
        judge["COO-28"].holds(told != "NONE", "a leader that was replaced answered NONE")
    for scene, heir in zip((roles.led, roles.whole), heirs, strict=False):
        judge["COO-28"].equal("NONE", await _settled(scene, heir), "ACCEPT of the new holder")
    for scene in (roles.led, roles.whole, expiring):
        scene.queue = await moved(await located(scene.queue))
        await judge_open(judge["COO-28"], scene, [])
    # The partition works on once the cut has healed.
    scene = roles.kept
    answered = scene.answered([12, 13], await cut)
    scene.queue = await moved(await located(scene.queue))
    seen = await judge_open(judge["COO-29"], scene, scene.open)
    await judge_progress(judge["COO-29"], seen.roamer)
    if answered != "NONE" and held_up > HELD_UP:
        raise Undecided(f"a state write that was held up for {held_up:.0f} s got {answered!r}")
    judge["COO-13"].equal("NONE", answered, "result of an ACCEPT whose state write was held up")


async def _settled(scene: MixedStates, heir: ReconnectingConsumer) -> str:
    """Let the one who has the records now settle them; return the result, if it lasts."""
    mine = set(heir.held)
    if (told := await heir.finish()) in {"", "REQUEST_TIMED_OUT", *map(error_name, PASSING)}:
        raise Undecided(f"a leader or its share coordinator was not there: {told!r}")
    scene.settled |= mine
    scene.doubtful -= mine
    return told
