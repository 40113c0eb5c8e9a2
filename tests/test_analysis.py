"""Judging from end to end: the command line, spoiled and cut histories, a real Spark cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from fixtures.history.class_data import KEPT, class_data_options
from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from reports.analysis.files import History, of_one_target
from reports.analysis.judging import Found
from reports.analysis.request import Judged, Request
from reports.analysis.rules import load_invariants
from reports.analysis.settling import observations, owed_by
from reports.reading import SCHEMA_FILE
from spec.history import FaultSpan, Manifest, bucket_of
from spec.verdict import MixedTargets
from tests.shell import python
from tests.small_histories import Case, read_cases, write_history
from tests.standalone import PATIENCE, standalone

ROOT = Path(__file__).parents[1]
MS = 1_000_000

CASES = {str(case): case for case in read_cases()}
RIGHT = [case for case in CASES.values() if not case.breaks and case.version == "4.4.0"]
ACCEPTED_TWICE = CASES["INV-02: An accepted record comes again."]
NEVER_CAME = CASES["INV-05: A stored record never comes."]


def _history(folder: Path, cases: list[Case]) -> Path:
    write_history(folder / "history", cases)
    return folder / "history"


def _analyse(run: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    command = ["-m", "shareproof", "analyse", str(run), "--json", *more]
    done = python(*command, timeout=PATIENCE)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def _verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {rule["id"]: rule["verdict"] for rule in document["requirements"]}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A Spark standalone cluster, a master and two workers; its address."""
    with standalone(tmp_path) as address:
        yield address


@pytest.mark.parametrize(("said", "excused"), [(["INV-02"], {"INV-01"}), (None, set())])
def test_a_run_owes_what_it_says(said: list[str] | None, excused: set[str]) -> None:
    run = {"load": {} if said is None else {"owed": said}}
    history = History(folder=Path("run/history"), manifest=Manifest(files=()), run=run)
    rules = [rule for rule in load_invariants() if rule.id in {"INV-01", "INV-02"}]
    idle = {rule.id: Found(exercised=0, broken=0, seconds=0) for rule in rules}
    judged = [Judged(history, idle, [], [], {})]
    request = Request(runs=(Path("run"),))

    seen = observations(judged, rules, owed_by(request, judged), None)

    assert {one.requirement for one in seen} == {"INV-01", "INV-02"}
    assert {one.requirement for one in seen if one.excused} == excused


@pytest.mark.parametrize("others", ["kafka:4.2.1", None])
def test_histories_of_several_targets_are_not_judged_together(others: str | None) -> None:
    def of(name: str | None) -> History:
        run = {"target": {"name": name}} if name else {}
        return History(folder=Path("run/history"), manifest=Manifest(files=()), run=run)

    of_one_target([of("kafka:4.4.0"), of("kafka:4.4.0")])
    with pytest.raises(MixedTargets, match=r"these runs are of kafka:4\.\d\.\d and .*one target"):
        of_one_target([of("kafka:4.4.0"), of(others)])


def test_a_cut_and_spoiled_history_is_judged(tmp_path: Path) -> None:
    """Journals without their end are judged: a proof stays one, and an absence proves nothing.

    The witness names the fault that it overlaps, and what the run without faults says.
    """
    run = tmp_path / "a run's [1] {2}* 100%41"  # whatever a path may have
    history = _history(run, [*RIGHT[:4], ACCEPTED_TWICE, NEVER_CAME])
    _history(tmp_path / "quiet", RIGHT[:4])
    with Journal(history, 1) as journal:
        for kind, since, until in (("kill", 500, 900), ("pause", 5000, 6000)):
            journal.add(FaultSpan(0, kind, "broker 2", since * MS, until * MS, "it was dead"))
    acknowledged = history / "journal" / "0000" / "acknowledged.arrows"
    acknowledged.write_bytes(acknowledged.read_bytes()[:-8])

    code, document, said = _analyse(
        run,
        *("--control", str(tmp_path / "quiet")),
        *("--master", "local[2]", "--memory", "1g"),
    )

    assert "compacting" in said
    (again,) = (rule for rule in document["requirements"] if rule["id"] == "INV-02")
    assert "in the control run it was held" in again["reason"]
    assert "during kill of broker 2)" in again["witness"][0]
    verdicts = _verdicts(document)
    assert (verdicts["INV-02"], verdicts["INV-05"], verdicts["INV-14"]) == (
        "fail",
        "unknown",
        "pass",
    )
    assert code == 1
    assert any("acknowledged.arrows: cut" in fault for fault in document["run"]["errors"])
    jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def test_archives_of_classes_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAREPROOF_CACHE", str(tmp_path))
    monkeypatch.delenv("SHAREPROOF_CDS", raising=False)
    for age in range(KEPT + 2):
        archive = tmp_path / f"spark-classes-{age}.jsa"
        archive.touch()
        os.utime(archive, (1000 - age, 1000 - age))

    assert "ArchiveClassesAtExit" in class_data_options()
    left = {archive.name for archive in tmp_path.glob("*.jsa")}
    assert left == {f"spark-classes-{age}.jsa" for age in range(KEPT - 1)}


def test_on_a_real_cluster(tmp_path: Path, cluster: str) -> None:
    history = _history(tmp_path, [*RIGHT, ACCEPTED_TWICE])
    manifest = compact(history)
    spared = ACCEPTED_TWICE.log
    spoiled = next(
        file
        for file in manifest.files
        if file.table == "produced" and file.bucket not in {-1, bucket_of(spared)}
    )
    (history / spoiled.path).write_bytes(b"PAR1")

    code, document, said = _analyse(tmp_path, "--brief", "--master", cluster, "--memory", "512m")

    assert code == 1, said
    broken = {rule for rule, verdict in _verdicts(document).items() if verdict == "fail"}
    assert broken == {"INV-02"}
    assert any(spoiled.path in fault for fault in document["run"]["errors"])
