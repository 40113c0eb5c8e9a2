"""Scenarios about what lies around a share-partition: other parts, disks, clocks, topics."""

from chaos.faults.restart import FROM
from suites.chaos.scenario import DYING, LIVE, LOCKED, SAFE, STORED, Scenario, strike

AROUND = (
    Scenario(
        name="share-coordinator-stopped",
        sentence="The share coordinator shuts down cleanly.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "stop-share-coordinator", 5),),
    ),
    Scenario(
        name="share-coordinator-stalled",
        sentence="Frames to and from the share coordinator are held, and delivered at once.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(4, "stall-share-coordinator", 7),),
        lock_ms=3000,
    ),
    Scenario(
        name="share-coordinator-mute",
        sentence="State writes are stored, and their responses are lost.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(4, "mute-share-coordinator", 6),),
        lock_ms=3000,
    ),
    Scenario(
        name="share-coordinator-out-of-space",
        sentence="The disk of the share coordinator is full.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "fill-share-coordinator", 9),),
    ),
    Scenario(
        name="group-coordinator-stopped",
        sentence="The group coordinator shuts down cleanly.",
        strikes=(strike(5, "stop-group-coordinator", 5),),
    ),
    Scenario(
        name="group-coordinator-frozen",
        sentence="The group coordinator is paused, and resumed after it was replaced.",
        strikes=(strike(5, "pause-group-coordinator", 10),),
    ),
    Scenario(
        name="group-coordinator-out-of-space",
        sentence="The disk of the group coordinator is full.",
        strikes=(strike(5, "fill-group-coordinator", 9),),
    ),
    Scenario(
        name="controller-stopped",
        sentence="The active controller shuts down cleanly while leaders are elected.",
        strikes=(strike(5, "stop-controller", 5), strike(7, "elect-leader", 0.5)),
    ),
    Scenario(
        name="controller-frozen",
        sentence="The active controller is paused, and resumed after it was replaced.",
        strikes=(strike(5, "pause-controller", 10),),
    ),
    Scenario(
        name="controller-out-of-space",
        sentence="The disk of the active controller is full.",
        strikes=(strike(5, "fill-controller", 9),),
    ),
    Scenario(
        name="leader-out-of-space",
        sentence="The disk of a partition's leader is full, so the broker stops.",
        strikes=(strike(5, "fill-leader", 9),),
    ),
    Scenario(
        name="clocks-of-brokers",
        sentence="Wall clocks of brokers jump ahead and back while locks are held and expire.",
        rules=(*SAFE, *LOCKED, *LIVE),
        strikes=(
            strike(3, "shift-leader", 4),
            strike(5, "pause-consumers", 4),
            strike(8, "shift-share-coordinator", 4, 1),
            strike(13, "shift-group-coordinator", 4),
            strike(18, "shift-controller", 4, 1),
        ),
        lock_ms=2000,
    ),
    Scenario(
        name="clocks-of-clients",
        sentence="The wall clocks of consumers and producers jump ahead and back.",
        strikes=(strike(3, "shift-consumers", 6), strike(11, "shift-consumers", 6, 1)),
        lock_ms=2000,
    ),
    Scenario(
        name="members-die",
        sentence="Members are killed while they hold records, and restarted.",
        # With every member that dies a response may get lost, so that nothing proves a record lost.
        rules=("INV-01", "INV-02", "INV-04", "INV-12", "INV-15", "INV-26", *LIVE),
        strikes=(),
        rate=300.0,
        lock_ms=20000,
        members=DYING,
    ),
    Scenario(
        name="partitions-added",
        sentence="Partitions are added to the topic, and written to at once.",
        strikes=(strike(4, "add-partition", 8), strike(14, "add-partition", 6)),
    ),
    Scenario(
        name="partitions-added-at-latest",
        sentence="Partitions are added while groups use reset policy latest.",
        strikes=(strike(4, "add-partition-at-latest", 8),),
    ),
    Scenario(
        name="rolling-upgrade",
        sentence="Every broker is upgraded in turn from an earlier release.",
        strikes=(strike(4, "rolling-upgrade", 18),),
        release=FROM,
    ),
    Scenario(
        name="topic-recreated",
        sentence="A topic that a group reads beside the others is deleted and recreated.",
        strikes=(
            strike(4, "recreate-topic", 4),
            strike(13, "recreate-topic", 4, 1),
            strike(15, "elect-leader", 0.5),
        ),
    ),
)
