"""Scenarios for brokers in containers, which lose their network while they run."""

from __future__ import annotations

from suites.chaos.scenario import LIVE, SAFE, STORED, Scenario, strike

UNPLUGGED = (
    Scenario(
        name="leader-unplugged",
        sentence="The leader of a partition is taken off the network, and put back.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "disconnect-leader", 9),),
    ),
    Scenario(
        name="share-coordinator-unplugged",
        sentence="The broker that keeps the state of a share-partition is taken off the network.",
        rules=(*SAFE, *STORED, *LIVE),
        strikes=(strike(5, "disconnect-share-coordinator", 9),),
        lock_ms=3000,
    ),
    Scenario(
        name="group-coordinator-unplugged",
        sentence="The coordinator of a group's members is taken off the network.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "disconnect-group-coordinator", 9),),
    ),
    Scenario(
        name="controller-unplugged",
        sentence="The active controller is taken off the network, and a successor elects leaders.",
        rules=(*SAFE, *LIVE),
        strikes=(strike(5, "disconnect-controller", 9), strike(10, "elect-leader", 0.5)),
    ),
    Scenario(
        name="short-unplugged",
        sentence="A leader loses its clients, and then the network: what containers have time for.",
        rules=SAFE,
        strikes=(strike(2, "cut-client-link", 2), strike(5, "disconnect-leader", 4)),
        seconds=12.0,
    ),
)
