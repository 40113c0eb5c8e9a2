"""Scenarios for brokers in containers, which lose their network while they run."""

from suites.chaos.scenario import LIVE, SAFE, STORED, Scenario, strike

UNPLUGGED = (
    Scenario(
        name="leader-unplugged",
        sentence="The leader of a partition is disconnected from the network, and reconnected.",
        strikes=(strike(5, "disconnect-leader", 9),),
    ),
    Scenario(
        name="share-coordinator-unplugged",
        sentence="The share coordinator is disconnected from the network.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "disconnect-share-coordinator", 9),),
        lock_ms=3000,
    ),
    Scenario(
        name="group-coordinator-unplugged",
        sentence="The group coordinator is disconnected from the network.",
        strikes=(strike(5, "disconnect-group-coordinator", 9),),
    ),
    Scenario(
        name="controller-unplugged",
        sentence="The active controller is disconnected, and its successor elects leaders.",
        strikes=(strike(5, "disconnect-controller", 9), strike(10, "elect-leader", 0.5)),
    ),
    Scenario(
        name="short-unplugged",
        sentence="A leader loses its clients, and then the network; a short one for containers.",
        rules=SAFE,
        strikes=(strike(2, "cut-client-link", 2), strike(5, "disconnect-leader", 4)),
        seconds=12.0,
    ),
)
