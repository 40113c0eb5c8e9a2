"""Judging from end to end, and damaged histories: what is wrong is named, the rest is judged."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

import jsonschema
import pyarrow.parquet as pq
from py4j.protocol import Py4JError

from fixtures.history.compaction import checksum, compact
from fixtures.history.journal import Journal
from fixtures.targets import UsageFault
from reports.analysis.analysis import observations, owed_by
from reports.analysis.files import History, of_one_target, open_history
from reports.analysis.judge import Found, Judged, Request, _guarded, observation
from reports.analysis.rules import load_invariants
from reports.reader import schema
from shareproof.chaos.verdicts import KEPT, class_data_options
from shareproof.histories import _known
from spec.history import (
    MOST_DELIVERIES,
    NEVER,
    Acknowledged,
    AckType,
    Acquired,
    FaultSpan,
    MemberEvent,
    Outcome,
    bucket_of,
)
from spec.verdict import EnvironmentFault, MixedTargets, Verdict
from tests.servers import PATIENCE, standalone
from tests.shell import python
from tests.small_histories import Case, nothing_of, read_cases, write_history, write_share_partition

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
    return {rule["id"]: rule["verdict"] for rule in document["rules"]}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    with standalone(tmp_path) as address:
        yield address


@pytest.mark.parametrize(("owed", "excused"), [(["INV-02"], {"INV-01"}), (None, set())])
def test_a_run_owes_what_it_says(owed: list[str] | None, excused: set[str]) -> None:
    run = {"load": {} if owed is None else {"owed": owed}}
    history = nothing_of(run)
    rules = [rule for rule in load_invariants() if rule.id in {"INV-01", "INV-02"}]
    idle = {rule.id: Found(exercised=0, broken=0, seconds=0) for rule in rules}
    judged = [Judged(history, idle, [], [], {})]
    request = Request(runs=(Path("run"),))
    seen = observations(judged, rules, owed_by(request, judged), None)
    assert {one.rule for one in seen} == {"INV-01", "INV-02"}
    assert {one.rule for one in seen if one.excused} == excused


@pytest.mark.parametrize("others", ["kafka:4.2.1", None])
def test_histories_of_several_targets_are_not_judged_together(others: str | None) -> None:
    def of(name: str | None) -> History:
        return nothing_of({"target": {"name": name}} if name else {})

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

    code, document, output = _analyse(
        run, *("--control", str(tmp_path / "quiet")), *("--master", "local[2]", "--memory", "1g")
    )

    assert "compacting" in output
    (again,) = (rule for rule in document["rules"] if rule["id"] == "INV-02")
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
    jsonschema.validate(document, schema())


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

    code, document, output = _analyse(tmp_path, "--brief", "--master", cluster, "--memory", "512m")

    assert code == 1, output
    broken = {rule for rule, verdict in _verdicts(document).items() if verdict == "fail"}
    assert broken == {"INV-02", "INV-43"}
    assert any(spoiled.path in fault for fault in document["run"]["errors"])


# --- Damaged histories ------------------------------------------------------------------------

SECOND = 1_000_000_000
RULES = {rule.id: rule for rule in load_invariants()}
Document = dict[str, Any]


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    history = _history(tmp_path_factory.mktemp("run"), RIGHT)
    compact(history)
    return history


@pytest.fixture
def history(tmp_path: Path, compacted: Path) -> Path:
    return shutil.copytree(compacted, tmp_path / "run" / "history")


def _edit(history: Path, change: Callable[[Document], object]) -> None:
    file = history / "manifest.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda it: it.update(schema=99), "schema 99"),
        (lambda it: it.update(buckets=0), "0 buckets"),
        (lambda it: it.update(buckets=2), "is in bucket . of 2"),
        (lambda it: it["files"][0].update(table="news"), "of a table 'news'"),
        (lambda it: it["files"][0].update(path=5), "a file 5"),
        (lambda it: it["files"][0].update(bucket="x"), "bucket 'x'"),
        (lambda it: it["files"][0].update(size=None), "rows, size or checksum"),
        (lambda it: it["files"].append(it["files"][0]), "twice"),
        (lambda it: it.update(files=[]), "names no file of members, reloads, share_partitions, un"),
        (lambda it: it["files"].pop(0), "manifest.json does not name it"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused(
    history: Path, change: Callable[[Document], object], sentence: str
) -> None:
    _edit(history, change)
    with pytest.raises(EnvironmentFault, match=sentence):
        open_history(history)


def test_files_of_nobody_and_empty_histories_are_refused(history: Path, tmp_path: Path) -> None:
    (history / "deliveries" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(EnvironmentFault, match=r"notes\.txt: manifest\.json does not name it"):
        open_history(history)
    (tmp_path / "empty" / "journal").mkdir(parents=True)
    compact(tmp_path / "empty")
    with pytest.raises(EnvironmentFault, match="nothing was recorded"):
        open_history(tmp_path / "empty")


@pytest.mark.parametrize("text", [None, "{", "[]", '{"target": "kafka"}', '{"seed": "x"}'])
def test_a_run_that_says_nothing_of_itself_is_named(history: Path, text: str | None) -> None:
    if text is None:
        (history / "run.json").unlink()
    else:
        (history / "run.json").write_text(text, encoding="utf-8")
    found = open_history(history)
    assert found.version == ""
    assert ["judged as the newest" in sentence for sentence in found.spoiled] == [True]


@pytest.mark.parametrize("lost", ["deletions", "faults", "limits", "locks", "offsets"])
def test_what_may_be_excused_is_not_held_against_anybody(history: Path, lost: str) -> None:
    (history / lost / "part-00000.parquet").write_bytes(b"PAR1")
    found = Found(exercised=9, broken=1, seconds=0)
    seen = observation(RULES["INV-14"], found, open_history(history), None)
    assert seen.verdict is Verdict.UNKNOWN
    assert lost in seen.reason


def test_a_journal_of_excuses_that_is_broken_takes_proofs_away() -> None:
    found = Found(exercised=9, broken=1, seconds=0)
    for name, verdict in (("reloads", Verdict.UNKNOWN), ("clocks", Verdict.FAIL)):
        broken = nothing_of(broken=(f"journal/0001/{name}.arrows",))
        assert observation(RULES["INV-12"], found, broken, None).verdict is verdict


def test_a_history_without_a_column_is_named(tmp_path: Path) -> None:
    write_history(tmp_path, read_cases()[:3])
    manifest = compact(tmp_path)
    file = next(file for file in manifest.files if file.table == "deliveries")
    path = tmp_path / file.path
    pq.write_table(pq.read_table(path).drop(["op", "others_in_response"]), path)
    changed = {"size": path.stat().st_size, "crc": checksum(path)}
    _edit(
        tmp_path,
        lambda it: [one.update(changed) for one in it["files"] if one["path"] == file.path],
    )

    assert "no table deliveries of this release's schema" in open_history(tmp_path).spoiled[0]


@pytest.mark.parametrize("spoiled", [{"outcome": 99}, {"last": 2**40}, {"last": -1}, {"log": -5}])
def test_rows_that_nobody_wrote_end_a_journal(tmp_path: Path, spoiled: dict[str, int]) -> None:
    row = {"op": 1, "share_partition": 0, "log": 0, "first": 0, "last": 0, "kind": 1, "sent": 5}
    row |= {"received": 6, "outcome": 1, "error": 0}
    with Journal(tmp_path, 1) as journal:
        journal.add(Acknowledged(*row.values()))
        journal.flush()
        journal.add(Acknowledged(*(row | spoiled).values()))
    assert compact(tmp_path).broken == ("journal/0001/acknowledged.arrows",)


@pytest.mark.parametrize("known", [True, False])
def test_who_died_unseen_is_buried(tmp_path: Path, known: bool) -> None:
    with Journal(tmp_path, 0) as journal:
        write_share_partition(journal, 0, 0)
    with Journal(tmp_path, 1) as journal:
        journal.add(MemberEvent(7, "ann", "group-0", 1, "plain", "joined", 0))
        times = (5000, 8 * SECOND, 9 * SECOND, -1, True, 1, 0, 7)
        journal.add(Acquired(1, 0, 0, 7, 0, 0, 1, *times))
        if known:
            journal.add(MemberEvent(7, "ann", "group-0", 1, "plain", "killed", 8 * SECOND + 5))
    for file in (tmp_path / "journal" / "0001").glob("*.arrows"):
        file.write_bytes(file.read_bytes()[:-8])

    compact(tmp_path)

    (row,) = pq.read_table(tmp_path / "deliveries").to_pylist()
    assert (row["kind"], row["outcome"]) == (AckType.CLOSED, Outcome.UNKNOWN)
    assert row["freed"] == 8 * SECOND + 5 * known
    doubts = [
        pq.read_table(tmp_path / name).to_pylist() for name in ("unseen_responses", "reloads")
    ]
    spans = [(one["since"], one["until"]) for rows in doubts for one in rows]
    assert spans == ([] if known else [(7 * SECOND, NEVER - 1)] * (MOST_DELIVERIES + 1))


def test_a_page_that_spark_cannot_read_is_our_fault() -> None:
    def fail() -> list[dict[str, Found]]:
        raise Py4JError("An error occurred while calling o1.collect.\n: X\nCaused by: bad page\n")

    (found,) = _guarded(fail, [RULES["INV-01"]])

    assert found["INV-01"].fault == "Spark could not tell: bad page"


def test_only_rules_that_judge_histories_can_be_chosen() -> None:
    _known(["INV", "INV-01"])
    for word in ("INV-99", "ACK"):
        with pytest.raises(UsageFault, match=f"--only {word}: no history is judged by that"):
            _known([word])


@pytest.mark.parametrize(
    ("damage", "excused"),
    [({}, False), ({"spoiled": ("a file",)}, True), ({"cut": ("a journal",)}, True)],
)
def test_what_is_incomplete_owes_nothing(damage: dict[str, Any], *, excused: bool) -> None:
    history = nothing_of({"load": {"owed": ["INV-02"]}}, **damage)
    found = {"INV-02": Found(exercised=0, broken=0, seconds=0)}
    judged = [Judged(history, found, [], [], {})]
    request = Request(runs=(Path("run"),))

    (seen,) = observations(judged, [RULES["INV-02"]], owed_by(request, judged), None)

    assert seen.verdict is Verdict.VACUOUS
    assert seen.excused == excused
