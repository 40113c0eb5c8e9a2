"""Both judges, Spark and the oracle, agree: on small histories, and on mistakes about them."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from fixtures.history import compaction, expansion
from fixtures.history import journal_reader as reading
from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from reports.analysis.files import open_history
from reports.analysis.invariants import counts, locks
from reports.analysis.queries import breaches
from reports.analysis.relations import DELIVERY_PAIRS, RECORDS_OF_LOGS, in_order
from reports.analysis.rules import Invariant, load_invariants
from reports.analysis.tables import register, unregister
from reports.oracle.judge import Verdicts, judge
from spec.history import (
    TABLES,
    Acknowledged,
    AckType,
    Acquired,
    HostClockMeasure,
    MemberEvent,
    Outcome,
    Produced,
    Reload,
    ShownOffsets,
    UnseenResponse,
    bucket_of,
    log_numbers,
)
from spec.model.release import release_of
from spec.rule import Honesty, SpecError, load_rules
from tests.small_histories import (
    FIRST_RANDOM,
    Case,
    read_cases,
    write_history,
    write_share_partition,
)
from tools.campaign.histories import histories
from tools.histories.judges import by_spark, differences

CASES = read_cases()
RULES = {rule.id: rule for rule in load_invariants()}
RELATIONS = [rule.over for rule in RULES.values()]
VERSIONS = sorted({case.version for case in CASES})
SEEDS = range(1, 41)
ByVersion = dict[str, tuple[Verdicts, Verdicts]]


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByVersion]:
    """What Spark and the oracle found in the histories of each release."""
    found: ByVersion = {}
    for version in VERSIONS:
        folder = tmp_path_factory.mktemp("cases") / "history"
        random = [one.history for seed in SEEDS for one in histories(seed)]
        cases = [case for case in CASES if case.version == version]
        write_history(folder, cases, random if version == "4.4.0" else ())
        compact(folder)
        if found:
            unregister(spark, f"cases_{len(found)}")
        history = open_history(folder)
        register(spark, [history], f"cases_{len(found) + 1}").need(RELATIONS)
        found[version] = by_spark(spark, list(RULES.values())), judge(folder)
    yield found
    unregister(spark, f"cases_{len(found)}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_sides(case: Case, verdicts: ByVersion) -> None:
    found, _ = verdicts[case.version]
    exercised = {rule for rule, places in found.items() if case.share_partitions & places.keys()}
    places = case.share_partitions
    broken = {rule for rule, seen in found.items() if any(seen.get(p, (0, 0))[1] for p in places)}
    uncounted = {"INV-15"} if release_of(case.version).close_uncounted else set()
    uncounted |= {"INV-43"} if case.breaks else set()  # which is about all of a record
    assert case.rule in exercised
    assert broken - uncounted - {case.rule} == set()
    assert (case.rule in broken) == case.breaks


@pytest.mark.parametrize("version", VERSIONS)
def test_spark_and_the_oracle_agree(version: str, verdicts: ByVersion) -> None:
    spark, oracle = verdicts[version]
    assert list(differences(spark, oracle)) == []
    random = [place for places in oracle.values() for place in places if place >= FIRST_RANDOM]
    assert len(random) > 1000 or version != "4.4.0"


def test_every_invariant_has_both_sides() -> None:
    for breaks in (False, True):
        assert RULES.keys() - {case.rule for case in CASES if case.breaks is breaks} == set()
    known_rules = load_rules()
    assert [r for r in RULES if known_rules[r].honesty is Honesty.UNTESTED] == []


def test_no_invariant_is_declared_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "INVARIANTS", (*locks.INVARIANTS, counts.INV_12))
    with pytest.raises(SpecError, match="INV-12 is declared twice"):
        load_invariants()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_invariant_names_the_columns_that_it_needs(
    rule: Invariant, spark: SparkSession, verdicts: ByVersion
) -> None:
    assert verdicts
    spark.table(rule.over.name).select(*rule.columns).createOrReplaceTempView("narrow")
    query = breaches("narrow", [rule])
    excused = " ".join(condition for _, condition in rule.excuses)
    used = re.sub(r"'[^']*'| AS \w+", "", query) + excused  # neither words in texts nor new names
    spark.sql(query)
    assert [one for one in rule.columns if not re.search(rf"\b{one}\b", used)] == []


def test_relations_say_what_they_read() -> None:
    tables = {*TABLES, "release"}
    for relation in in_order(RELATIONS):
        assert relation.reads - tables <= {used.name for used in relation.uses}


def test_the_buckets_are_those_of_spark(spark: SparkSession) -> None:
    logs = [0, 1, 2, 7, 1000, 2**31 - 1, -1, -(2**31)]
    values = ", ".join(f"({log})" for log in logs)
    query = f"SELECT pmod(hash(CAST(n AS INT)), 8) AS bucket FROM VALUES {values} AS t(n)"  # noqa: S608
    theirs = [row.bucket for row in spark.sql(query).collect()]
    assert theirs == [bucket_of(log, 8) for log in logs]


# --- Mistakes in the compaction ---------------------------------------------------------------

MS = 1_000_000
LOCK, LIMIT, RECORDS, END = 1000, 5, 12, 100_000
OF_RECORDS = [rule for rule in load_invariants() if rule.over in (DELIVERY_PAIRS, RECORDS_OF_LOGS)]
NAMES = {rule.id for rule in OF_RECORDS}

Patch = pytest.MonkeyPatch
Mistake = Callable[[Patch], None]


class _Recorder:
    def __init__(self, journal: Journal, number: int, log: int) -> None:
        self.journal, self.number, self.log = journal, number, log

    def start(self) -> None:
        write_share_partition(self.journal, self.number, self.log)
        ended = (0, MS, int(Outcome.OK), 0, 0)
        self.journal.add(Produced(self.log, 0, RECORDS, 1, 0, 7, *ended))
        shown = (END * MS, END * MS, RECORDS, 0, 0, RECORDS, 0, "quiet")
        self.journal.add(ShownOffsets(self.number, *shown))

    def fetch(
        self, offset: int, at: int, count: int = 1, *, last: int = -1, asked: int = -1, who: int = 0
    ) -> tuple[int, int, int]:
        op, last = self.journal.next_operation(), max(offset, last)
        sent = (asked if asked >= 0 else at - 1) * MS
        row = (op, self.number, self.log, 10 * self.number + who, offset, last, count, LOCK)
        self.journal.add(Acquired(*row, sent, at * MS, -1, True, 1, offset, 7))
        return op, offset, last

    def act(
        self, held: tuple[int, int, int], kind: AckType, at: int, outcome: Outcome = Outcome.OK
    ) -> None:
        op, first, last = held
        received = (at + 1) * MS if outcome is not Outcome.UNKNOWN else -1
        row = (op, self.number, self.log, first, last, int(kind), at * MS, received)
        self.journal.add(Acknowledged(*row, int(outcome), 0))


def _tell(to: _Recorder) -> None:
    to.start()
    to.fetch(0, 10, who=1)
    member = (10 * to.number + 1, "ann", f"group-{to.number}", 0, "plain", "killed", 100 * MS)
    to.journal.add(MemberEvent(*member))
    to.fetch(0, 200, 2)
    to.act(to.fetch(1, 10), AckType.RENEW, 500)
    to.fetch(1, 1200, 2)
    to.act(to.fetch(2, 10), AckType.RENEW, 1200)
    to.fetch(2, 1300, 2)
    twice = to.fetch(3, 10)
    to.act(twice, AckType.ACCEPT, 40, Outcome.FAILED)
    to.act(twice, AckType.RELEASE, 60)
    to.fetch(3, 100, 2)
    to.act(to.fetch(4, 10), AckType.CLOSED, 50)
    to.fetch(4, 100, 2)
    unheard = to.fetch(5, 10)
    to.act(unheard, AckType.ACCEPT, 40, Outcome.UNKNOWN)
    to.act(unheard, AckType.ACCEPT, 50, Outcome.UNKNOWN)
    to.fetch(5, 100, 2)
    to.fetch(6, 20, asked=10)
    to.fetch(6, 1015, 2)
    to.fetch(7, 10, LIMIT, last=8)
    to.fetch(9, 10, LIMIT)
    to.act(to.fetch(10, 10_000), AckType.ACCEPT, 10_050)
    to.journal.add(Reload(to.number, -1, 10_060 * MS, 10_070 * MS, "planted"))
    to.act(to.fetch(10, 10_100), AckType.ACCEPT, 10_150)
    to.journal.add(UnseenResponse(to.number, 5_000 * MS, 5_010 * MS))
    to.act(to.fetch(11, 5_100, 2), AckType.ACCEPT, 5_150)


def _late_renewals_count(rows: Any, acts: Any, place: Any, lock: Any, _: Any) -> None:
    sure = acts["outcome"] == Outcome.OK
    np.maximum.at(rows["holds_until"], place[sure], (acts["sent"] + lock[place])[sure])
    np.maximum.at(rows["ends_by"], place, acts["received"] + lock[place])


def _attempts_count_once(rows: Any, acts: Any, place: Any) -> None:
    _end(rows, acts, place)
    rows["attempts"] = np.minimum(rows["attempts"], 1)


def _locks_begin_late(rows: Any, journal: Any, locks: Any) -> Any:
    acts = _end_deliveries(rows, journal, locks)
    rows["holds_until"] = np.maximum(rows["holds_until"], rows["acquired"] + LOCK * MS)
    return acts


def _backwards(rows: Any) -> Any:
    found: Any = _neighbours(rows)
    names = ("next_op", "next_sent", "next_acquired", "next_count")
    return found | {name: np.ma.masked_array(found[name] * 0, found[name].mask) for name in names}


_end, _end_deliveries = expansion._end, expansion._end_deliveries
_number_loads, _number_unseen = expansion._number_loads, expansion._number_unseen
_neighbours, _fellows, _spread = expansion.neighbours, expansion._fellows, expansion.spread
_offsets = reading.offsets


def _nothing(*_: Any) -> None:
    pass


MISTAKES: dict[str, Mistake] = {
    "none": lambda _: None,
    "killed members keep their locks": lambda it: it.setattr(expansion, "_bury", _nothing),
    "renewals do not count": lambda it: it.setattr(expansion, "_renew", _nothing),
    "late renewals count": lambda it: it.setattr(expansion, "_renew", _late_renewals_count),
    "the worst response counts": lambda it: it.setattr(expansion, "_RANKS", -expansion._RANKS),
    "sessions end without freeing": lambda it: it.setattr(expansion, "_close", _nothing),
    "attempts count once": lambda it: it.setattr(expansion, "_end", _attempts_count_once),
    "locks begin with the response": lambda it: it.setattr(
        expansion, "_end_deliveries", _locks_begin_late
    ),
    "loads are not counted": lambda it: it.setattr(
        expansion, "_number_loads", lambda rows, _: _number_loads(rows, {})
    ),
    "unseen responses are not counted": lambda it: it.setattr(
        expansion, "_number_unseen", lambda rows, _: _number_unseen(rows, {})
    ),
    "neighbours are others": lambda it: it.setattr(expansion, "neighbours", _backwards),
    "a record is its own fellow": lambda it: it.setattr(
        expansion, "_fellows", lambda rows: _fellows(rows) + 1
    ),
    "ranges have one number": lambda it: it.setattr(
        expansion,
        "spread",
        lambda *ranges: (rows := _spread(*ranges)) | {"within": rows["within"] * 0},
    ),
}
"""Ways to get wrong what journals mean record by record."""
OF_READING: dict[str, Mistake] = {
    "clocks are not compared": lambda it: it.setattr(reading, "_behind", lambda _: 0),
    "other hosts have our clock": lambda it: it.setattr(
        reading, "widened", lambda table, _: (table, 0)
    ),
    "clocks of hosts have no errors": lambda it: it.setattr(
        reading, "offsets", lambda times, measures: (_offsets(times, measures)[0], times * 0)
    ),
    "who died unseen lives": lambda it: it.setattr(reading, "with_killed", lambda told, _: told),
}
"""Ways to get wrong what a process's journals mean."""


