"""Judges the histories of one or more runs and settles the verdicts like any other run's."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PosixPath

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reports.analysis.batch import judge_batches
from reports.analysis.files import History, of_one_target, open_history, read_manifest
from reports.analysis.judge import Analysis, Judged, Request, Tell, observation, told
from reports.analysis.rules import Invariant, load_invariants
from reports.analysis.session import open_session, settings_for
from reports.analysis.timeline import intervals_for
from reports.document import RunRecord, about, document, timing_of
from reports.results import Results, Target
from reports.verdicts import FAULT, OK
from spec.ledger import load_ledger
from spec.releases import release_notice
from spec.rule import load_rules
from spec.verdict import EnvironmentFault, Observation, Verdict


def results_of(
    request: Request,
    judged: Sequence[Judged],
    seen: Sequence[Observation],
    invariants: Sequence[Invariant],
    *,
    faults: Sequence[str],
    started: datetime,
    times: tuple[float, float, float],
) -> Results:
    """Return the results of a request, of what was seen in its histories.

    ``faults`` name what cannot be judged, or read; ``times`` are when it was asked, when histories
    were open, and when all were judged, in seconds.
    """
    target = judged[0].history.run.get("target", {})
    version = request.version or str(target.get("version", ""))
    ledger = load_ledger(request.ledger or str(target.get("ledger") or "apache-kafka"))
    known = load_rules()
    rules = {rule.id: known[rule.id] for rule in invariants}
    spoiled = any(one.history.spoiled for one in judged) or len(judged) < len(request.runs)
    began, ready, ended = times
    compared = ["--control", str(request.control)] if request.control else []
    command = ["shareproof", "analyse", *map(str, request.runs), *compared, "--only"]
    run = RunRecord(
        rules=rules,
        observations=seen,
        ledger=about(ledger, rules),
        target=Target(
            name=str(target.get("name", "history")),
            version=version,
            ledger=ledger.name,
            brokers=int(judged[0].history.run.get("brokers", 0)),
            properties=judged[0].history.run.get("properties", {}),
        ),
        seed=int(judged[0].history.run.get("seed", 0)),
        level=request.level,
        only=request.only,
        started=started,
        timing=timing_of(
            total=ended - began,
            cluster_start=ready - began,
            checks=ended - ready,
            by_check={one.check: one.seconds for one in seen},
        ),
        command=request.command,
        partial=bool(faults),
        errors=faults,
        notices=tuple(filter(None, [release_notice(version)])),
        broken=FAULT if spoiled else OK,
        reproduce=lambda rule: " ".join([*command, rule]),
    )
    measured = {str(one.history.folder): tuple(one.distributions) for one in judged}
    states = {str(one.history.folder): tuple(one.reached) for one in judged}
    return replace(document(run), distributions=measured, reached=states)


def owed_by(request: Request, judged: Sequence[Judged]) -> dict[Path, tuple[str, ...]]:
    owed: dict[Path, tuple[str, ...]] = {}
    for one in judged:
        run, said = one.history.folder.parent, one.history.run.get("load", {}).get("owed")
        if run in request.owed or said is not None:
            owed[run] = request.owed[run] if run in request.owed else tuple(said)
    return owed


def observations(
    judged: Sequence[Judged],
    invariants: Sequence[Invariant],
    owed: Mapping[Path, tuple[str, ...]],
    control: Judged | None,
) -> list[Observation]:
    """Return one observation a rule and history; what one exercised, another need not.

    But for what it owes: that has to be exercised in every history that owes it.
    """
    seen: list[Observation] = []
    for rule in invariants:
        found: list[Observation] = []
        telling: list[Observation] = []
        for one in judged:
            owes = owed.get(one.history.folder.parent)
            compared = control.found if control is not None and one is not control else None
            said = observation(rule, one.found[rule.id], one.history, compared)
            # What was not exercised and did not have to be, or what may be unreadable, is excused.
            idle = said.verdict is Verdict.VACUOUS
            if idle and ((owes is not None and rule.id not in owes) or not one.history.complete):
                said = replace(said, excused=True)
            found.append(said)
            if said.verdict is not Verdict.VACUOUS or rule.id in (owes or ()):
                telling.append(said)
        seen += telling or found[:1]
    return seen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    histories: list[History]
    quiet: History | None
    faults: list[str]


def analyse(request: Request, tell: Tell) -> Analysis:
    """Judge every history; nothing is written. Raises EnvironmentFault or MixedTargets."""
    (found,) = analyse_all([request], tell)
    if isinstance(found, EnvironmentFault):
        raise found
    return found


def analyse_all(requests: Sequence[Request], tell: Tell) -> list[Analysis | EnvironmentFault]:
    """Judge the histories of many requests by one set of queries; nothing is written.

    Returns for each what was found, or why none of its histories can be judged. Where Spark runs is
    what the first request says. Raises EnvironmentFault: Spark does not start, or could not finish.
    """
    began, started = time.monotonic(), datetime.now(UTC)
    # Checksums take a while, and so does the start of a JVM: both at once.
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(lambda: [_opened(one) for one in requests])
        rows = _rows([run for one in requests for run in one.runs])
        if rows is None or not all(
            isinstance(run, PosixPath) for one in requests for run in one.runs
        ):
            # A JVM is started by a fork, which the locks of remote file systems do not survive.
            opening.result()
        if rows is None:
            return [one for one in opening.result() if isinstance(one, EnvironmentFault)]
        with _session(requests[0], rows) as spark:
            opened = opening.result()
            ready = time.monotonic()
            judged = _judged(spark, requests, opened, tell)
    times = (began, ready, time.monotonic())
    return [
        one
        if isinstance(one, EnvironmentFault)
        else _analysis(request, one, judged, started, times)
        for request, one in zip(requests, opened, strict=True)
    ]


def _rows(runs: Sequence[Path]) -> int | None:
    rows: list[int] = []
    for run in runs:
        with contextlib.suppress(EnvironmentFault):
            rows.append(sum(file.rows for file in read_manifest(run)[1].files))
    return sum(rows) if rows else None


def _opened(request: Request) -> _Opened | EnvironmentFault:
    histories: list[History] = []
    faults: list[str] = []
    try:
        for run in request.runs:
            try:
                histories.append(open_history(run))
            except EnvironmentFault as fault:
                faults.append(str(fault))
        if not histories:
            return EnvironmentFault("; ".join(faults))
        of_one_target(histories)
        quiet = open_history(request.control) if request.control else None
    except EnvironmentFault as fault:
        return fault
    return _Opened(histories=histories, quiet=quiet, faults=faults)


def _judged(
    spark: SparkSession,
    requests: Sequence[Request],
    opened: Sequence[_Opened | EnvironmentFault],
    tell: Tell,
) -> dict[Path, Judged]:
    drawn: dict[Path, tuple[History, int]] = {}
    brief: dict[Path, History] = {}
    for request, one in zip(requests, opened, strict=True):
        if isinstance(one, EnvironmentFault):
            continue
        intervals = 0 if request.brief else intervals_for(len(one.histories))
        for history in one.histories:
            if intervals:
                drawn[history.folder] = (history, intervals)
            else:
                brief[history.folder] = history
        if one.quiet:
            brief[one.quiet.folder] = one.quiet
    rules = [rule for rule in load_invariants() if any(_wanted(rule, one.only) for one in requests)]
    found = judge_batches(spark, list(drawn.values()), rules, tell)
    rest = [(one, 0) for folder, one in brief.items() if folder not in drawn]
    found += judge_batches(spark, rest, rules, tell)
    return {one.history.folder: one for one in found}


def _wanted(rule: Invariant, only: Sequence[str]) -> bool:
    return not only or rule.id in only or rule.id[:3] in only


def _analysis(
    request: Request,
    opened: _Opened,
    found: Mapping[Path, Judged],
    started: datetime,
    times: tuple[float, float, float],
) -> Analysis:
    judged = [found[one.folder] for one in opened.histories]
    undisturbed = next((one for one in judged if not one.history.rows("faults")), None)
    control = found[opened.quiet.folder] if opened.quiet else undisturbed
    rules = [rule for rule in load_invariants() if _wanted(rule, request.only)]
    said = [text for one in opened.histories for text in (*one.spoiled, *one.cut_short)]
    results = results_of(
        request,
        judged,
        observations(judged, rules, owed_by(request, judged), control),
        rules,
        faults=[*opened.faults, *said],
        started=started,
        times=times,
    )
    drawn = {str(one.history.folder): one.drawn for one in judged}
    return Analysis(results=results, timelines=drawn)


@contextlib.contextmanager
def _session(request: Request, rows: int) -> Iterator[SparkSession]:
    settings = {**settings_for(rows), **request.settings}
    try:
        spark = open_session(request.master, request.memory, settings)
    except (PySparkException, Py4JError) as error:
        how = f"with master {request.master} and {request.memory} of memory"
        raise EnvironmentFault(f"Spark does not start {how}: {told(error)}") from None
    try:
        yield spark
    except (PySparkException, Py4JError) as error:
        raise EnvironmentFault(f"Spark could not finish: {told(error)}") from None
    finally:
        with contextlib.suppress(PySparkException, Py4JError):
            spark.stop()
