"""A report by Allure is compared with its run; see tools/allure_report.py, which also makes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.targets import optional
from reports.reading import parse
from shareproof.runner.allured import CONFIG, RESULTS, write
from tests.fake import ROOT
from tests.test_results import document
from tools.allure_report import ALLURE, differences, expected, main, reported

CHECKS = [("a", "passed", "pass", 1), ("b", "failed", "fail", 1), ("b", "skipped", "fail", 2)]
"""Name, status, verdict, and when each ended: b ran twice, and was a known failure then."""
KNOWN = "fail: known failure"


def dump(file: Path, content: Any) -> None:
    """Write JSON where nothing was yet."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two checks, one of which was run twice."""
    write(tmp_path, parse(document("A rule that holds.")))
    for number, (name, status, verdict, stop) in enumerate(CHECKS):
        dump(
            tmp_path / RESULTS / f"{number}-result.json",
            {
                "uuid": str(number),
                "historyId": name,
                "status": status,
                "stop": stop,
                "labels": [{"name": "verdict", "value": verdict}],
            },
        )
    return tmp_path


def report(run: Path, *, passed: int = 1, category: str = KNOWN) -> Path:
    """Write of a report what Allure 3.18 would write of that run, or what it should not."""
    folder = run / "report"
    dump(folder / "summary.json", {"stats": {"total": 2, "new": 2, "passed": passed, "skipped": 1}})
    node = {"id": "x", "name": category, "statistic": {"total": 1, "skipped": 1}}
    dump(folder / "widgets" / "categories.json", {"roots": ["x"], "nodes": {"x": node}})
    variables = json.loads((run / CONFIG).read_text())["variables"]
    dump(
        folder / "widgets" / "allure_environment.json",
        [{"name": name, "values": [value]} for name, value in variables.items()],
    )
    return folder


def test_a_report_of_the_run_agrees(run: Path) -> None:
    assert differences(expected(run), reported(report(run))) == []


def test_a_report_that_differs_is_told(run: Path) -> None:
    lost, misplaced = differences(expected(run), reported(report(run, passed=0, category="?")))

    assert lost.startswith("its statuses are {'skipped': 1}, those of the run {'passed': 1,")
    assert misplaced == f"its categories are {{'?': 1}}, those of the run {{'{KNOWN}': 1}}"


def test_no_run_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert ended.value.code == 2
    assert f"run shareproof broker --out {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("npx", "said"),
    [
        (None, "there is no npx; pip install 'shareproof[allure]' brings Node.js"),
        ("echo npm error code ENOTFOUND >&2; exit 1", "from npm's registry: ENOTFOUND"),
        ("echo no results; exit 5", f"{ALLURE} ended with 5: no results"),
    ],
)
def test_what_keeps_allure_from_working_is_told(
    run: Path,
    npx: str | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if npx is not None:
        tool = run / "npx"
        tool.write_text(f"#!/bin/sh\n{npx}\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(run))
    monkeypatch.setattr(optional, "missing", lambda _name: "")

    assert main([str(run)]) == 3
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("SELF_SIGNED_CERT_IN_CHAIN", False),
        ("ECONNREFUSED", False),
        ("E403", False),
        ("E404", True),
    ],
)
def test_a_registry_out_of_reach_is_not_run(
    run: Path,
    code: str,
    reached: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tool, record = run / "npx", run / "record"
    tool.write_text(f"#!/bin/sh\necho npm error code {code} >&2; exit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(run))
    monkeypatch.setenv(optional.RECORD_VARIABLE, str(record))
    monkeypatch.setattr(optional, "missing", lambda _name: "")

    assert main([str(run)]) == 3
    said = capsys.readouterr()
    assert f"{code}. npm reads npm_config_registry, NODE_EXTRA_CA_CERTS, HTTPS_PROXY" in said.err
    assert said.out.startswith("" if reached else "NOT RUN, and therefore not passed")
    assert record.exists() is not reached


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installation has no documents")
def test_the_recipe_names_the_same_allure() -> None:
    assert f"npx --yes {ALLURE} generate {RESULTS}" in (ROOT / "docs" / "ci.md").read_text()
