"""Chaos, as far as it needs no cluster: schedules, faults, scenarios, rules for frames."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.faults import FAULTS, Fault
from chaos.faults.fault import fault
from chaos.schedule import Schedule, Strike, draw, in_conflict
from chaos.shrink import shrink
from fixtures.proxies.exchange import Action
from fixtures.proxies.rules import Direction, FrameRule
from fixtures.targets import UsageFault
from reports.analysis.rules import load_invariants
from suites.chaos.scenario import Scenario
from suites.chaos.scenarios import SCENARIOS, SHORT, chosen

ROOT = Path(__file__).parents[1]
ALL = list(FAULTS.values())
FEW = [
    FAULTS[name]
    for name in (
        "kill-leader",
        "elect-share-coordinator",
        "pause-leader",
        "cut-client-link",
        "compact",
    )
]
"""Faults of schedules to shrink: a new fault changes no draw of these."""


def _overlap(one: Strike, other: Strike) -> bool:
    return one.at < other.ends and other.at < one.ends


@pytest.mark.parametrize("seed", range(20))
def test_one_seed_one_schedule(seed: int) -> None:
    assert draw(seed, 300, ALL) == draw(seed, 300, ALL)
    assert draw(seed, 300, ALL) != draw(seed + 1, 300, ALL)


@pytest.mark.parametrize("seed", range(20))
def test_brokers_go_one_at_a_time(seed: int) -> None:
    strikes = draw(seed, 300, ALL).strikes
    lonely = [one for one in strikes if FAULTS[one.fault].exclusive]
    assert len(lonely) > 3
    assert not any(_overlap(a, b) for a in lonely for b in lonely if a is not b)
    assert all(one.ends <= 300 for one in strikes)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_in_conflict_stays_apart(seed: int) -> None:
    strikes = draw(seed, 300, ALL).strikes
    pairs = [(a, b) for a in strikes for b in strikes if a is not b and _overlap(a, b)]
    assert pairs
    assert not any(in_conflict(FAULTS[a.fault], FAULTS[b.fault]) for a, b in pairs)


def test_free_overlap_spares_the_quorum() -> None:
    drawn = [draw(seed, 300, ALL, free=True).strikes for seed in range(5)]
    met = [(a, b) for some in drawn for a in some for b in some if a is not b and _overlap(a, b)]
    assert any(in_conflict(FAULTS[a.fault], FAULTS[b.fault]) for a, b in met)
    assert not any(FAULTS[a.fault].exclusive and FAULTS[b.fault].exclusive for a, b in met)


def test_others_overlap() -> None:
    strikes = [draw(seed, 300, ALL).strikes for seed in range(5)]
    assert any(_overlap(a, b) for some in strikes for a in some for b in some if a is not b)


def test_every_kind_gets_its_turn() -> None:
    assert {one.fault for one in draw(1, 3600, ALL).strikes} == set(FAULTS)


def test_a_long_run_ends_without_faults() -> None:
    assert 500 < max(one.ends for one in draw(5, 600, ALL).strikes) <= 555
    assert 90 < max(one.ends for one in draw(5, 120, ALL).strikes) <= 116


def test_schedule_survives_its_file() -> None:
    schedule = draw(7, 120, ALL)
    assert Schedule.from_json(schedule.to_json()) == schedule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"schema": 2, "seed": 1, "seconds": 1, "strikes": []}),
        json.dumps({"schema": 1, "seed": 1, "seconds": 1, "strikes": [{"fault": "x"}]}),
        json.dumps({"schema": 1, "seed": 1, "seconds": 1, "strikes": [], "more": 1}),
        json.dumps(
            {
                "schema": 1,
                "seed": 1,
                "seconds": 9,
                "strikes": [{"fault": "x", "at": -1, "lasts": 1}],
            }
        ),
    ],
)
def test_bad_schedules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Schedule.from_json(text)


def test_kinds_say_what_they_do() -> None:
    for kind in ALL:
        assert kind.sentence.endswith(".")
        assert 0 < kind.lasts[0] <= kind.lasts[1]


def test_too_short_for_anything() -> None:
    assert not draw(1, 10, [kind for kind in ALL if kind.lasts[0] > 7]).strikes


def test_kinds_have_their_own_names() -> None:
    kind: Fault = ALL[0]
    with pytest.raises(ValueError, match=kind.name):
        fault(kind.name, "Something else.")(kind.make)
    assert FAULTS[kind.name] is kind


def test_rule_takes_every_nth_frame() -> None:
    rule = FrameRule(
        apis=frozenset({"ShareFetch"}), direction=Direction.RESPONSE, action=Action.DROP, nth=3
    )
    taken = [rule.takes("ShareFetch", Direction.RESPONSE) for _ in range(7)]
    assert taken == [False, False, True, False, False, True, False]
    assert not rule.takes("Fetch", Direction.RESPONSE)
    assert not rule.takes("ShareFetch", Direction.REQUEST)
    assert (rule.seen, rule.done) == (7, 2)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scenarios_are_sound(scenario: Scenario) -> None:
    known = {rule.id for rule in load_invariants()}
    assert set(scenario.rules) <= known
    assert scenario.seconds <= 40
    for strike in scenario.strikes:
        assert strike.fault in FAULTS
        assert strike.ends <= scenario.seconds
    lonely = [one for one in scenario.strikes if FAULTS[one.fault].exclusive]
    assert not any(_overlap(a, b) for a in lonely for b in lonely if a is not b)


def test_there_are_scenarios_enough() -> None:
    mission = {"leader-change", "coordinator-write-failure", "lock-expiry", "compaction-gaps"}
    assert mission <= set(SCENARIOS)
    assert len(SCENARIOS) >= 25
    assert SHORT in SCENARIOS
    assert any(not one.strikes for one in SCENARIOS.values())


def test_unknown_scenarios_are_refused() -> None:
    with pytest.raises(UsageFault, match=f"did you mean {SHORT}"):
        chosen([f"{SHORT}s"])
    with pytest.raises(UsageFault, match=r"is no scenario: .shareproof chaos --list-scenarios."):
        chosen(["xyz"])


def _needs(*faults: str) -> Callable[[Schedule], bool]:
    return lambda schedule: set(faults) <= {strike.fault for strike in schedule.strikes}


def _silent(_: str) -> None:
    return


def test_shrinking_finds_the_one_culprit() -> None:
    found = shrink(
        draw(3, 600, FEW), _needs("kill-leader"), tries=1, replays=3, tell=_silent, most=200
    )
    assert [strike.fault for strike in found.schedule.strikes] == ["kill-leader"]
    assert found.schedule.seconds < 600
    assert found.reliability == "fails 3 of 3"


def test_shrinking_keeps_what_only_fails_together() -> None:
    fails = _needs("kill-leader", "elect-share-coordinator")
    found = shrink(draw(3, 600, FEW), fails, tries=1, replays=1, tell=_silent, most=200)
    left = sorted(strike.fault for strike in found.schedule.strikes)
    assert left == ["elect-share-coordinator", "kill-leader"]


def test_shrinking_says_how_reliable_it_is() -> None:
    turns = itertools.count()
    needs = _needs("kill-leader")

    def fails(schedule: Schedule) -> bool:
        return needs(schedule) and next(turns) % 2 == 0

    found = shrink(draw(3, 200, FEW), fails, tries=2, replays=10, tell=_silent, most=400)
    assert [strike.fault for strike in found.schedule.strikes] == ["kill-leader"]
    assert found.reliability == "fails 5 of 10"


def test_shrinking_ends() -> None:
    found = shrink(draw(3, 600, ALL), lambda _: False, tries=3, replays=2, tell=_silent, most=10)
    assert found.tried <= 10
    assert found.reliability == "fails 0 of 2"


def test_ten_minutes_are_enough_for_some() -> None:
    some = chosen(["some"])

    assert {"leader-change", "coordinator-write-failure", "lock-expiry", "compaction-gaps"} <= {
        scenario.name for scenario in some
    }
    assert sum(scenario.seconds for scenario in some) < 330
