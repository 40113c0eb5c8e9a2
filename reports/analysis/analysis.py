"""Judges the histories of one or more runs and settles the verdicts like any other run's."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PosixPath
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reports.analysis.distributions import distributions
from reports.analysis.files import History, of_one_target, open_history, read_manifest
from reports.analysis.judging import Found, Tell, askable, judge, observation, told
from reports.analysis.progress import progress
from reports.analysis.reached import reached
from reports.analysis.relations import DELIVERY_PAIRS, PARTITIONS
from reports.analysis.rules import Invariant, load_invariants
from reports.analysis.session import open_session, register, settings_for, unregister
from reports.analysis.span import span
from reports.analysis.stories import stories
from reports.analysis.timeline import intervals_for, timeline
from reports.building import Context, build, timing_of
from reports.results import Measure, Reached, Results, Run, Target, Timing, suite_version
from reports.verdicts import FAULT, OK, exit_code, settle
from spec.profile import Profile, defined_in, load_profile
from spec.releases import release_notice
from spec.requirement import Level, Requirement, load_requirements
from spec.verdict import EnvironmentFault, Observation, Verdict

_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for.

    Attributes:
        runs: The runs to judge.
        control: A run without faults that broken rules are compared with; its own verdicts do not
            count. Without it, one of the runs serves if nothing was done to it.
        profile, version: What the runs say unless given.
        brief: Verdicts and witnesses only: no distributions, states, timeline or stories.
        owed: The rules that each run had to put to the test, where that is not what it says itself.
            That it never exercised another one is not held against it.
    """

    runs: tuple[Path, ...]
    control: Path | None = None
    master: str = "local[*]"
    memory: str = "1g"
    level: Level = Level.SHOULD
    only: tuple[str, ...] = ()
    owed: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    profile: str = ""
    version: str = ""
    brief: bool = False
    command: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was found: the results, and by history what a page draws of it."""

    results: Results
    timelines: Mapping[str, Any]


@dataclass(slots=True)
class _Judged:
    """One history with what was found in it."""

    history: History
    found: dict[str, Found]
    distributions: list[Measure]
    reached: list[Reached]
    drawn: dict[str, Any]


def analyse(request: Request, tell: Tell) -> Analysis:
    """Judge every history; nothing is written.

    Raises:
        EnvironmentFault: none of the histories can be judged at all.
        MixedTargets: they are not all of one target.
    """
    began, started = time.monotonic(), datetime.now(UTC)
    invariants = [rule for rule in load_invariants() if _wanted(rule, request.only)]
    rows = _rows(request.runs)
    # Checksums take a while, and so does the start of a JVM: both at once.
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(_open, request.runs, request.control)
        if not all(isinstance(run, PosixPath) for run in request.runs):
            # A JVM is started by a fork, which the locks of remote file systems do not survive.
            opened.exception()
        with _session(request, rows) as spark:
            histories, quiet, faults = opened.result()
            of_one_target(histories)
            ready = time.monotonic()
            intervals = 0 if request.brief else intervals_for(len(histories))
            judged = [_judge(spark, history, invariants, intervals, tell) for history in histories]
            control = _judge(spark, quiet, invariants, 0, tell) if quiet else _undisturbed(judged)
    faults += [sentence for one in histories for sentence in (*one.spoiled, *one.cut_short)]
    found = _document(
        request,
        judged,
        _observations(judged, invariants, _owed(request, judged), control),
        invariants,
        faults=faults,
        started=started,
        times=(began, ready, time.monotonic()),
    )
    drawn = {str(one.history.folder): one.drawn for one in judged}
    return Analysis(results=found, timelines=drawn)


def _rows(runs: Sequence[Path]) -> int:
    """Return how many rows there are to judge, as their manifests say."""
    rows: list[int] = []
    faults: list[str] = []
    for run in runs:
        try:
            rows.append(sum(file.rows for file in read_manifest(run)[1].files))
        except EnvironmentFault as fault:
            faults.append(str(fault))
    if not rows:
        raise EnvironmentFault("; ".join(faults))
    return sum(rows)


def _open(
    runs: Sequence[Path], control: Path | None
) -> tuple[list[History], History | None, list[str]]:
    """Check the files of all runs and of the control run, and say which runs cannot be judged."""
    histories: list[History] = []
    faults: list[str] = []
    for run in runs:
        try:
            histories.append(open_history(run))
        except EnvironmentFault as fault:
            faults.append(str(fault))
    if not histories:
        raise EnvironmentFault("; ".join(faults))
    return histories, open_history(control) if control else None, faults


def _wanted(rule: Invariant, only: Sequence[str]) -> bool:
    return not only or rule.id in only or rule.id[:3] in only


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


def _judge(
    spark: SparkSession,
    history: History,
    invariants: Sequence[Invariant],
    intervals: int,
    tell: Tell,
) -> _Judged:
    """Judge a history; with no intervals to draw, verdicts and witnesses are all there is."""
    database = f"history_{os.getpid()}_{next(_NUMBERS)}"
    asked = [rule.over for rule in askable(history, invariants)]
    register(
        spark, history, database, [PARTITIONS, *asked, *([DELIVERY_PAIRS] if intervals else [])]
    )
    try:
        with progress(spark, tell):
            found = judge(spark, history, invariants, tell)
            if not intervals:
                return _Judged(history, found, [], [], {})
            tell(f"{history.folder}: distributions")
            measured = distributions(spark, history.rows("deliveries"))
            states = reached(spark) if history.rows("faults") else []
            drawn = _draw(spark, history, found, intervals, tell)
            return _Judged(history, found, measured, states, drawn)
    finally:
        unregister(spark, database)


def _draw(
    spark: SparkSession, history: History, found: Mapping[str, Found], intervals: int, tell: Tell
) -> dict[str, Any]:
    """Return a history's timeline and the stories of its most interesting records."""
    tell(f"{history.folder}: timeline and stories")
    hits = [hit for one in found.values() for hit in one.hits]
    began, ended = span(history)
    return {
        "timeline": timeline(
            spark,
            hits,
            since=began,
            until=ended,
            intervals=intervals,
            rows=history.rows("deliveries"),
        ),
        "stories": stories(spark, hits, began),
    }


