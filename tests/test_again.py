"""Judging an archive again: what changed is shown, what did not says so, what is gone is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from fixtures.interface.names import UsageFault
from reports.reading import parse
from reports.site.archive import find
from shareproof.chaos.again import Earlier, earlier, exit_code, rejudge, rejudge_archive
from tests.shell import shareproof
from tests.small_histories import read_cases, write_history
from tests.test_results import document, keep

ROOT = Path(__file__).parents[1]
BREAKS = "INV-02: An accepted record comes again."


def results(folder: Path, *, runs: list[str]) -> Path:
    """Write the results of a judgement of some runs, without their histories."""
    found = document()
    found["distributions"] = {f"{run}/history": [] for run in runs}
    keep(folder, found)
    return folder


def verdict_of(folder: Path, rule: str, verdict: str) -> None:
    """Make the results of a run say that an earlier release saw a rule otherwise."""
    file = folder / "results.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    (wanted,) = (one for one in found["requirements"] if one["id"] == rule)
    wanted["verdict"] = verdict
    file.write_text(json.dumps(found), encoding="utf-8")


def test_what_changed_is_shown_and_what_did_not_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = (one for one in read_cases() if str(one) == BREAKS)
    made, archive = tmp_path / "made", tmp_path / "archive"
    write_history(made / "history", [case])
    assert shareproof("analyse", str(made), "--brief", "--only", "INV-02,INV-05").returncode == 1
    for name in ("same", "other"):
        shutil.copytree(made, archive / name)
    shutil.rmtree(made)
    verdict_of(archive / "other" / "analysis", "INV-02", "pass")

    assert rejudge_archive([archive], replace=False, as_json=True) == 1

    told = {Path(one["run"]).parent.name: one for one in json.loads(capsys.readouterr().out)}
    assert told["same"]["changed"] == []
    assert told["other"]["changed"] == [{"id": "INV-02", "before": "pass", "now": "fail"}]
    kept = json.loads((archive / "other" / "analysis" / "results.json").read_text("utf-8"))
    assert next(one for one in kept["requirements"] if one["id"] == "INV-02")["verdict"] == "pass"

    assert rejudge_archive([archive / "other"], replace=True, as_json=False) == 1
    assert rejudge_archive([archive], replace=False, as_json=False) == 0
    said = capsys.readouterr().err
    assert "INV-02  pass -> fail" in said
    assert "2 judgements made again, 0 with other verdicts, 0 impossible" in said


def test_changed_verdicts_end_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run" / "history").mkdir(parents=True)
    found = earlier(find([results(tmp_path / "run", runs=["/long/gone/run"])]))
    assert found[0].runs == (tmp_path / "run",)

    def other(asked: Sequence[Earlier], _: object) -> Any:
        now = document()
        now["requirements"][0] |= {"verdict": "vacuous", "reason": "nothing happened"}
        return [parse(now) for _ in asked]

    changed = rejudge(found, replace=False, by=other)
    assert exit_code(changed) == 1
    assert "-> vacuous: nothing happened" in capsys.readouterr().err
    assert (
        exit_code(
            rejudge(found, replace=False, by=lambda asked, _: [parse(document()) for _ in asked])
        )
        == 0
    )
    assert "no verdict changed" in capsys.readouterr().err


def test_a_lost_history_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = results(tmp_path / "run", runs=["/long/gone/run"])
    assert rejudge_archive([run], replace=False, as_json=False) == 3
    assert "the history of /long/gone/run was not kept" in capsys.readouterr().err


def test_certificates_are_not_judged_again(tmp_path: Path) -> None:
    keep(tmp_path, document())
    with pytest.raises(UsageFault, match="no judged history there"):
        rejudge_archive([tmp_path], replace=False, as_json=False)


def test_what_cannot_be_read_is_told_and_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run" / "history").mkdir(parents=True)
    results(tmp_path / "run", runs=["/long/gone/run"])
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "results.json").write_text('{"schema', encoding="utf-8")
    assert rejudge_archive([tmp_path], replace=False, as_json=False) == 3
    said = capsys.readouterr().err
    assert "left out:" in said
    assert "only a part of it" in said
