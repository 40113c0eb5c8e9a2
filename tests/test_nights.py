"""Nights and archives: what is played, resumed, confirmed, shrunk, and judged again."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from fixtures.interface.names import UsageFault
from reports.nights import Failure, Night, Play, changes, read
from reports.verdicts import BROKEN, FAULT, INTERRUPTED, OK
from shareproof.chaos import night as nights
from shareproof.chaos.night import new_night, spend
from shareproof.chaos.verdicts import rejudge_archive
from shareproof.options import NightOptions
from tests.shell import Shell
from tests.small_histories import read_cases, write_history
from tests.test_results import document, keep

SEED = 4711


@dataclass
class Children:
    breaking: bool = False
    dead: bool = False
    stops_at: int = 0
    played: list[str] = field(default_factory=list)

    def __call__(self, command: Sequence[str], log: Path, limit: float) -> int:
        assert limit > 0
        log.write_text("shareproof: no cluster\n", encoding="utf-8")
        if command[0] == "night":
            self.played.append("shrink")
            run = Path(command[command.index("--shrink") + 1])
            (run / "shrunk.json").write_text("{}", encoding="utf-8")
            log.write_text("INV-02: kill-leader\nfails 3 of 10, after 4 plays\n", "utf-8")
            return BROKEN
        run = Path(command[command.index("--out") + 1])
        self.played.append(run.name)
        if len(self.played) == self.stops_at:
            run.mkdir()
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(10)
        if self.dead:
            return FAULT
        results = document() | {"chaos": []}
        if not self.breaking:
            results["run"]["exit_code"] = OK
            for rule in results["rules"]:
                rule["verdict"] = "pass"
        keep(run, results)
        return int(results["run"]["exit_code"])


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    found = Children()
    monkeypatch.setattr(nights, "_child", found)
    return found


def _spend(folder: Path, *, hours: float = 0.0, resume: bool = False) -> tuple[Night, int]:
    options = NightOptions(
        target="kafka:4.4.0",
        seed=SEED,
        minutes=1,
        hours=hours,
        rate=100,
        archive=folder / "nights",
        site=folder / "site",
        rejudge=0,
        confirm=2,
        resume=resume,
    )
    return spend(options, lambda _: None)


def test_a_quiet_night(tmp_path: Path, children: Children) -> None:
    night, code = _spend(tmp_path)
    assert (code, children.played) == (OK, [f"seed-{SEED}"])
    page = (tmp_path / "site" / "nights" / f"{night.name}.html").read_text(encoding="utf-8")
    assert "nothing new broke." in page
    assert f"nights/{night.name}.html" in (tmp_path / "site" / "index.html").read_text("utf-8")


def test_what_broke_is_confirmed_and_shrunk(tmp_path: Path, children: Children) -> None:
    children.breaking = True
    night, code = _spend(tmp_path)
    assert code == BROKEN
    assert children.played == [f"seed-{SEED}", f"seed-{SEED}-1", f"seed-{SEED}-2", "shrink"]
    (broken, *_) = night.broken
    assert (broken.confirmed, broken.verdict) == (True, "new, fails 3 of 3")
    page = (tmp_path / "site" / "nights" / f"{night.name}.html").read_text(encoding="utf-8")
    assert "kill-leader" in page
    assert f"{night.name}/seed-{SEED}/shrunk.json" in page


def test_a_night_without_a_verdict_ends(tmp_path: Path, children: Children) -> None:
    children.dead = True
    night, code = _spend(tmp_path, hours=8)
    assert (code, len(children.played)) == (FAULT, 3)
    assert night.trouble == "nothing to judge of the latest runs: shareproof: no cluster"
    assert (tmp_path / "site" / "nights" / f"{night.name}.html").is_file()


def test_a_night_that_was_stopped_goes_on(tmp_path: Path, children: Children) -> None:
    children.stops_at = 1
    stopped, code = _spend(tmp_path)
    assert (code, stopped.ended, stopped.plays) == (INTERRUPTED, "", ())
    night, code = _spend(tmp_path, resume=True)
    assert (night.name, code) == (stopped.name, OK)
    assert [play.seed for play in night.plays] == [SEED]
    assert children.played == [f"seed-{SEED}"] * 2
    folder = tmp_path / "nights" / night.name
    assert (folder / f"seed-{SEED}.stopped-1").is_dir()
    assert read(folder) == night


def test_what_changed_since_the_night_before() -> None:
    def played(rule: str, idle: str) -> Night:
        facts = {"seed": 1, "run": "seed-1", "faults": (), "began": "", "seconds": 1}
        failure = Failure(rule=rule, reason="it broke")
        play = Play(**facts, exit_code=1, failures=(failure,), idle=(idle,))  # type: ignore[arg-type]
        return replace(new_night(NightOptions(seed=SEED)), plays=(play,))

    assert changes(played("INV-01", "INV-08"), played("INV-02", "INV-08")) == (
        "INV-02 (new): newly broken",
        "INV-01 (new): no longer broken",
    )


@pytest.mark.parametrize("text", ["", "[]", '{"plays": 3}', "{"])
def test_what_is_no_record_of_a_night_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "night.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="no record of a night"):
        read(tmp_path)


# --- Judging an archive again -----------------------------------------------------------------

ROOT = Path(__file__).parents[1]
BREAKS = "INV-02: An accepted record comes again."


def results(folder: Path, *, runs: list[str]) -> Path:
    found = document()
    found["distributions"] = {f"{run}/history": [] for run in runs}
    keep(folder, found)
    return folder


def verdict_of(folder: Path, rule: str, verdict: str) -> None:
    file = folder / "results.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    (wanted,) = (one for one in found["rules"] if one["id"] == rule)
    wanted["verdict"] = verdict
    file.write_text(json.dumps(found), encoding="utf-8")


def test_what_changed_is_shown_and_what_did_not_says_so(
    tmp_path: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = (one for one in read_cases() if str(one) == BREAKS)
    made, archive = tmp_path / "made", tmp_path / "archive"
    write_history(made / "history", [case])
    assert shell("analyse", str(made), "--brief", "--only", "INV-02,INV-05")[0] == 1
    for name in ("same", "other"):
        shutil.copytree(made, archive / name)
    shutil.rmtree(made)
    verdict_of(archive / "other" / "analysis", "INV-02", "pass")

    assert rejudge_archive([archive], replace=False, as_json=True) == 1

    judged = {Path(one["run"]).parent.name: one for one in json.loads(capsys.readouterr().out)}
    assert judged["same"]["changed"] == []
    assert judged["other"]["changed"] == [{"id": "INV-02", "before": "pass", "now": "fail"}]
    kept = json.loads((archive / "other" / "analysis" / "results.json").read_text("utf-8"))
    assert next(one for one in kept["rules"] if one["id"] == "INV-02")["verdict"] == "pass"

    assert rejudge_archive([archive / "other"], replace=True, as_json=False) == 1
    assert rejudge_archive([archive], replace=False, as_json=False) == 0
    errors = capsys.readouterr().err
    assert "INV-02  pass -> fail" in errors
    assert "2 judgements made again, 0 with other verdicts, 0 impossible" in errors


def test_what_cannot_be_judged_again_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path / "certificate", document())
    with pytest.raises(UsageFault, match="no judged history there"):
        rejudge_archive([tmp_path / "certificate"], replace=False, as_json=False)
    lost, there = tmp_path / "lost", tmp_path / "there" / "run"
    results(lost, runs=["/long/gone/run"])
    assert rejudge_archive([lost], replace=False, as_json=False) == 3
    assert "the history of /long/gone/run was not kept" in capsys.readouterr().err
    (there / "history").mkdir(parents=True)
    results(there, runs=["/long/gone/run"])
    (tmp_path / "there" / "half").mkdir()
    (tmp_path / "there" / "half" / "results.json").write_text('{"schema', encoding="utf-8")
    assert rejudge_archive([tmp_path / "there"], replace=False, as_json=False) == 3
    errors = capsys.readouterr().err
    assert "left out:" in errors
    assert "only a part of it" in errors
