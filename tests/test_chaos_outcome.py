"""What came of strikes: what was in the way of a miss, and what makes a run vacuous."""

from __future__ import annotations

from chaos.outcome import Broke, in_the_way, verdict
from chaos.play import Struck
from chaos.schedule import Schedule, Strike
from fixtures.workload.terms import Loaded
from spec.history import Manifest

_SECOND = 1_000_000_000


def _struck(fault: str, since: float, until: float, *, hit: bool = True) -> Struck:
    return Struck(
        strike=Strike(fault=fault, at=since, lasts=until - since),
        since=int(since * _SECOND),
        until=int(until * _SECOND),
        hit="seen" if hit else "",
        healed="seen",
        trouble="" if hit else "no response",
    )


FULL_DISK = _struck("fill-leader", 5, 15)
DURING = _struck("recreate-topic", 8, 12, hit=False)
SOON_AFTER = _struck("recreate-topic", 17, 20, hit=False)
LONG_AFTER = _struck("recreate-topic", 30, 34, hit=False)


def test_a_fault_under_way_is_in_the_way() -> None:
    assert in_the_way(DURING, (FULL_DISK, DURING)) == "fill-leader"
    assert in_the_way(SOON_AFTER, (FULL_DISK, SOON_AFTER)) == "fill-leader"
    assert in_the_way(LONG_AFTER, (FULL_DISK, LONG_AFTER)) == ""


def test_a_fault_that_missed_is_in_nobodys_way() -> None:
    other = _struck("fill-leader", 5, 15, hit=False)
    assert in_the_way(DURING, (other, DURING)) == ""
    assert verdict((other, DURING), scenario=False) == "vacuous"


def test_a_run_has_to_break_something() -> None:
    assert verdict((FULL_DISK, LONG_AFTER), scenario=False) == "pass"
    assert verdict((DURING,), scenario=False) == "vacuous"
    assert verdict((), scenario=False) == "pass"


def test_a_scenario_needs_each_of_its_kinds() -> None:
    hit = _struck("recreate-topic", 20, 24)
    assert verdict((FULL_DISK, DURING), scenario=True) == "vacuous"
    assert verdict((FULL_DISK, DURING, hit), scenario=True) == "pass"


def test_what_was_in_the_way_is_written_down() -> None:
    loaded = Loaded(
        produced=1,
        delivered=1,
        acknowledged=1,
        drained=True,
        seconds=1,
        manifest=Manifest(files=()),
    )
    broke = Broke(loaded=loaded, struck=(FULL_DISK, DURING), trouble=())
    schedule = Schedule(seed=1, seconds=40)
    document = broke.to_document(schedule, scenario="", owed=("INV-01",), judged=0.9)
    assert document["verdict"] == "pass"
    assert [one["blocked_by"] for one in document["faults"]] == ["", "fill-leader"]