def _disagreements(spark: SparkSession, history: Path) -> list[str]:
    register(spark, [open_history(history)], "mistaken").need([DELIVERY_PAIRS, RECORDS_OF_LOGS])
    try:
        found = by_spark(spark, OF_RECORDS)
    finally:
        unregister(spark, "mistaken")
    oracle = {rule: places for rule, places in judge(history).items() if rule in NAMES}
    return list(differences(found, oracle))


def _with_run(history: Path) -> Path:
    (history / "run.json").write_text('{"target": {"name": "told", "version": "4.4.0"}}', "utf-8")
    return history


def test_mistakes_about_records_are_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: Patch
) -> None:
    logs = dict(zip(islice(log_numbers(), len(MISTAKES)), MISTAKES, strict=True))
    with Journal(tmp_path, 0) as journal:
        for number, log in enumerate(logs):
            _tell(_Recorder(journal, number, log))

    def mistaken(right: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
        def wrong(journal: pa.Table, *more: Any, **spans: Any) -> pa.Table:
            with monkeypatch.context() as patch:
                MISTAKES[logs[journal["log"][0].as_py()]](patch)
                return right(journal, *more, **spans)

        return wrong

    for name in ("produced_records", "delivered_records"):
        monkeypatch.setattr(compaction, name, mistaken(getattr(expansion, name)))
    compact(_with_run(tmp_path))

    told = _disagreements(spark, tmp_path)
    by_mistake = {
        name: [line for line in told if f" at {number}: " in line]
        for number, name in enumerate(MISTAKES)
    }
    assert by_mistake.pop("none") == []
    assert [name for name, lines in by_mistake.items() if not lines] == []


def _of_two(history: Path, *, killed: bool) -> None:
    with Journal(history, 0) as journal:
        to = _Recorder(journal, 0, 0)
        to.start()
        to.fetch(0, 5200, 2)
    with Journal(history, 1) as journal:
        journal.measured(behind=5000 * MS, within=MS)
        member = (1, "bob", "group-0", 1, "plain", "joined", 0)
        journal.add(MemberEvent(*member))
        _Recorder(journal, 0, 0).fetch(0, 100, who=1)
    for file in (history / "journal" / "0001").glob("*.arrows") if killed else ():
        file.write_bytes(file.read_bytes()[:-8])


def _of_two_hosts(history: Path) -> None:
    """Write journals of which one has a clock of its own, known to some milliseconds.

    Record 0 comes again 3 ms before its lock can have ended, record 1 long before.
    """
    with Journal(history, 0) as journal:
        to = _Recorder(journal, 0, 0)
        to.start()
        to.fetch(0, 5200, 2)
        to.fetch(1, 4500, 2)
    with Journal(history, 1) as journal:
        for at in (50 * MS, 450 * MS):
            journal.add(HostClockMeasure(1, at, 4000 * MS, 4 * MS))
        far = _Recorder(journal, 0, 0)
        far.fetch(0, 204, who=1)
        far.fetch(1, 300, who=1)


@pytest.mark.parametrize(
    ("mistake", "written"),
    [
        (None, partial(_of_two, killed=False)),
        (None, partial(_of_two, killed=True)),
        (None, _of_two_hosts),
        ("clocks are not compared", partial(_of_two, killed=False)),
        ("other hosts have our clock", _of_two_hosts),
        ("clocks of hosts have no errors", _of_two_hosts),
        ("who died unseen lives", partial(_of_two, killed=True)),
    ],
)
def test_mistakes_about_processes_are_told(
    mistake: str | None,
    written: Callable[[Path], None],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: Patch,
) -> None:
    written(tmp_path)
    if mistake is not None:
        OF_READING[mistake](monkeypatch)
    compact(_with_run(tmp_path))
    assert bool(_disagreements(spark, tmp_path)) == (mistake is not None)


def test_a_response_of_two_logs(spark: SparkSession, tmp_path: Path) -> None:
    with Journal(tmp_path, 0) as journal:
        one, two = _Recorder(journal, 0, 0), _Recorder(journal, 1, 1)
        one.start()
        two.start()
        held = one.fetch(0, 10)
        journal._operations -= 1
        beside = two.fetch(0, 10)
        assert held == beside
        one.act(held, AckType.RELEASE, 40)
        two.act(beside, AckType.ACCEPT, 41)
        one.act(one.fetch(0, 100, 2), AckType.ACCEPT, 110)
    compact(_with_run(tmp_path))

    assert _disagreements(spark, tmp_path) == []
