"""The durations that checks get: the shortest that a target allows, or out of reach."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.clients.bounds import HEARTBEAT, LOCK, SESSION, Bounds, Range, bounds_of
from fixtures.clients.cluster import Cluster
from fixtures.targets import TargetOptions, open_target
from spec.verdict import OutOfReach
from tests.restricted import restricted


def bounds(locks: tuple[int, int], sessions: tuple[int, int], beats: tuple[int, int]) -> Bounds:
    """Return the bounds of a target with these lowest and highest values."""
    return Bounds(
        locks=Range(name=LOCK, low=locks[0], high=locks[1], default=locks[1]),
        sessions=Range(name=SESSION, low=sessions[0], high=sessions[1], default=sessions[1]),
        heartbeats=Range(name=HEARTBEAT, low=beats[0], high=beats[1], default=beats[1]),
    )


OURS = bounds((1000, 60_000), (1000, 60_000), (200, 15_000))
SHIPPED = bounds((15_000, 60_000), (45_000, 60_000), (5000, 15_000))
FIXED = bounds((30_000, 30_000), (45_000, 45_000), (5000, 5000))


@pytest.mark.parametrize(
    ("target", "locks", "timing"),
    [
        (OURS, (1000, 2000, 30_000, 60_000), (1000, 500)),
        (SHIPPED, (15_000, 15_000, 45_000, 60_000), (45_000, 5000)),
    ],
)
def test_durations_are_the_shortest_allowed(
    target: Bounds, locks: tuple[int, ...], timing: tuple[int, int]
) -> None:
    found = (target.short_lock, target.prompt_lock, target.long_lock, target.longest_lock)
    assert found == locks
    assert (target.short_session, target.short_heartbeat) == timing


def test_what_is_not_allowed_is_out_of_reach() -> None:
    assert (FIXED.short_lock, FIXED.longest_lock, FIXED.short_session) == (30_000, 30_000, 45_000)
    with pytest.raises(OutOfReach, match="at most 30000 here, and 60000 is needed"):
        _ = FIXED.long_lock
    with pytest.raises(OutOfReach, match=SESSION):
        FIXED.session(50_000)


def test_patience_grows_with_what_must_be_waited_for() -> None:
    assert OURS.patience == 0
    assert SHIPPED.patience == 3 * 14 + 2 * 44


@pytest.mark.parametrize(("shortest", "session"), [(15_000, 45_000), (1000, 1000)])
async def test_bounds_are_those_of_the_brokers(shortest: int, session: int) -> None:
    properties = {
        "group.share.min.record.lock.duration.ms": str(shortest),
        "group.share.min.session.timeout.ms": str(session),
    }
    target = open_target("reference", TargetOptions(properties=properties))
    target.start()
    try:
        async with Cluster(target.info) as cluster:
            asked = await bounds_of(cluster)
            again = await bounds_of(cluster)
    finally:
        target.stop()

    assert (asked.short_lock, asked.short_session) == (shortest, session)
    assert (asked.locks.high, asked.locks.default) == (60_000, 30_000)
    assert again is asked


async def test_a_fetch_tells_how_long_locks_last() -> None:
    usual = {
        "group.share.record.lock.duration.ms": "17000",
        "group.share.heartbeat.interval.ms": "900",
    }
    with restricted("group-configs", "broker-configs", properties=usual) as info:
        async with Cluster(replace(info, name=f"external:{info.bootstrap[0]}")) as cluster:
            asked = await bounds_of(cluster)

    assert (asked.short_lock, asked.longest_lock, asked.short_heartbeat) == (17_000, 17_000, 900)
    with pytest.raises(OutOfReach, match=LOCK):
        _ = asked.long_lock


async def test_what_is_not_described_is_tried() -> None:
    with restricted("broker-configs") as info:
        async with Cluster(info) as cluster:
            asked = await bounds_of(cluster)

    assert (asked.short_lock, asked.short_session) == (1000, 1000)
