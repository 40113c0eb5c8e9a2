"""``shareproof app``: a right program holds every rule, and each way to be wrong breaks one."""

import asyncio
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from fixtures.adapters.clients import confluent_python
from fixtures.adapters.programs import command_of
from fixtures.adapters.versions import NEWEST
from fixtures.clients.member import AckType
from fixtures.interface.info import ClusterInfo
from fixtures.targets import TargetOptions, open_target, started
from reports.reader import parse
from spec.rule import load_rules
from spec.verdict import EnvironmentFault, Observation, Verdict
from suites.app.deliveries import Deliveries, Delivery, deliveries_of
from suites.app.environment import Fault
from suites.app.load import Sent, is_poison
from suites.app.rules import JUDGES, observe
from suites.app.run import AppRun
from suites.app.scenarios import SCENARIOS, Instance, Membership, ScenarioResult
from suites.options import AppOptions
from tests.exchanges import TOPIC, exchange
from tests.fake import ROOT
from tests.shell import Shell

CONSUMER = ROOT / "fixtures" / "programs" / "python" / "consumer.py"
MIXED_UP = ROOT / "tests" / "mixed_up.py"
WRONG: Mapping[str, tuple[str, str]] = {
    "accept-failed": ("FRM-01", "calm"),
    "long-pause": ("FRM-02", "small-lock"),
    "slow": ("FRM-03", "small-lock"),
    "late-dead-letter": ("FRM-04", "calm"),
    "retry-always": ("FRM-05", "calm"),
    "hold-on-stop": ("FRM-06", "terminated"),
    "mixed-up": ("FRM-07", "calm"),
    "accept-first": ("FRM-08", "killed"),
    "accept-before-output": ("FRM-09", "calm"),
    "requeue": ("FRM-10", "calm"),
    "crash": ("FRM-11", "calm"),
    "no-leave": ("FRM-12", "terminated"),
    "own-group": ("FRM-13", "two-instances"),
    "fixed-partitions": ("FRM-11", "partition-added"),
    "trust-headers": ("FRM-10", "calm"),
    "give-up": ("FRM-11", "permission-lost"),
    "undo-on-stop": ("FRM-14", "terminated-at-work"),
}
"""What is wrong with a program, the rule that it breaks, and a scenario that shows it."""

AT_ONCE = 6  # scenarios that are played at the same time: each waits most of its time


@pytest.fixture(scope="module")
def info() -> Iterator[ClusterInfo]:
    with started(open_target("reference", TargetOptions(brokers=3))) as target:
        yield target.info


def playing(
    info: ClusterInfo, out: Path, *command: str, seed: int = 1, work_ms: int = 10
) -> AppRun:
    record = f'{{"id": "{{key}}", "work_ms": {work_ms}}}'
    spec = AppOptions(command=[*command], records=20, record=record, attempts=3, patience=5.0)
    return AppRun(info=info, spec=spec, seed=seed, out=out, log=lambda _: None)


@pytest.fixture(scope="module")
def seen(
    info: ClusterInfo, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], list[Observation]]:
    out, python = tmp_path_factory.mktemp("app"), str(confluent_python(NEWEST["confluent"]))
    few = asyncio.Semaphore(AT_ONCE)

    async def one(wrong: str, scenario: str) -> tuple[tuple[str, str], list[Observation]]:
        command = [python, str(CONSUMER), "--wrong", wrong]
        if wrong == "mixed-up":
            command = [sys.executable, str(MIXED_UP)]
        async with few:
            seed = 1 + [*WRONG].index(wrong) if wrong else 0
            # A signal that comes a moment late still finds the program in the middle of a batch.
            work = 200 if wrong == "undo-on-stop" else 10
            how = playing(info, out / f"{scenario}-{wrong}", *command, seed=seed, work_ms=work)
            return (wrong, scenario), await how.play([SCENARIOS[scenario]], [*JUDGES])

    async def all_of_them() -> dict[tuple[str, str], list[Observation]]:
        plays = [*(("", name) for name in SCENARIOS), *((w, s) for w, (_, s) in WRONG.items())]
        return dict(await asyncio.gather(*(one(*each) for each in plays)))

    os.environ["PYTHONPATH"] = str(ROOT)
    return asyncio.run(all_of_them())