def _undisturbed(judged: Sequence[_Judged]) -> _Judged | None:
    """Return the run that nothing was done to, if there is one."""
    for one in judged:
        if not one.history.rows("faults"):
            return one
    return None


def _document(
    request: Request,
    judged: Sequence[_Judged],
    seen: Sequence[Observation],
    invariants: Sequence[Invariant],
    *,
    faults: Sequence[str],
    started: datetime,
    times: tuple[float, float, float],
) -> Results:
    target = judged[0].history.run.get("target", {})
    version = request.version or str(target.get("version", ""))
    profile = load_profile(request.profile or str(target.get("profile") or "apache-kafka"))
    rules = _rules(invariants)
    verdicts = settle(
        rules, seen, profile=_about(profile, rules), version=version, today=started.date()
    )
    code = exit_code(verdicts, (), request.level)
    spoiled = any(one.history.spoiled for one in judged) or len(judged) < len(request.runs)
    timing = _timing(times, seen)
    run = Run(
        started=started.isoformat(timespec="seconds"),
        seconds=timing.total,
        seed=int(judged[0].history.run.get("seed", 0)),
        command=request.command,
        exit_code=FAULT if code == OK and spoiled else code,
        partial=bool(faults),
        errors=tuple(faults),
        notices=tuple(filter(None, [release_notice(version)])),
        level=request.level,
        only=request.only,
        fast=False,
        versions={"shareproof": suite_version()},
        canary=None,
    )
    subject = Target(
        name=str(target.get("name", "history")),
        version=version,
        profile=profile.name,
        brokers=int(judged[0].history.run.get("brokers", 0)),
        properties=judged[0].history.run.get("properties", {}),
    )
    command = ["shareproof", "analyse", *map(str, request.runs), *_compared(request), "--only"]
    found = build(
        run,
        subject,
        verdicts,
        Context(reproduce=lambda rule: " ".join([*command, rule])),
        timing=timing,
        newer=[rule for rule in rules if not defined_in(rules[rule], version)],
    )
    measured = {str(one.history.folder): tuple(one.distributions) for one in judged}
    states = {str(one.history.folder): tuple(one.reached) for one in judged}
    return replace(found, distributions=measured, reached=states)


def _owed(request: Request, judged: Sequence[_Judged]) -> dict[Path, tuple[str, ...]]:
    """Return what each run had to put to the test; one that says nothing is not in it."""
    owed: dict[Path, tuple[str, ...]] = {}
    for one in judged:
        run, said = one.history.folder.parent, one.history.run.get("load", {}).get("owed")
        if run in request.owed or said is not None:
            owed[run] = request.owed.get(run) or tuple(said)
    return owed


def _excused(seen: Observation, rules: Sequence[str] | None, history: History) -> Observation:
    """Excuse what was not exercised and did not have to be, or what may be unreadable."""
    idle = seen.verdict is Verdict.VACUOUS
    free = rules is not None and seen.requirement not in rules
    return replace(seen, excused=True) if idle and (free or not history.complete) else seen


def _compared(request: Request) -> list[str]:
    return ["--control", str(request.control)] if request.control else []


def _rules(invariants: Sequence[Invariant]) -> dict[str, Requirement]:
    known = load_requirements()
    return {rule.id: known[rule.id] for rule in invariants}


def _about(profile: Profile, rules: Mapping[str, Requirement]) -> Profile:
    """Leave out what a ledger says about rules that no history decides."""
    kept = tuple(entry for entry in profile.expected if entry.requirement in rules)
    return Profile(name=profile.name, title=profile.title, absent=profile.absent, expected=kept)


def _observations(
    judged: Sequence[_Judged],
    invariants: Sequence[Invariant],
    owed: Mapping[Path, tuple[str, ...]],
    control: _Judged | None,
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
            seen_here = observation(rule, one.found[rule.id], one.history, compared)
            said = _excused(seen_here, owes, one.history)
            found.append(said)
            if said.verdict is not Verdict.VACUOUS or rule.id in (owes or ()):
                telling.append(said)
        seen += telling or found[:1]
    return seen


def _timing(times: tuple[float, float, float], seen: Sequence[Observation]) -> Timing:
    began, ready, ended = times
    return timing_of(
        total=ended - began,
        cluster_start=ready - began,
        before_checks=ready - began,
        checks=ended - ready,
        by_check={one.check: one.seconds for one in seen},
    )
