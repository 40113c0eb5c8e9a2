"""The scenarios: what breaks when, under which load, and the rules that this puts to the test.

All are data. A scenario's name says what it is about; the times are seconds after the load began.
"""

from collections.abc import Mapping, Sequence

from chaos.fitting import needed, offered
from fixtures.interface.capability import Capability
from fixtures.interface.names import no_such
from fixtures.targets import DEFAULT_TARGET
from suites.chaos.around import AROUND
from suites.chaos.scenario import (
    COUNTED,
    LIVE,
    LOCKED,
    SAFE,
    SLOW,
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
        sentence="Leadership moves repeatedly while records are in flight.",
        rules=(*SAFE, *COUNTED, *STORED, *LIVE),
        strikes=every("elect-leader", 3, 5, 7, 9, 11, 13, 15, 17),
    ),
    Scenario(
        name="coordinator-write-failure",
        sentence="State writes are refused, lost and delayed while locks expire.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(
            strike(3, "fail-state-writes", 4),
            strike(9, "lose-state-responses", 4, 1),
            strike(15, "delay-state-writes", 4, 1),
        ),
        lock_ms=2000,
    ),
    Scenario(
        name="lock-expiry",
        sentence="Consumers pause for longer than their locks last, and then acknowledge.",
        rules=(*SAFE, *LOCKED, *LIVE),
        strikes=(strike(3, "pause-consumers", 4), strike(9, "pause-consumers", 4, 1)),
        lock_ms=2000,
    ),
    Scenario(
        name="compaction-gaps",
        sentence="Compaction removes records that are held, released or not yet fetched.",
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
        sentence="The log start offset passes records that are held, released or not yet fetched.",
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
        sentence="The lock duration changes while locks are held and expire.",
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
        sentence="The leader of a partition is killed (SIGKILL).",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(5, "kill-leader", 8),),
    ),
    Scenario(
        name="leader-stopped",
        sentence="The leader of a partition shuts down cleanly.",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(5, "stop-leader", 5),),
    ),
    Scenario(
        name="leader-zombie",
        sentence="A leader is paused, replaced, and resumed with requests in its buffers.",
        strikes=(strike(5, "pause-leader", 11),),
    ),
    Scenario(
        name="leader-deposed",
        sentence="A paused leader is replaced, and resumes with acknowledgements waiting.",
        rules=(*SAFE, *LIVE, "INV-42"),
        strikes=(
            strike(4, "pause-consumers", 17),
            strike(4.5, "pause-consumers", 16.5, 1),
            strike(5, "pause-leader", 18),
        ),
        lock_ms=30000,
        members=SLOW,
    ),
    Scenario(
        name="leader-blink",
        sentence="A leader is paused for less than the broker session timeout.",
        strikes=(strike(5, "pause-leader", 3), strike(14, "pause-leader", 3, 1)),
    ),
    Scenario(
        name="leader-reassigned",
        sentence="A partition is reassigned away from its leader, and back.",
        rules=(*SAFE, *COUNTED, *LIVE),
        strikes=(strike(4, "reassign-leader", 4), strike(14, "reassign-leader", 4, 1)),
    ),
    Scenario(
        name="share-coordinator-killed",
        sentence="The share coordinator of a share-partition is killed.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "kill-share-coordinator", 8),),
    ),
    Scenario(
        name="share-coordinator-moved",
        sentence="The share coordinator moves from broker to broker.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=every("elect-share-coordinator", 3, 5, 7, 9, 11, 13, 15, 17),
    ),
    Scenario(
        name="share-coordinator-frozen",
        sentence="The share coordinator is paused for longer than locks last.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "pause-share-coordinator", 9),),
        lock_ms=3000,
    ),
    Scenario(
        name="share-coordinator-cut",
        sentence="All links to the share coordinator are cut.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "cut-share-coordinator", 6),),
        lock_ms=3000,
    ),
    Scenario(
        name="share-coordinator-slow",
        sentence="Every frame to and from the share coordinator is delayed.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(4, "slow-share-coordinator", 10),),
        lock_ms=2000,
    ),
    Scenario(
        name="state-fenced",
        sentence="Some state writes are fenced, so that share-partitions are reloaded.",
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
        sentence="The state topic has fewer in-sync replicas than it requires.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "state-below-min-isr", 8),),
        lock_ms=3000,
    ),
    Scenario(
        name="group-coordinator-killed",
        sentence="The group coordinator is killed.",
        strikes=(strike(5, "kill-group-coordinator", 8),),
    ),
    Scenario(
        name="group-coordinator-moved",
        sentence="Group coordinators move from broker to broker.",
        strikes=every("elect-group-coordinator", 3, 5, 7, 9, 11, 13, 15, 17),
    ),
    Scenario(
        name="controller-killed",
        sentence="The active controller is killed, and its successor elects leaders.",
        strikes=(strike(5, "kill-controller", 8), strike(9, "elect-leader", 0.5)),
    ),
    Scenario(
        name="client-link-cut",
        sentence="Clients lose their connections to a leader and cannot reconnect for seconds.",
        strikes=(strike(4, "cut-client-link", 5), strike(14, "cut-client-link", 5, 1)),
    ),
    Scenario(
        name="client-link-mute",
        sentence="Half-open connections: requests are executed, and no response comes back.",
        strikes=(strike(4, "mute-client-link", 6),),
    ),
    Scenario(
        name="client-link-stalled",
        sentence="Connections stay open and deliver everything late, at once.",
        strikes=(strike(4, "stall-client-link", 6), strike(13, "slow-client-link", 6)),
        lock_ms=3000,
    ),
    Scenario(
        name="responses-lost",
        sentence="Some responses to fetches or acknowledgements are lost, or truncated.",
        strikes=(strike(3, "lose-responses", 7, 19), strike(13, "truncate-responses", 5, 29)),
    ),
    Scenario(
        name="requests-lost",
        sentence="Some requests are lost, and some responses are late.",
        strikes=(strike(3, "lose-requests", 7, 19), strike(9, "delay-responses", 9, 9)),
    ),
    Scenario(
        name="heartbeats-lost",
        sentence="Every second heartbeat is dropped.",
        strikes=(strike(3, "drop-heartbeats", 15, 1),),
    ),
    Scenario(
        name="failover-while-sleeping",
        sentence="Leaders and share coordinators move while the holders of locks are paused.",
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
        sentence="Leaders move while their last state writes are refused or delayed.",
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
        sentence="All clients of a leader reconnect while state writes are refused.",
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
        sentence="Three elections in a few seconds.",
        rules=SAFE,
        strikes=every("elect-leader", 2, 4, 6),
        seconds=9.0,
    ),
    Scenario(
        name="nothing",
        sentence="No fault: the control run.",
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
            raise no_such(name, "scenario", SCENARIOS, "shareproof chaos --list-scenarios")
    return [SCENARIOS[name] for name in dict.fromkeys(wanted)]
