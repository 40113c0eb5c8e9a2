"""A house of straw: checks with known outcomes, a target that starts nothing, a ledger to order.

Runs real pytest in a process of its own on a folder laid out like the house, so that the plugin's
verdicts can be compared with what is known to be true.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

CONFTEST = """
import os
from fixtures.interface.info import ClusterInfo
from fixtures.interface.target import TargetOptions
import spec.rule
from spec.rule import Basis, Honesty, Kind, Level, Rule, Source
from spec.verdict import EnvironmentFault
from shareproof.runner import limits, session
from suites import clusters

def rule(number, **changes):
    facts = dict(id=f"ACK-{number:02}", level=Level.MUST, text="a <b>rule</b>",
                 basis=Basis.CONTRACT, source=(Source(kind=Kind.ISSUE, name="KAFKA-1"),),
                 since="4.1", honesty=Honesty.REQUIRED)
    return Rule(**{**facts, **changes})

RULES = [rule(number) for number in range(1, 40)]
RULES.append(rule(40, honesty=Honesty.UNTESTED, why="nobody can see it"))
RULES.append(rule(41, since="9.9"))
RULES.append(rule(42, level=Level.MAY))
spec.rule.load_rules = lambda: {entry.id: entry for entry in RULES}

class Target:
    def __init__(self, name, options=TargetOptions()):
        self.info = ClusterInfo(name=name, version=os.environ.get("FAKE_VERSION", "4.4.0"),
            ledger="apache-kafka", bootstrap=("127.0.0.1:1",) * options.brokers, schema_jar="",
            prefix="sp-", properties=options.properties)
    def start(self):
        if os.environ.get("FAKE_FAULT"):
            raise EnvironmentFault(os.environ["FAKE_FAULT"])
        note("start")
    def stop(self):
        note("stop")

def note(word):
    with open(os.environ["FAKE_NOTES"], "a") as notes:
        notes.write(word + "\\n")

async def refusal(info, probe):
    return "UNSUPPORTED_VERSION" if probe == "refuses" else None

session.open_target = clusters.open_target = Target
limits.GRACE = float(os.environ.get("FAKE_GRACE", limits.GRACE))
pytest_plugins = ["shareproof.runner.plugin"]

def pytest_configure(config):
    from shareproof.runner import plugin
    plugin.refusal = refusal
"""

HEAD = """
import asyncio, os, signal
import pytest
from fixtures.wire.connection import CallTimeout
from spec.verdict import EnvironmentFault, OutOfReach, Undecided, Violation

rule = pytest.mark.rule
"""

CANARY = """
@pytest.mark.canary
async def test_canary(judge):
    judge.holds({}, "it must fail")
"""

LEDGER = '[ledger]\nname = "fake"\n'


class FakeHouse:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.notes = folder / "notes.txt"
        (folder / "suites" / "broker").mkdir(parents=True)
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        self.ledger("")
        self.canary("False")

    def checks(self, source: str) -> None:
        file = self.folder / "suites" / "broker" / "test_fake.py"
        file.write_text(HEAD + source, encoding="utf-8")

    def canary(self, claim: str) -> None:
        file = self.folder / "suites" / "broker" / "test_canary.py"
        file.write_text(HEAD + CANARY.format(claim), encoding="utf-8")

    def ledger(self, entries: str) -> None:
        (self.folder / "fake.toml").write_text(LEDGER + entries, encoding="utf-8")

    def start(self, *options: str, where: str = "", **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml")]
        command += ["--rootdir", str(self.folder), "--out", str(self.out), "--seed", "7"]
        command += ["-p", "no:hypothesispytest", "--ledger", str(self.folder / "fake.toml")]
        ours = {"PYTHONPATH": str(ROOT), "FAKE_NOTES": str(self.notes)}
        return subprocess.Popen(
            [*command, *options, str(self.folder / "suites" / where)],
            cwd=self.folder,
            env={**os.environ, **ours, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str, where: str = "", **environment: str) -> Ran:
        return self.finish(self.start(*options, where=where, **environment))

    def finish(self, process: subprocess.Popen[str]) -> Ran:
        output, _ = process.communicate(timeout=60)
        return Ran(self, process.returncode, output)

    def interrupt(self, process: subprocess.Popen[str], seen: Path) -> Ran:
        """Press Ctrl-C, as a terminal does it: to the whole group, once ``seen`` exists."""
        deadline = time.monotonic() + 30
        while not seen.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        return self.finish(process)


class Ran:
    def __init__(self, house: FakeHouse, code: int, output: str) -> None:
        self.house = house
        self.code = code
        self.output = output

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.house.out / "results.json").read_bytes())
        return found

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        return {entry["id"][4:]: entry for entry in self.document["rules"]}

    @property
    def verdicts(self) -> dict[str, str]:
        return {number: entry["verdict"] for number, entry in self.rules.items()}

    @property
    def notes(self) -> list[str]:
        notes = self.house.notes
        return notes.read_text(encoding="utf-8").split() if notes.exists() else []
