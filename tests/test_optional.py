"""What a machine may lack: what is not run says so, tox counts it, and the doctor foretells it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toxfile
from fixtures.targets import doctor
from tests.fake import ROOT


def test_a_bare_machine_lacks_every_tool_and_the_doctor_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DOCKER_HOST", doctor.CHROMIUM_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setattr("fixtures.targets.container.engine.answers", lambda: "")
    lacks = {
        "npm": r"npm's registry \(ConnectionError at 127.0.0.1\). npm reads npm_config_registry,",
        "Go": "go on PATH",
        "Cargo": "cargo on PATH",
        "container engine": "a container engine",
        "Chromium": "a Chromium",
        "git": "git on PATH",
        "C compiler": r"a C compiler \(cc on the path\)|Linux",
    }
    assert [tool for tool, text in lacks.items() if not re.match(text, doctor.missing(tool))] == []
    found = [doctor._optional(tool) for tool in doctor.TOOLS]
    assert [one.name for one in found if one.ok or one.needed] == []
    for one, tool in zip(found, doctor.TOOLS, strict=True):
        assert one.detail.startswith(f"NOT RUN: {tool.serves}. Missing: ")
        assert one.remedy == tool.remedy


@pytest.mark.parametrize(("version", "lacks"), [("1.19.8", "Go 1.26 or later"), ("1.26.1", "")])
def test_an_old_go_is_missing(
    version: str, lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    go.write_text(f'#!/bin/sh\n[ "$1" = env ] || echo go version go{version} linux/amd64\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.missing("Go").startswith(lacks)
    assert bool(doctor.missing("Go")) == bool(lacks)


def test_what_is_not_run_is_said_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "record"
    monkeypatch.setenv(doctor.RECORD_VARIABLE, str(record))
    doctor.not_run("the report", "npm")
    doctor.not_run("3 tests", "go on PATH", whole=False)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "NOT RUN, and therefore not passed: the report. Missing: npm"
    assert [json.loads(line)["whole"] for line in record.read_text().splitlines()] == [True, False]


PART = {"what": "3 tests", "missing": "go on PATH", "whole": False}
PARTLY = ("  3 tests", "NOT RUN", "go on PATH")
ALL = {"what": "the report", "missing": "npm", "whole": True}


@pytest.mark.parametrize(
    ("code", "left_out", "expected"),
    [
        (0, [], [("x", "passed in 9 s", "")]),
        (0, [PART], [("x", "passed in 9 s", ""), PARTLY]),
        (0, [ALL], [("x", "NOT RUN", "npm")]),
        (3, [ALL], [("x", "NOT RUN", "npm")]),
        (3, [PART], [("x", "FAILED, exit code 3 in 9 s", ""), PARTLY]),
        (1, [ALL], [("x", "FAILED, exit code 1 in 9 s", ""), ("  the report", "NOT RUN", "npm")]),
    ],
)
def test_nothing_that_was_not_run_reads_as_passed(
    code: int, left_out: list[dict[str, Any]], expected: list[tuple[str, str, str]]
) -> None:
    rows = toxfile.rows("x", code, 9.1, left_out)
    assert [(row.what, row.outcome, row.why) for row in rows] == expected


TOX = """[tox]
skipsdist = true
env_list = good, part, none, bad, broken
[testenv]
skip_install = true
set_env = SHAREPROOF_NOT_RUN = {env_tmp_dir}{/}not-run.jsonl
commands = python {tox_root}{/}act.py {env_name}
[testenv:broken]
deps = {tox_root}{/}no-such-wheel.whl
"""
ACT = f"""import os, sys
name = sys.argv[1]
lines = {{"part": {json.dumps(PART)!r}, "none": {json.dumps(ALL)!r}}}
if name in lines:
    open(os.environ["SHAREPROOF_NOT_RUN"], "w").write(lines[name] + "\\n")
sys.exit({{"none": 3, "bad": 7}}.get(name, 0))
"""


@pytest.mark.parametrize("how", [("run",), ("run-parallel", "-p", "2", "--parallel-no-spinner")])
def test_the_table_of_a_run_of_tox(how: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "tox.ini").write_text(TOX)
    (tmp_path / "act.py").write_text(ACT)
    shutil.copy(ROOT / "toxfile.py", tmp_path)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("TOX")}

    done = subprocess.run(
        [sys.executable, "-m", "tox", *how],
        cwd=tmp_path,
        env={**outside, "PYTHONPATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.partition("what ran, what did not, and why:\n")[2].splitlines()
    assert [re.split("  +", re.sub(r" in \d+ s", "", line).strip()) for line in lines] == [
        ["good", "passed"],
        ["part", "passed"],
        ["3 tests", "NOT RUN", "go on PATH"],
        ["none", "NOT RUN", "npm"],
        ["bad", "FAILED, exit code 7"],
        ["broken", "FAILED", "it could not be set up, see above"],
    ]
    assert done.returncode == 1
