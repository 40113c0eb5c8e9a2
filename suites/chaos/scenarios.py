"""The scenarios: what breaks when, under which load, and the rules that this puts to the test.

All are data. A scenario's name says what it is about; the times are seconds after the load began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos.fitting import needed, offered
from fixtures.interface.capability import Capability
from fixtures.targets import DEFAULT_TARGET, UsageFault
from suites.chaos.around import AROUND
from suites.chaos.scenario import (
    COUNTED,
    LIVE,
    LOCKED,
    SAFE,
    STORED,
    TARDY,
    Scenario,
    every,
    strike,
)
from suites.chaos.unplugged import UNPLUGGED

ALL, SOME = "all", "some"

_SCENARIOS = (
    Scenario(
        name="leader-change",
        sentence="Leaders are elected away again and again while records are in flight.",
        rules=(*SAFE, *COUNTED, *STORED, *LIVE),
        strikes=every("elect-leader", 3, 5, 7, 9, 11, 13, 15, 17),
    ),
    Scenario(
        name="coordinator-write-failure",
        sentence="State writes are refused, lost and delayed, across the ends of locks.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(
            strike(3, "fail-state-writes", 4),
            strike(9, "lose-state-answers", 4, 1),
            strike(15, "delay-state-writes", 4, 1),
        ),
        lock_ms=2000,
    ),
    Scenario(
        name="lock-expiry",
        sentence="Consumers sleep longer than their locks last, and acknowledge when they wake.",
        rules=(*SAFE, *LOCKED, *LIVE),
        strikes=(strike(3, "pause-consumers", 4), strike(9, "pause-consumers", 4, 1)),
        lock_ms=2000,
    ),
    Scenario(
        name="compaction-gaps",
        sentence="Compaction takes records that consumers hold, release or have not got to yet.",
        rules=(*SAFE, *LIVE),
        strikes=(
            strike(3, "pause-consumers", 4),
            strike(3.5, "compact", 3),
            strike(11, "compact", 3, 1),
            strike(15, "elect-leader", 0.5),
            strike(16, "compact", 3, 2),
        ),
        lock_ms=2000,
        rate=300,
    ),
    Scenario(
        name="records-deleted",
        sentence="The log's start moves past records that are held, released or not yet seen.",
        rules=(*SAFE, *LIVE),
        strikes=(
            strike(3, "pause-consumers", 4),
            strike(5, "delete-records", 0.5),
            strike(9, "delete-records", 0.5, 1),
            strike(12, "pause-consumers", 4, 1),
            strike(13, "expire-records", 5),
        ),
        lock_ms=2000,
    ),
    Scenario(
        name="locks-changed",
        sentence="How long locks last changes while they are held and run out.",
        rules=(*SAFE, *LOCKED, *LIVE),
        strikes=(
            strike(3, "change-lock-duration", 5, 0),
            strike(5, "pause-consumers", 5),
            strike(12, "change-lock-duration", 5, 1),
        ),
        lock_ms=4000,
    ),
    Scenario(
        name="rolling-restart",
        sentence="Every broker is restarted in turn.",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(4, "rolling-restart", 15),),
    ),
    Scenario(
        name="leader-killed",
        sentence="The leader of a partition dies without a goodbye.",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(5, "kill-leader", 8),),
    ),
    Scenario(
        name="leader-stopped",
        sentence="The leader of a partition leaves in order.",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(5, "stop-leader", 5),),
    ),
    Scenario(
        name="leader-zombie",
        sentence="A leader freezes, is replaced, and wakes up with requests in its buffers.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "pause-leader", 11),),
    ),
    Scenario(
        name="leader-blink",
        sentence="A leader freezes for less than it takes to be taken for dead.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "pause-leader", 3), strike(14, "pause-leader", 3, 1)),
    ),
    Scenario(
        name="leader-reassigned",
        sentence="A partition's replica is taken from its leader, and given back.",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(4, "reassign-leader", 4), strike(14, "reassign-leader", 4, 1)),
    ),
    Scenario(
        name="share-coordinator-killed",
        sentence="The broker that keeps the state of a share-partition dies.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "kill-share-coordinator", 8),),
    ),
    Scenario(
        name="share-coordinator-moved",
        sentence="The state moves from broker to broker.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=every("elect-share-coordinator", 3, 5, 7, 9, 11, 13, 15, 17),
    ),
    Scenario(
        name="share-coordinator-frozen",
        sentence="The share coordinator freezes for longer than locks last.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "pause-share-coordinator", 9),),
        lock_ms=3000,
    ),
    Scenario(
        name="share-coordinator-cut",
        sentence="No other broker, nor itself, reaches the share coordinator.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "cut-share-coordinator", 6),),
        lock_ms=3000,
    ),
    Scenario(
        name="share-coordinator-slow",
        sentence="Every word to and from the share coordinator takes its time.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(4, "slow-share-coordinator", 10),),
        lock_ms=2000,
    ),
    Scenario(
        name="state-fenced",
        sentence="State writes are fenced now and then, so that share-partitions are loaded anew.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(4, "fence-state-writes", 5, 9), strike(13, "fence-state-writes", 5, 4)),
    ),
    Scenario(
        name="state-written-twice",
        sentence="State writes arrive twice.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(4, "duplicate-state-writes", 12),),
    ),
    Scenario(
        name="state-unstorable",
        sentence="The state topic has fewer replicas in sync than it demands.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "state-below-min-isr", 8),),
        lock_ms=3000,
    ),
    Scenario(
        name="group-coordinator-killed",
        sentence="The coordinator of a group's members dies.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "kill-group-coordinator", 8),),
    ),
    Scenario(
        name="group-coordinator-moved",
        sentence="The coordination of groups moves from broker to broker.",
        rules=(*SAFE, *LIVE),
        strikes=every("elect-group-coordinator", 3, 5, 7, 9, 11, 13, 15, 17),
    ),
    Scenario(
        name="controller-killed",
        sentence="The active controller dies, and leaders are elected by its successor.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "kill-controller", 8), strike(9, "elect-leader", 0.5)),
    ),
    Scenario(
        name="client-link-cut",
        sentence="Clients lose their connections to a leader and cannot come back for a while.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(4, "cut-client-link", 5), strike(14, "cut-client-link", 5, 1)),
    ),
    Scenario(
        name="client-link-mute",
        sentence="Half-open connections: what clients ask is done, and no answer comes back.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(4, "mute-client-link", 6),),
    ),
    Scenario(
        name="client-link-stalled",
        sentence="Connections stay open and pass nothing, and all of it later.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(4, "stall-client-link", 6), strike(13, "slow-client-link", 6)),
        lock_ms=3000,
    ),
    Scenario(
        name="answers-lost",
        sentence="Now and then the answer to a fetch or an acknowledgement is lost, or cut short.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(3, "lose-answers", 7, 19), strike(13, "truncate-answers", 5, 29)),
    ),
    Scenario(
        name="requests-lost",
        sentence="Now and then a request is lost, and answers come late.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(3, "lose-requests", 7, 19), strike(9, "delay-answers", 9, 9)),
    ),
    Scenario(
        name="heartbeats-lost",
        sentence="Every second heartbeat is lost without a word.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(3, "drop-heartbeats", 15, 1),),
    ),
    Scenario(
        name="failover-while-sleeping",
        sentence="Leaders and state move while the holders of locks are asleep.",
        rules=(*SAFE, *LOCKED, *LIVE),
        strikes=(
            strike(4, "pause-consumers", 5),
            strike(5, "elect-leader", 0.5),
            strike(6, "elect-share-coordinator", 0.5),
            strike(12, "pause-consumers", 5, 1),
            strike(13, "elect-leader", 0.5, 1),
        ),
        lock_ms=3000,
    ),
    Scenario(
        name="failover-while-writes-fail",
        sentence="Leaders move while their last state writes are refused or held up.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(
            strike(3, "delay-state-writes", 8),
            *every("elect-leader", 4, 6, 8),
            strike(13, "fail-state-writes", 6),
            *every("elect-leader", 14, 16, 18),
        ),
    ),
    Scenario(
        name="forgotten-while-writes-fail",
        sentence="All clients of a leader lose it while state writes are refused, and come back.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(
            strike(0.5, "fail-state-writes", 8.5),
            *every("cut-client-link", 7.5, 7.5, 7.5, lasts=1.0),
            *every("elect-leader", 15, 15.5, 16, 16.5),
        ),
        seconds=20.0,
        rate=300.0,
        lock_ms=2000,
        members=TARDY,
    ),
    Scenario(
        name="short",
        sentence="Three elections in a few seconds: what there is always time for.",
        rules=SAFE,
        strikes=every("elect-leader", 2, 4, 6),
        seconds=9.0,
    ),
    Scenario(
        name="nothing",
        sentence="Nothing breaks: the control run that tells a fault's doing from the load's own.",
        rules=(*SAFE, COUNTED[0], *STORED, *LIVE),  # nothing is loaded anew
        strikes=(),
        seconds=20.0,
    ),
)

SCENARIOS: Mapping[str, Scenario] = {one.name: one for one in (*_SCENARIOS, *AROUND, *UNPLUGGED)}
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
    """Return the scenarios of these names, or for ``all`` every one that fits any release.

    ``some`` stands for those that ten minutes are enough for.

    Args:
        names: What was asked for.
        target: What they are to be played on.

    Raises:
        UsageFault: there is none of that name.
    """
    if ALL in names:
        # Whoever lacks a C compiler is told so, not given fewer scenarios.
        offers = offered(target) | {Capability.CLOCK_LIBRARY}
        every = [one for one in SCENARIOS.values() if not one.release]
        return [one for one in every if offers.issuperset(needed(s.fault for s in one.strikes))]
    wanted = [one for name in names for one in (TEN_MINUTES if name == SOME else (name,))]
    for name in wanted:
        if name not in SCENARIOS:
            raise UsageFault(f"{name!r} is no scenario; there are {', '.join(SCENARIOS)}.")
    return [SCENARIOS[name] for name in dict.fromkeys(wanted)]
