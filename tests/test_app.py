"""``shareproof app``: a right program holds every rule, and each way to be wrong breaks one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fixtures.adapters.clients import confluent_python
from fixtures.adapters.programs import command_of
from fixtures.adapters.versions import NEWEST
from fixtures.interface.info import ClusterInfo
from fixtures.targets import TargetOptions, open_target
from reports.reading import parse
from spec.requirement import load_requirements
from spec.verdict import EnvironmentFault, Observation, Verdict
from suites.app.load import Template
from suites.app.program import ProgramSpec
from suites.app.rules import JUDGES
from suites.app.run import AppRun
from suites.app.scenarios import SCENARIOS
from tests.fake import ROOT
from tests.test_cli import Shell

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
    "give-up": ("FRM-11", "permission-lost"),
}
"""What is wrong with a program, the rule that it breaks, and a scenario that shows it."""

AT_ONCE = 6
"""Scenarios that are played at the same time: each waits most of its time."""


@pytest.fixture(scope="module")
def info() -> Iterator[ClusterInfo]:
    """A reference broker of three nodes."""
    target = open_target("reference", TargetOptions(brokers=3))
    target.start()
    yield target.info
    target.stop()


def playing(info: ClusterInfo, out: Path, *command: str, seed: int = 1) -> AppRun:
    """Return how a program is tried here; names of topics and groups come from the seed."""
    template = Template(record='{"id": "{key}", "work_ms": 10}')
    spec = ProgramSpec(command=command, records=20, template=template, attempts=3, patience=5.0)
    return AppRun(info=info, spec=spec, seed=seed, out=out, tell=lambda _: None)


@pytest.fixture(scope="module")
def seen(
    info: ClusterInfo, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], list[Observation]]:
    """What each scenario says of the right program, and one scenario of each that is wrong."""
    out, python = tmp_path_factory.mktemp("app"), str(confluent_python(NEWEST["confluent"]))
    few = asyncio.Semaphore(AT_ONCE)

    async def one(wrong: str, scenario: str) -> tuple[tuple[str, str], list[Observation]]:
        command = [python, str(CONSUMER), "--wrong", wrong]
        if wrong == "mixed-up":
            command = [sys.executable, str(MIXED_UP)]
        async with few:
            seed = 1 + [*WRONG].index(wrong) if wrong else 0
            how = playing(info, out / f"{scenario}-{wrong}", *command, seed=seed)
            return (wrong, scenario), await how.play([SCENARIOS[scenario]], [*JUDGES])

    async def all_of_them() -> dict[tuple[str, str], list[Observation]]:
        plays = [*(("", name) for name in SCENARIOS), *((w, s) for w, (_, s) in WRONG.items())]
        return dict(await asyncio.gather(*(one(*each) for each in plays)))

    os.environ["PYTHONPATH"] = str(ROOT)
    return asyncio.run(all_of_them())


def test_every_rule_has_a_judge_and_a_scenario() -> None:
    rules = {rule for rule in load_requirements() if rule.startswith("FRM-")}
    assert JUDGES.keys() == rules
    assert {rule for one in SCENARIOS.values() for rule in one.rules} == rules
    assert {rule for rule, _ in WRONG.values()} == rules


@pytest.mark.timeout(180)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_right_program_holds_every_rule(
    seen: dict[tuple[str, str], list[Observation]], scenario: str
) -> None:
    found = {one.requirement: (one.verdict, one.reason) for one in seen["", scenario]}
    assert found == dict.fromkeys(SCENARIOS[scenario].rules, (Verdict.PASS, ""))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_program_breaks_its_rule(
    seen: dict[tuple[str, str], list[Observation]], wrong: str
) -> None:
    rule, scenario = WRONG[wrong]
    (found,) = [one for one in seen[wrong, scenario] if one.requirement == rule]
    assert found.verdict is Verdict.FAIL
    assert found.witness


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """The command line."""
    return Shell(monkeypatch, capsys)


@pytest.mark.timeout(120)
def test_the_command_ends_with_the_verdict(shell: Shell, tmp_path: Path) -> None:
    python, out = str(confluent_python(NEWEST["confluent"])), tmp_path / "out"
    few = ("--records", "10", "--scenario", "calm", "--only", "FRM-01,FRM-09", "--out", str(out))
    program = (python, str(CONSUMER), "--wrong", "accept-failed")
    options = ("--target", "reference", "--seed", "3", "--json")
    code, said, _ = shell("app", *options, *few, "--", *program)
    results = parse(json.loads(said))
    assert code == results.run.exit_code == 1
    verdicts = {rule.id: rule.verdict for rule in results.requirements}
    assert verdicts == {"FRM-01": "fail", "FRM-09": "pass"}
    broken = results.requirements[0]
    assert "ACCEPT of" in (out / broken.checks[0].transcript).read_text(encoding="utf-8")
    assert "--only FRM-01 --seed 3" in broken.reproduce
    assert (out / "report.html").is_file()
    assert (out / "results.json").read_text(encoding="utf-8") == said


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
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
    shell: Shell, tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    out = ("--out", str(tmp_path / "out"))
    ended, _, said = shell("app", "--target", "reference", *out, *arguments)
    assert ended == code
    assert told in said.splitlines()[-1]


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