def test_every_rule_has_a_judge_and_a_scenario() -> None:
    rules = {rule for rule in load_rules() if rule.startswith("FRM-")}
    assert JUDGES.keys() == rules
    assert {rule for one in SCENARIOS.values() for rule in one.rules} == rules
    assert {rule for rule, _ in WRONG.values()} == rules


@pytest.mark.timeout(180)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_right_program_holds_every_rule(
    seen: dict[tuple[str, str], list[Observation]], scenario: str
) -> None:
    found = {one.rule: (one.verdict, one.reason) for one in seen["", scenario]}
    assert found == dict.fromkeys(SCENARIOS[scenario].rules, (Verdict.PASS, ""))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_program_breaks_its_rule(
    seen: dict[tuple[str, str], list[Observation]], wrong: str
) -> None:
    rule, scenario = WRONG[wrong]
    (found,) = [one for one in seen[wrong, scenario] if one.rule == rule]
    assert found.verdict is Verdict.FAIL
    assert found.witness


@pytest.mark.timeout(120)
def test_the_command_ends_with_the_verdict(shell: Shell, tmp_path: Path) -> None:
    python, out = str(confluent_python(NEWEST["confluent"])), tmp_path / "out"
    few = ("--records", "10", "--scenario", "calm", "--only", "FRM-01,FRM-09", "--out", str(out))
    program = (python, str(CONSUMER), "--wrong", "accept-failed")
    options = ("--target", "reference", "--seed", "3", "--json")
    code, output, _ = shell("app", *options, *few, "--", *program)
    results = parse(json.loads(output))
    assert code == results.run.exit_code == 1
    verdicts = {rule.id: rule.verdict for rule in results.rules}
    assert verdicts == {"FRM-01": "fail", "FRM-09": "pass"}
    broken = results.rules[0]
    assert "ACCEPT of" in (out / broken.checks[0].transcript).read_text(encoding="utf-8")
    assert "--only FRM-01 --seed 3" in broken.reproduce
    assert (out / "report.html").is_file()
    assert (out / "results.json").read_text(encoding="utf-8") == output


