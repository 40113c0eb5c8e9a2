"""A night: what is played, kept, shrunk and shown, with the plays themselves left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from chaos.schedule import Schedule
from reports.reading import parse
from reports.results import Results
from reports.verdicts import BROKEN, FAULT, OK
from shareproof.chaos import night as nights
from shareproof.chaos.night import Night, whole_night
from spec.verdict import EnvironmentFault
from tests.test_results import document, keep

SEED = 4711


@dataclass
class Plays:
    """A swarm whose runs break a rule, or none, or cannot be carried out."""

    archive: Path
    breaking: bool = False
    trouble: str = ""
    played: list[int] = field(default_factory=list)

    def draw(self, seed: int) -> Schedule:
        """Return an empty schedule of a seed."""
        return Schedule(seed=seed, seconds=1.0, strikes=())

    def play(self, schedule: Schedule, out: Path) -> Results:
        """Leave the results of a run."""
        self.played.append(schedule.seed)
        if self.trouble:
            raise EnvironmentFault(self.trouble)
        results = document() | {"chaos": []}
        if not self.breaking:
            results["run"]["exit_code"] = OK
            for rule in results["requirements"]:
                rule["verdict"] = "pass"
        keep(out, results)
        return parse(results)


@pytest.fixture
def shrunk(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs that were shrunk."""
    runs: list[Path] = []

    def shrink_run(_: Any, run: Path, **__: int) -> int:
        runs.append(run)
        return BROKEN

    monkeypatch.setattr(nights, "shrink_run", shrink_run)
    return runs


def _night(site: Path) -> Night:
    return Night(hours=0.0, seed=SEED, site=site, again=0, shrunk=3, tries=1, replays=1, most=1)


def test_a_quiet_night(tmp_path: Path, shrunk: list[Path]) -> None:
    """A night plays one run at least, and its site shows the archive."""
    plays = Plays(tmp_path / "archive")

    assert whole_night(plays, _night(tmp_path / "site")) == OK  # type: ignore[arg-type]
    assert plays.played == [SEED]
    assert shrunk == []
    assert (tmp_path / "site" / "index.html").is_file()


def test_what_failed_is_shrunk(tmp_path: Path, shrunk: list[Path]) -> None:
    """A run that broke a rule unexpectedly is shrunk, and the night ends with 1."""
    plays = Plays(tmp_path / "archive", breaking=True)

    assert whole_night(plays, _night(tmp_path / "site")) == BROKEN  # type: ignore[arg-type]
    assert shrunk == [plays.archive / f"seed-{SEED}"]


def test_a_night_without_a_run(tmp_path: Path, shrunk: list[Path]) -> None:
    """Where no run could be carried out there is nothing to show, and the night ends with 3."""
    plays = Plays(tmp_path / "archive", trouble="no cluster")

    assert whole_night(plays, _night(tmp_path / "site")) == FAULT  # type: ignore[arg-type]
    assert shrunk == []
    assert not (tmp_path / "site").exists()
