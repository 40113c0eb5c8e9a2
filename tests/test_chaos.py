"""Chaos, as far as it needs no cluster: schedules, faults, scenarios, and results."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chaos.capabilities import ON_REQUEST, TOXIPROXY, offered, playable
from chaos.faults import FAULTS
from chaos.faults.fault import fault
from chaos.play import ChaosResult, InjectionResult, in_the_way, verdict
from chaos.run import ChaosTest, check, usual_load
from chaos.schedule import Schedule, ScheduledFault, Shrunk, draw, in_conflict, shrink
from fixtures.clients.admin import ShareOffset
from fixtures.clocks import Clocks, lacking
from fixtures.interface.capability import Capability
from fixtures.targets import DEFAULT_TARGET, TargetOptions, UsageFault, open_target, started
from fixtures.targets.hooks import HookedBroker, Hooks
from fixtures.workload.load import PRODUCING, run_load
from fixtures.workload.observer import Progress
from fixtures.workload.plan import Load, Loaded
from reports.analysis.rules import load_invariants
from reports.oracle.judge import Verdicts
from reports.results import ChaosRun
from spec.history import Manifest
from spec.plain import from_plain
from spec.verdict import EnvironmentFault, OutOfReach
from suites.chaos.scenarios import SCENARIOS, SHORT, Scenario, chosen
from suites.clusters import require
from suites.options import RunOptions
from tests.shell import Shell
from tools.documents.chaos import (
    PAGE,
    InjectionCounts,
    Played,
    counts_by_fault,
    faults,
    filled,
    merged,
    played,
    read,
    scenarios,
    struck,
    verdict_of,
    write,
)

ROOT = Path(__file__).parents[1]
ALL = list(FAULTS.values())
CONTAINER, EXTERNAL = "container:apache/kafka:4.4.0", "external:localhost:9092"
FEW_NAMES = "kill-leader elect-share-coordinator pause-leader cut-client-link compact"
FEW = [FAULTS[name] for name in FEW_NAMES.split()]
"""Faults of schedules to shrink: a new fault changes no draw of these."""


def _overlap(one: ScheduledFault, other: ScheduledFault) -> bool:
    return one.at < other.ends and other.at < one.ends


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_is_a_schedule_in_which_what_is_in_conflict_stays_apart(seed: int) -> None:
    assert draw(seed, 300, ALL) == draw(seed, 300, ALL)
    assert draw(seed, 300, ALL) != draw(seed + 1, 300, ALL)
    injections = draw(seed, 300, ALL).injections
    lonely = [one for one in injections if FAULTS[one.fault].exclusive]
    assert len(lonely) > 3
    assert not any(_overlap(a, b) for a in lonely for b in lonely if a is not b)
    assert all(one.ends <= 300 for one in injections)
    pairs = [(a, b) for a in injections for b in injections if a is not b and _overlap(a, b)]
    assert pairs, "others overlap"
    assert not any(in_conflict(FAULTS[a.fault], FAULTS[b.fault]) for a, b in pairs)


def test_free_overlap_spares_the_quorum() -> None:
    drawn = [draw(seed, 300, ALL, free=True).injections for seed in range(5)]
    met = [(a, b) for some in drawn for a in some for b in some if a is not b and _overlap(a, b)]
    assert any(in_conflict(FAULTS[a.fault], FAULTS[b.fault]) for a, b in met)
    assert not any(FAULTS[a.fault].exclusive and FAULTS[b.fault].exclusive for a, b in met)


def test_schedules() -> None:
    assert {one.fault for one in draw(1, 3600, ALL).injections} == set(FAULTS)
    assert not draw(1, 10, [kind for kind in ALL if kind.lasts[0] > 7]).injections
    # A long run ends without faults.
    assert 500 < max(one.ends for one in draw(5, 600, ALL).injections) <= 555
    assert 90 < max(one.ends for one in draw(5, 120, ALL).injections) <= 116
    schedule = draw(7, 120, ALL)
    assert Schedule.from_json(schedule.to_json()) == schedule


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": 2},
        {"strikes": [{"fault": "x"}]},
        {"more": 1},
        {"strikes": [{"fault": "x", "at": -1, "lasts": 1}]},
    ],
)
def test_bad_schedules_are_refused(changed: dict[str, Any]) -> None:
    good = {"schema": 1, "seed": 1, "seconds": 9, "strikes": []}
    Schedule.from_json(json.dumps(good))
    for text in ("", "[]", "{}", json.dumps(good | changed)):
        with pytest.raises(ValueError, match=r"."):
            Schedule.from_json(text)


def test_kinds_of_faults_say_what_they_do_under_their_own_names() -> None:
    for kind in ALL:
        assert kind.sentence.endswith(".")
        assert 0 < kind.lasts[0] <= kind.lasts[1]
    with pytest.raises(ValueError, match=kind.name):
        fault(kind.name, "Something else.")(kind.make)
    assert FAULTS[kind.name] is kind


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scenarios_are_sound(scenario: Scenario) -> None:
    known = {rule.id for rule in load_invariants()}
    assert set(scenario.rules) <= known
    assert scenario.seconds <= 40
    for planned in scenario.injections:
        assert planned.fault in FAULTS
        assert planned.ends <= scenario.seconds
    lonely = [one for one in scenario.injections if FAULTS[one.fault].exclusive]
    assert not any(_overlap(a, b) for a in lonely for b in lonely if a is not b)


MISSION = {"leader-change", "coordinator-write-failure", "lock-expiry", "compaction-gaps"}


def test_there_are_scenarios_enough_and_ten_minutes_for_some() -> None:
    some = chosen(["some"])
    assert MISSION | {SHORT} <= set(SCENARIOS)
    assert len(SCENARIOS) >= 25
    assert any(not one.injections for one in SCENARIOS.values())
    assert {scenario.name for scenario in some} >= MISSION
    assert sum(scenario.seconds for scenario in some) < 330
    with pytest.raises(UsageFault, match=f"did you mean {SHORT}"):
        chosen([f"{SHORT}s"])
    with pytest.raises(UsageFault, match=r"is no scenario: .shareproof chaos --list-scenarios."):
        chosen(["xyz"])


def test_the_page_has_todays_tables() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    tables = {faults(), scenarios(), played(read()), struck(read())}
    assert {table.rstrip() for table in tables} <= set(filled(page).split("\n\n"))


def _shrunk(fails: Callable[[Schedule], bool], *, seconds: int = 600, **limits: int) -> Shrunk:
    given = {"tries": 1, "replays": 1, "most": 200, **limits}
    return shrink(draw(3, seconds, FEW), fails, log=lambda _: None, **given)


def _needs(*faults: str) -> Callable[[Schedule], bool]:
    return lambda schedule: set(faults) <= {planned.fault for planned in schedule.injections}


@pytest.mark.parametrize("culprits", [["kill-leader"], ["elect-share-coordinator", "kill-leader"]])
def test_shrinking_keeps_what_fails_alone_or_together(culprits: list[str]) -> None:
    found = _shrunk(_needs(*culprits), replays=3)
    assert sorted(planned.fault for planned in found.schedule.injections) == culprits
    assert found.schedule.seconds < 600
    assert found.reliability == "fails 3 of 3"


def test_shrinking_ends_and_says_how_reliable_it_is() -> None:
    turns, needs = itertools.count(), _needs("kill-leader")

    def fails(schedule: Schedule) -> bool:
        return needs(schedule) and next(turns) % 2 == 0

    found = _shrunk(fails, seconds=200, tries=2, replays=10, most=400)
    assert [planned.fault for planned in found.schedule.injections] == ["kill-leader"]
    assert found.reliability == "fails 5 of 10"
    found = _shrunk(lambda _: False, tries=3, replays=2, most=10)
    assert (found.tried <= 10, found.reliability) == (True, "fails 0 of 2")


# --- What came of faults ----------------------------------------------------------------------

SECOND = 1_000_000_000


def _injected(fault: str, since: float, until: float, *, hit: bool = True) -> InjectionResult:
    return InjectionResult(
        planned=ScheduledFault(fault=fault, at=since, lasts=until - since),
        since=int(since * SECOND),
        until=int(until * SECOND),
        hit="seen" if hit else "",
        healed="seen",
        trouble="" if hit else "no response",
    )


FULL_DISK = _injected("fill-leader", 5, 15)
DURING = _injected("recreate-topic", 8, 12, hit=False)
SOON_AFTER = _injected("recreate-topic", 17, 20, hit=False)
LONG_AFTER = _injected("recreate-topic", 30, 34, hit=False)


def test_a_fault_under_way_is_in_the_way_of_others() -> None:
    assert in_the_way(DURING, (FULL_DISK, DURING)) == "fill-leader"
    assert in_the_way(SOON_AFTER, (FULL_DISK, SOON_AFTER)) == "fill-leader"
    assert in_the_way(LONG_AFTER, (FULL_DISK, LONG_AFTER)) == ""
    missed = _injected("fill-leader", 5, 15, hit=False)
    assert in_the_way(DURING, (missed, DURING)) == ""


@pytest.mark.parametrize(
    ("injections", "scenario", "expected"),
    [
        ((), False, "pass"),
        ((FULL_DISK, LONG_AFTER), False, "pass"),
        ((DURING,), False, "vacuous"),
        ((_injected("fill-leader", 5, 15, hit=False), DURING), False, "vacuous"),
        ((FULL_DISK, DURING), True, "vacuous"),
        ((FULL_DISK, DURING, _injected("recreate-topic", 20, 24)), True, "pass"),
    ],
)
def test_a_run_breaks_something_and_a_scenario_each_of_its_kinds(
    injections: tuple[InjectionResult, ...], scenario: bool, expected: str
) -> None:
    assert verdict(injections, scenario=scenario) == expected


def test_what_was_in_the_way_is_written_down() -> None:
    loaded = Loaded(
        produced=1,
        delivered=1,
        acknowledged=1,
        drained=True,
        seconds=1,
        manifest=Manifest(files=()),
    )
    broke = ChaosResult(loaded=loaded, injections=(FULL_DISK, DURING), trouble=())
    schedule = Schedule(seed=1, seconds=40)
    document = broke.to_document(schedule, scenario="", owed=("INV-01",), judged=0.9)
    assert document["verdict"] == "pass"
    assert [one["blocked_by"] for one in document["faults"]] == ["", "fill-leader"]


# --- What may be broken -----------------------------------------------------------------------

FULL = Hooks(commands=dict.fromkeys(("kill", "stop", "start", "pause", "resume"), "sh -c :"))


def _chaos(fault: str, *, allowed: bool = False, hooks: Hooks | None = None) -> ChaosTest:
    injections = (ScheduledFault(fault=fault, at=1, lasts=1),) if fault else ()
    schedule = Schedule(seed=1, seconds=10, injections=injections)
    return ChaosTest(
        target=EXTERNAL,
        schedule=schedule,
        load=usual_load(schedule, 100),
        allowed=allowed,
        hooks=hooks,
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("allowed", "hooks"), [(False, None), (True, None), (False, FULL)])
def test_nothing_of_others_is_broken(fault: str, allowed: bool, hooks: Hooks | None) -> None:
    with pytest.raises(UsageFault, match="not ours"):
        check(_chaos(fault, allowed=allowed, hooks=hooks))


def test_a_fault_needs_its_hooks_and_a_control_run_none() -> None:
    check(_chaos(""))
    check(_chaos("kill-leader", allowed=True, hooks=FULL))
    few = Hooks(commands={"start": "true"})
    with pytest.raises(UsageFault, match="a hook to kill"):
        check(_chaos("kill-leader", allowed=True, hooks=few))
    with pytest.raises(UsageFault, match="brokers that we start"):
        check(_chaos("cut-client-link", allowed=True, hooks=FULL))
    assert playable(["elect-leader"], offered(EXTERNAL, hooks=few)) == [FAULTS["elect-leader"]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill = 'true'", "healed without start"),
        ("start = 'run {nod}'", "start: .node., .host. and .port. are replaced, and nothing else"),
        ("start = 'run {'", "start: .*braces that stay are doubled"),
        ("""start = 'run "'""", "start: no closing quotation"),
        ("pause = 'true'", "healed without resume"),
        ("explode = 'true'", "none of"),
        ("start = 1", "start: a command is needed, in quotes"),
        ("start = ", "hooks"),
    ],
)
def test_bad_hooks_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "hooks.toml"
    file.write_text(text)
    with pytest.raises(UsageFault, match=sentence):
        Hooks.read(file)


def test_hooks_are_run_as_they_are_given(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = {
        verb: f"sh -c 'echo {verb} {{node}} {{host}}:{{port}} >> {log}'"
        for verb in ("kill", "start")
    }
    broker = HookedBroker(node_id=7, host="far", port=1, hooks=Hooks(commands=commands))
    broker.start()
    broker.kill()
    assert not broker.is_alive
    broker.start()
    assert log.read_text().splitlines() == ["kill 7 far:1", "start 7 far:1"]


def test_a_hook_is_over_when_it_had_its_effect() -> None:
    seen = [True, True, False, False, True]
    broker = HookedBroker(node_id=1, host="h", port=1, hooks=FULL, serves=partial(seen.pop, 0))
    broker.kill()
    assert seen == [False, True]
    broker.start()
    assert seen == []


def test_failing_hooks_are_faults() -> None:
    broker = HookedBroker(
        node_id=7, host="far", port=1, hooks=Hooks(commands={"kill": "sh -c 'exit 1'"})
    )
    with pytest.raises(EnvironmentFault, match="kill of broker 7"):
        broker.kill()
    with pytest.raises(OutOfReach, match="needs a hook to pause"):
        broker.pause()


# --- The record of what was played ------------------------------------------------------------

HELD, BROKEN = {0: (9, 0)}, {0: (9, 2), 1: (9, 0)}


def _record(**more: Any) -> ChaosRun:
    plain = {"run": "r", "scenario": "", "seed": 1, "seconds": 1.0, "produced": 1, "delivered": 1}
    plain |= {"drained": True, "owed": ["INV-01"], "trouble": [], "verdict": "pass", "faults": []}
    return from_plain(ChaosRun, plain | more)


@pytest.mark.parametrize(
    ("record", "found", "expected"),
    [
        ({}, {"INV-01": HELD}, ("pass", ())),
        ({}, {"INV-01": HELD, "INV-02": BROKEN}, ("fail", ("INV-02",))),
        ({}, {"INV-01": HELD, "INV-36": BROKEN}, ("known failure", ("INV-36",))),
        ({}, {"INV-02": BROKEN, "INV-36": BROKEN}, ("fail", ("INV-02",))),
        ({}, {"INV-02": HELD}, ("vacuous", ("INV-01",))),
        ({"verdict": "vacuous"}, {"INV-01": HELD}, ("vacuous", ())),
        ({"trouble": ["broker 1 ended by itself"]}, {"INV-01": HELD}, ("error", ())),
    ],
)
def test_a_run_has_one_verdict(
    record: dict[str, Any], found: Verdicts, expected: tuple[str, tuple[str, ...]]
) -> None:
    assert verdict_of(_record(**record), found, {"INV-36"}) == expected


def test_injections_are_counted_by_kind() -> None:
    words = dict.fromkeys(("subject", "trouble", "blocked_by"), "")
    plain = {**words, **dict.fromkeys(("at", "lasts", "since", "until"), 1), "healed": "seen"}
    faults = [{"fault": "elect-leader", "hit": hit, **plain} for hit in ("seen", "")]
    counted = counts_by_fault(_record(faults=faults).faults)
    assert counted == {"elect-leader": InjectionCounts(struck=2, hit=1, healed=2)}


def _record_of(name: str, release: str, verdict: str = "pass") -> Played:
    faults = {"elect-leader": InjectionCounts(struck=3, hit=2, healed=3)}
    return Played(
        name=name,
        release=release,
        on="2026-11-22",
        seed=7,
        verdict=verdict,
        rules=(),
        faults=faults,
    )


def test_a_later_run_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    known = [_record_of("short", "4.2.1", "fail"), _record_of("short", "4.4.0")]
    now = merged(known, [_record_of("short", "4.2.1")])
    assert {one.verdict for one in now} == {"pass"}
    write(now, tmp_path / "scenarios.jsonl")
    assert read(tmp_path / "scenarios.jsonl") == sorted(now, key=lambda one: one.release)


def test_tables_count_what_was_struck() -> None:
    runs = [_record_of(name, "4.4.0") for name in SCENARIOS]
    runs += [_record_of("short", "4.1.1", "fail")]
    first = played(runs).splitlines()
    assert first[0] == "| scenario | 4.4.0 |"
    assert "| `short` | pass (2026-11-22) |" in first
    hits = f"| `elect-leader` | {2 * len(SCENARIOS)} of {3 * len(SCENARIOS)} hit, "
    assert any(line.startswith(hits) for line in struck(runs).splitlines())
    assert "| `kill-leader` | not played |" in struck(runs).splitlines()


# --- What targets offer and faults need -------------------------------------------------------


def names(target: str, *, brokers: int = 3, hooks: Hooks | None = None) -> set[str]:
    return {each.name for each in playable((), offered(target, brokers=brokers, hooks=hooks))}


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.capabilities.lacking_for_clocks", lambda: "")


def test_every_fault_fits_somewhere() -> None:
    offers = frozenset().union(*(offered(t) for t in ("kafka:4.1.2", CONTAINER)))
    for one in FAULTS.values():
        assert any(one.needs <= offered(t) for t in ("kafka:4.1.2", CONTAINER)), one.name
        assert one.needs <= offers


def test_what_is_drawn_unasked() -> None:
    here, inside = names(DEFAULT_TARGET), names(CONTAINER)
    asked_for = {each.name for each in FAULTS.values() if each.needs & ON_REQUEST}
    assert asked_for == {"compact", "rolling-upgrade"}
    assert not (here | inside) & asked_for
    assert set(FAULTS) == here | inside | asked_for
    guest = names(EXTERNAL, hooks=FULL)
    assert {"kill-leader", "elect-leader", "pause-consumers", "delete-records"} <= guest
    assert not {"cut-client-link", "fill-leader", "disconnect-leader", "shift-leader"} & guest
    assert not any(FAULTS[name].exclusive for name in names(DEFAULT_TARGET, brokers=1))


@pytest.mark.parametrize(
    ("fault", "target", "brokers", "proxies", "why"),
    [
        ("kill-leader", DEFAULT_TARGET, 1, "ours", "needs three brokers"),
        ("kill-leader", EXTERNAL, 3, "ours", "needs a hook to kill"),
        ("kill-leader", "reference", 3, "ours", "needs a hook to kill"),
        ("lose-requests", CONTAINER, 3, TOXIPROXY, "give --proxies ours"),
        ("lose-requests", EXTERNAL, 3, "ours", "needs brokers that we start"),
        ("fill-leader", CONTAINER, 3, "ours", "give --target kafka:VERSION"),
        ("disconnect-leader", DEFAULT_TARGET, 3, "ours", "give --target container:IMAGE"),
        ("shift-leader", CONTAINER, 3, "ours", "give --target kafka:VERSION"),
        ("rolling-upgrade", DEFAULT_TARGET, 3, "ours", "an earlier release"),
        ("make-tea", DEFAULT_TARGET, 3, "ours", "is no fault"),
    ],
)
def test_the_reason_is_said(fault: str, target: str, brokers: int, proxies: str, why: str) -> None:
    with pytest.raises(UsageFault, match=f"{fault}.*{why}"):
        playable([fault], offered(target, brokers=brokers, proxies=proxies))


@pytest.mark.parametrize(
    ("target", "lacking"),
    [
        (DEFAULT_TARGET, set()),
        (f"altered:honest@{DEFAULT_TARGET}", set()),
        (CONTAINER, {Capability.LOCAL_FILES, Capability.LOCAL_PROCESS}),
        ("reference", {Capability.JVM, Capability.PROXIED, Capability.LOCAL_PROCESS}),
        ("kfake", {Capability.JVM, Capability.PROXIED, Capability.LOCAL_PROCESS}),
    ],
)
def test_what_checks_may_ask_for(target: str, lacking: set[Capability]) -> None:
    for need in (
        Capability.OWN_CLUSTER,
        Capability.LOCAL_FILES,
        Capability.JVM,
        Capability.PROXIED,
        Capability.LOCAL_PROCESS,
    ):
        if need in lacking:
            with pytest.raises(OutOfReach, match=r"^needs "):
                require(RunOptions(target=target), need)
        else:
            require(RunOptions(target=target), need)
        with pytest.raises(OutOfReach, match=r"^needs a cluster of its own"):
            require(RunOptions(target=EXTERNAL), need, Capability.OWN_CLUSTER)


# --- Draining ----------------------------------------------------------------------------------


def shown(start: int, lag: int) -> ShareOffset:
    return ShareOffset(start=start, lag=lag, leader_epoch=0, error=0)


def test_what_comes_nearer_does_not_stand_still() -> None:
    progress = Progress()
    times = []
    for start, lag in ((5, 90), (5, 90), (5, 80), (7, 85), (6, 81), (7, 79)):
        progress.note(1, shown(start, lag), done=False)
        times.append(progress.standing[1])
    assert [later > earlier for earlier, later in itertools.pairwise(times)] == [
        *(False, True, True, False, True)
    ]


def test_a_lag_that_is_not_shown_is_no_progress() -> None:
    progress = Progress()
    progress.note(1, shown(5, -1), done=False)
    since = progress.standing[1]
    progress.note(1, shown(5, -1), done=False)
    assert progress.standing == {1: since}
    progress.note(1, shown(9, -1), done=True)
    assert not progress.standing


def test_an_empty_partition_is_not_waited_for(tmp_path: Path) -> None:
    load = Load(seconds=1, rate=20, partitions=6, processes=1, drain=30, background=False)
    with started(open_target("reference", TargetOptions())) as target:
        loaded = asyncio.run(run_load(load, target.info, tmp_path))
    assert loaded.drained


@pytest.mark.parametrize(
    ("words", "times"),
    [("load", 1), ("load", 3), ("chaos --no-faults --no-judge --brokers 1", 1)],
)
def test_an_interrupted_load_is_kept_and_ends_with_130(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, times: int
) -> None:
    def line(_console: Any, text: str) -> None:
        for _ in range(times if text.startswith(PRODUCING) else 0):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("shareproof.histories.line", line)
    monkeypatch.setattr("shareproof.chaos.run.line", line)
    where = ("--target", "reference", "--processes", "1", "--rate", "20", "--out", str(tmp_path))
    code, _, errors = shell(*words.split(), *where)
    assert (code, errors.splitlines()[-1]) == (130, "shareproof: interrupted")
    assert "Traceback" not in errors
    assert (tmp_path / "history" / "manifest.json").exists() is (times == 1)


# --- Clocks that can be moved ------------------------------------------------------------------

LOOK = """
import time
print('ready', flush=True)
input()
print(time.time() - float(input()), time.monotonic() - float(input()))
"""


@pytest.mark.skipif(bool(lacking()), reason=lacking())
@pytest.mark.parametrize("seconds", [0.0, 3600.0, -3000.0, 100.25])
def test_a_moved_clock(seconds: float) -> None:
    with Clocks() as clock:
        process = subprocess.Popen(
            [sys.executable, "-c", LOOK],
            env={**os.environ, **clock.environment("x")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert clock.applied("x") == 0
        if seconds:
            clock.move("x", seconds)
        output, _ = process.communicate(f"\n{time.time()}\n{time.monotonic()}\n", timeout=60)
        assert clock.applied("x") == seconds
    wall, monotonic = map(float, output.split())
    assert seconds <= wall < seconds + 30
    assert 0 <= monotonic < 30


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fixtures.clocks._compiler", lambda: None)
    monkeypatch.setattr("chaos.capabilities.lacking_for_clocks", lacking)  # not as above
    with pytest.raises(UsageFault, match=r"shift-leader needs .*C compiler"):
        playable(("shift-leader",), offered(DEFAULT_TARGET))
    assert not any(
        Capability.CLOCKS in fault.needs for fault in playable((), offered(DEFAULT_TARGET))
    )