def test_an_interrupted_run_leaves_a_partial_report(shell: Shell, tmp_path: Path) -> None:
    ending = "import os, signal, time; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    words = ("--target", "reference", "--out", str(tmp_path), "--json")
    code, output, _ = shell("app", *words, "--", sys.executable, "-c", ending)
    run = parse(json.loads(output)).run
    assert (code, run.exit_code, run.partial) == (130, 130, True)
    assert "interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "Give the command of your program after --."),
        (("--", "/no/such/program"), 2, "there is no such program"),
        (("--scenario", "nowhere", "--", "true"), 2, "--scenario nowhere: there are calm,"),
        (("--only", "ACK", "--", "true"), 2, "no program is judged by that"),
        (("--poison", "bad", "--", "true"), 2, "it has to have {key} in it"),
        (("--scenario", "calm", "--", "true"), 3, "ended with code 0 before it joined"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(
    shell: Shell, tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    out = ("--out", str(tmp_path / "out"))
    ended, _, errors = shell("app", "--target", "reference", *out, *arguments)
    assert ended == code
    assert sentence in errors.splitlines()[-1]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("language", ["java", "go"])
async def test_other_libraries_are_judged_alike(
    info: ClusterInfo, tmp_path: Path, language: str
) -> None:
    if not shutil.which(language):
        pytest.skip(f"there is no {language} on PATH")
    command = await asyncio.to_thread(command_of, language)
    scenario, seed = SCENARIOS["terminated"], 100 + len(language)
    how = playing(info, tmp_path / "right", *command, seed=seed)
    worse = (*command, "--wrong", "hold-on-stop")
    bad = playing(info, tmp_path / "wrong", *worse, seed=seed + 50)
    right, wrong = await asyncio.gather(
        how.play([scenario], [*JUDGES]), bad.play([scenario], ["FRM-06", "FRM-12"])
    )
    assert {one.reason for one in right if one.verdict is not Verdict.PASS} == set()
    assert [one.verdict for one in wrong] == [Verdict.FAIL, Verdict.FAIL]


async def test_a_program_that_never_joins_is_no_verdict(info: ClusterInfo, tmp_path: Path) -> None:
    how = playing(info, tmp_path, "sh", "-c", "echo I am lost; exit 7")
    with pytest.raises(EnvironmentFault, match=r"ended with code 7 .*: I am lost"):
        await how.play([SCENARIOS["calm"]], [*JUDGES])


# --- Judges by themselves ---------------------------------------------------------------------

GOOD = Sent(key="sp-1-00000", place=(TOPIC, 0, 0), poison=False)
BAD = Sent(key="sp-1-00001", place=(TOPIC, 0, 1), poison=True)


frame = partial(exchange, api="ShareFetch")


def became(*exchanges: Any) -> Deliveries:
    return deliveries_of(cast("Any", exchanges), 10.0)


def test_an_acknowledgement_belongs_to_the_last_delivery() -> None:
    seen = became(
        frame(0, got=((0, 1),)),
        frame(1, acks=((0, AckType.RELEASE),), got=((0, 2),)),
        frame(2, acks=((0, AckType.ACCEPT),)),
    )
    first, second = seen.of[TOPIC, 0, 0]
    assert (first.kind, first.count, first.final) == (AckType.RELEASE, 1, False)
    assert (second.kind, second.count, second.final) == (AckType.ACCEPT, 2, True)
    assert seen.finished(GOOD.place, 5, 3.0)
    assert seen.strays == []


def test_locks_end_and_are_renewed() -> None:
    late = became(frame(0, got=((0, 1),)), frame(11, acks=((0, AckType.ACCEPT),), error=121))
    kept = became(
        frame(0, got=((0, 1),)),
        frame(9, acks=((0, AckType.RENEW),)),
        frame(18, acks=((0, AckType.ACCEPT),)),
    )
    (first,), (second,) = late.of.values(), kept.of.values()
    assert first[0].lapsed(20.0)
    assert not first[0].final
    assert not second[0].lapsed(20.0)
    assert second[0].renewals == 1


def test_a_closed_session_gives_back() -> None:
    seen = became(
        frame(0, got=((0, 1),)), frame(0, member="n", got=((1, 1),)), frame(1, epoch=-1, acks=())
    )
    assert [one.member for one in seen.held(2.0)] == ["n"]
    assert not seen.of[TOPIC, 0, 0][0].lapsed(20.0)


@pytest.mark.parametrize(
    ("ack", "why"),
    [
        (frame(1, member="n", acks=((0, AckType.ACCEPT),)), "n never acquired it, only m did"),
        (frame(1, acks=((7, AckType.ACCEPT),)), "m never acquired it, nobody did"),
        (frame(1, node=2, acks=((0, AckType.ACCEPT),)), "m acquired it from broker 1"),
    ],
)
def test_an_acknowledgement_by_somebody_else_is_a_stray(ack: Any, why: str) -> None:
    assert [one.why for one in became(frame(0, got=((0, 1),)), ack).strays] == [why]


def test_what_was_lost_may_be_sent_again_and_the_limit_finishes() -> None:
    ack = ((0, AckType.ACCEPT),)
    got, again = frame(0, got=((0, 1),)), frame(2, acks=ack)
    assert became(got, frame(1, acks=ack, answered=False), again).strays == []
    assert len(became(got, frame(1, acks=ack), again).strays) == 1
    seen = became(frame(0, got=((0, 5),)), frame(1, acks=((0, AckType.RELEASE),)))
    assert seen.finished(GOOD.place, 5, 2.0)
    assert not seen.finished(GOOD.place, 6, 2.0)


# --- Judges -------------------------------------------------------------------------------------


def delivery(one: Sent, kind: AckType | None, acked: float = 1.0, **other: Any) -> Delivery:
    usual = {"member": "m", "node": 1, "count": 1, "at": 0.0, "until": 10.0}
    acked = acked if kind is not None else math.inf
    return Delivery(place=one.place, kind=kind, acked=acked, **{**usual, **other})


def verdict(rule: str, *deliveries: Delivery, scenario: str = "calm", **facts: Any) -> str:
    found = Deliveries()
    for one in deliveries:
        found.of.setdefault(one.place, []).append(one)
    sent = {one.place: one for one in (GOOD, BAD)}
    facts = {"over": 30.0, "group": "g", **facts}
    seen = ScenarioResult(scenario=SCENARIOS[scenario], sent=sent, deliveries=found, **facts)
    return observe(rule, seen).verdict.value


ACCEPT, RELEASE, REJECT = AckType.ACCEPT, AckType.RELEASE, AckType.REJECT
ACCEPTED, REJECTED = delivery(GOOD, ACCEPT), delivery(BAD, REJECT)
CRASHED = Instance(ended=2.0, code=1, asked=False)
LEFT = Membership(member="m", group="g", first=0, left=1)
STOPPED: dict[str, Any] = {
    "scenario": "terminated",
    "stopping": 0.5,
    "instances": [Instance(ended=2.0, code=0, asked=True)],
}
WROTE: dict[str, Any] = {"writes_output": True, "outputs": {GOOD.key: 0.8}}


@pytest.mark.parametrize(
    ("rule", "deliveries", "facts", "expected"),
    [
        ("FRM-01", [REJECTED], {}, "pass"),
        ("FRM-01", [delivery(BAD, ACCEPT)], {}, "fail"),
        ("FRM-01", [delivery(BAD, ACCEPT)], {"dead": {BAD.key: 0.9}}, "pass"),
        ("FRM-01", [ACCEPTED], {}, "vacuous"),
        ("FRM-02", [delivery(BAD, RELEASE, 9.0)], {}, "pass"),
        ("FRM-02", [delivery(BAD, RELEASE, 11.0)], {}, "fail"),
        ("FRM-02", [delivery(BAD, RELEASE, 11.0)], {"scenario": "paused"}, "vacuous"),
        ("FRM-03", [delivery(GOOD, None)], {}, "fail"),
        ("FRM-03", [delivery(GOOD, None, closed=5.0)], {}, "pass"),
        ("FRM-03", [delivery(GOOD, None)], {"over": 5.0}, "vacuous"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 11.0)], {"starved": 0.2}, "unknown"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 11.0)], {"starved": 0.05}, "fail"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 16.0)], {"starved": 0.2}, "fail"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 16.0)], {"starved": 0.8}, "unknown"),
        ("FRM-03", [delivery(GOOD, None)], {"starved": 0.2}, "fail"),
        ("FRM-04", [REJECTED], {}, "vacuous"),
        ("FRM-04", [REJECTED], {"writes_dead": True, "dead": {BAD.key: 0.9}}, "pass"),
        ("FRM-04", [REJECTED], {"writes_dead": True, "dead": {BAD.key: 1.1}}, "fail"),
        ("FRM-05", [REJECTED], {"attempts": 1}, "pass"),
        ("FRM-05", [delivery(BAD, RELEASE), REJECTED], {"attempts": 1}, "fail"),
        ("FRM-05", [delivery(BAD, RELEASE, count=5)], {}, "pass"),
        ("FRM-05", [delivery(BAD, RELEASE, count=5)], {"attempts": 5}, "fail"),
        ("FRM-05", [delivery(BAD, RELEASE, count=4)], {"attempts": 5}, "vacuous"),
        ("FRM-05", [delivery(BAD, RELEASE, count=4)], {}, "fail"),
        ("FRM-05", [delivery(BAD, RELEASE, count=4)], {"healthy": False}, "unknown"),
        ("FRM-06", [ACCEPTED], STOPPED, "pass"),
        ("FRM-06", [delivery(GOOD, None)], STOPPED, "fail"),
        ("FRM-06", [delivery(GOOD, None, closed=1.9)], STOPPED, "pass"),
        ("FRM-06", [delivery(GOOD, ACCEPT, 0.1)], STOPPED, "vacuous"),
        ("FRM-06", [], STOPPED | {"grace": 1.0}, "fail"),
        ("FRM-06", [], STOPPED | {"grace": 1.0, "starved": 0.2}, "unknown"),
        ("FRM-14", [ACCEPTED], STOPPED | WROTE, "pass"),
        ("FRM-14", [delivery(GOOD, RELEASE)], STOPPED | WROTE, "fail"),
        ("FRM-14", [delivery(GOOD, None, closed=1.0)], STOPPED | WROTE, "fail"),
        ("FRM-14", [delivery(GOOD, None, closed=0.83)], STOPPED | WROTE, "vacuous"),
        ("FRM-14", [delivery(GOOD, None, closed=1.0)], STOPPED, "vacuous"),
        ("FRM-08", [ACCEPTED], {"faults": [Fault(what="SIGKILL", at=0.5)]}, "pass"),
        ("FRM-08", [delivery(GOOD, REJECT)], {"faults": [Fault(what="SIGKILL", at=0.5)]}, "fail"),
        ("FRM-09", [ACCEPTED], {}, "vacuous"),
        ("FRM-09", [ACCEPTED], {"writes_output": True, "outputs": {GOOD.key: 0.9}}, "pass"),
        ("FRM-09", [ACCEPTED], {"writes_output": True, "outputs": {GOOD.key: 1.1}}, "fail"),
        ("FRM-09", [ACCEPTED], {"writes_output": True}, "fail"),
        ("FRM-10", [ACCEPTED, REJECTED], {}, "pass"),
        ("FRM-10", [ACCEPTED, REJECTED], {"moving": True}, "fail"),
        ("FRM-10", [ACCEPTED], {}, "fail"),
        ("FRM-10", [ACCEPTED], {"healthy": False}, "unknown"),
        ("FRM-10", [ACCEPTED, REJECTED], {"moving": True, "healthy": False}, "unknown"),
        ("FRM-11", [ACCEPTED, REJECTED], {}, "pass"),
        ("FRM-11", [ACCEPTED, REJECTED], {"instances": [CRASHED]}, "fail"),
        ("FRM-12", [], STOPPED | {"members": [LEFT]}, "pass"),
        ("FRM-12", [], STOPPED | {"members": [replace(LEFT, left=None)]}, "fail"),
        ("FRM-13", [ACCEPTED, ACCEPTED], {"instances": [STOPPED, STOPPED]}, "fail"),
        ("FRM-13", [ACCEPTED], {"instances": [STOPPED]}, "vacuous"),
    ],
)
def test_judges_know_right_from_wrong(
    rule: str, deliveries: list[Delivery], facts: dict[str, Any], expected: str
) -> None:
    assert verdict(rule, *deliveries, **facts) == expected


def test_what_a_program_does_not_have_is_excused_and_poison_comes_everywhere() -> None:
    seen = ScenarioResult(scenario=SCENARIOS["calm"], group="g", sent={}, deliveries=Deliveries())
    assert observe("FRM-04", seen, owed=False).excused
    assert not observe("FRM-04", seen, owed=True).excused
    assert observe("FRM-04", seen).verdict is Verdict.VACUOUS
    poison = [number for number in range(40) if is_poison(number, 10)]
    assert poison == [2, 17, 22, 37]
    assert not any(is_poison(number, 0) for number in range(40))
