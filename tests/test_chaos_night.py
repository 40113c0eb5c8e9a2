"""A night: what is played, resumed, confirmed, shrunk and shown, with the plays left out."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from reports.nights import Failure, Night, Play, changes, read
from reports.verdicts import BROKEN, FAULT, OK
from shareproof.chaos import night as nights
from shareproof.chaos.night import INTERRUPTED, new_night, spend
from shareproof.options import NightOptions
from tests.test_results import document, keep

SEED = 4711


@dataclass
class Children:
    """What processes of a night leave behind: results that break a rule, or none, or nothing."""

    breaking: bool = False
    dead: bool = False
    stops_at: int = 0
    played: list[str] = field(default_factory=list)

    def __call__(self, command: Sequence[str], log: Path, limit: float) -> int:
        """Stand in for a process of ours."""
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
            for rule in results["requirements"]:
                rule["verdict"] = "pass"
        keep(run, results)
        return int(results["run"]["exit_code"])


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    """What stands in for the processes of a night."""
    found = Children()
    monkeypatch.setattr(nights, "_child", found)
    return found


def _options(folder: Path, *, resume: bool = False, hours: float = 0.0) -> NightOptions:
    return NightOptions(
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


def _quiet(_: str) -> None:
    pass


def test_a_quiet_night(tmp_path: Path, children: Children) -> None:
    night, code = spend(_options(tmp_path), _quiet)

    assert (code, children.played) == (OK, [f"seed-{SEED}"])
    page = (tmp_path / "site" / "nights" / f"{night.name}.html").read_text(encoding="utf-8")
    assert "nothing new broke." in page
    assert f"nights/{night.name}.html" in (tmp_path / "site" / "index.html").read_text("utf-8")


def test_what_broke_is_confirmed_and_shrunk(tmp_path: Path, children: Children) -> None:
    children.breaking = True

    night, code = spend(_options(tmp_path), _quiet)

    assert code == BROKEN
    assert children.played == [f"seed-{SEED}", f"seed-{SEED}-1", f"seed-{SEED}-2", "shrink"]
    (broken, *_) = night.broken
    assert (broken.confirmed, broken.verdict) == (True, "new, fails 3 of 3")
    page = (tmp_path / "site" / "nights" / f"{night.name}.html").read_text(encoding="utf-8")
    assert "kill-leader" in page
    assert f"{night.name}/seed-{SEED}/shrunk.json" in page


def test_a_night_without_a_verdict_ends(tmp_path: Path, children: Children) -> None:
    children.dead = True

    night, code = spend(_options(tmp_path, hours=8), _quiet)

    assert (code, len(children.played)) == (FAULT, 3)
    assert night.trouble == "nothing to judge of the latest runs: shareproof: no cluster"
    assert (tmp_path / "site" / "nights" / f"{night.name}.html").is_file()


def test_a_night_that_was_stopped_goes_on(tmp_path: Path, children: Children) -> None:
    children.stops_at = 1
    stopped, code = spend(_options(tmp_path), _quiet)
    assert (code, stopped.ended, stopped.plays) == (INTERRUPTED, "", ())

    night, code = spend(_options(tmp_path, resume=True), _quiet)

    assert (night.name, code) == (stopped.name, OK)
    assert [play.seed for play in night.plays] == [SEED]
    assert children.played == [f"seed-{SEED}"] * 2
    folder = tmp_path / "nights" / night.name
    assert (folder / f"seed-{SEED}.stopped-1").is_dir()
    assert read(folder) == night


def test_what_changed_since_the_night_before() -> None:
    def played(rule: str, idle: str) -> Night:
        failure = Failure(rule=rule, reason="it broke")
        play = Play(
            seed=1,
            run="seed-1",
            faults=(),
            began="",
            seconds=1,
            exit_code=1,
            failures=(failure,),
            idle=(idle,),
        )
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
