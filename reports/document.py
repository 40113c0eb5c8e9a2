"""From what a run's checks observed to its results: the one place that makes the document."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reports import results
from reports.results import (
    SCHEMA,
    CheckResult,
    FirstTry,
    KnownFailure,
    Results,
    RuleResult,
    Timing,
    suite_version,
)
from reports.verdicts import OK, Judged, exit_code, settle, tally
from spec.ledger import Ledger, defined_in
from spec.rule import Level, Rule
from spec.verdict import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    rules: Mapping[str, Rule]  # The rules that the run was asked about.
    observations: Sequence[Observation]  # What its checks saw of them.
    ledger: Ledger  # The known failures that verdicts are compared with.
    # What was tested; its version is the one that the ledger is asked about.
    target: results.Target
    client: results.Client | None = None
    # The Kafka release that says which rules exist, where that is not the version.
    release: str | None = None
    # Rules of which some check did not run, so no entry of theirs is called stale.
    unfinished: Collection[str] = ()
    problems: Sequence[str] = ()  # Ledger problems that belong to no single rule.
    seed: int
    level: Level
    # With ``level``: how rules were chosen, and which have to hold.
    only: tuple[str, ...] = ()
    fast: bool = False
    tier: int | None = None
    strict_reach: bool = False
    started: datetime
    timing: Timing
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv))
    partial: bool = False
    errors: Sequence[str] = ()  # Why the harness or the environment could not finish the run.
    notices: Sequence[str] = ()
    canary: results.Canary | None = None
    broken: int = OK  # The exit code if nothing worse came of the verdicts.
    # The exit code whatever the verdicts are; 0 for a run that came to its own end.
    ended: int = OK
    versions: Mapping[str, str] = field(default_factory=dict)  # Of what else took part, by name.
    reproduce: Callable[[str], str]  # Gives the command that runs one rule again.
    # Gives the path of a check's transcript inside the run's directory, or ``""``; with ``True``
    # that of its first try.
    transcript: Callable[[str, bool], str] = lambda _check, _first: ""
    # For a client, gives the broker that a check put in front of it.
    faced: Callable[[str], str] = lambda _check: ""


def document(run: RunRecord) -> Results:
    version = run.target.version
    release = version if run.release is None else run.release
    judged = settle(
        run.rules,
        run.observations,
        ledger=run.ledger,
        version=version,
        release=release,
        today=run.started.date(),
        unfinished=run.unfinished,
        strict_reach=run.strict_reach,
    )
    listed = {entry.rule.id for entry in judged}
    rules = tuple(_rule(entry, run) for entry in judged)
    return Results(
        schema=SCHEMA,
        run=results.Run(
            started=run.started.isoformat(timespec="seconds"),
            seconds=run.timing.total,
            seed=run.seed,
            command=run.command,
            exit_code=run.ended or exit_code(judged, run.problems, run.level) or run.broken,
            partial=run.partial,
            errors=tuple(run.errors),
            notices=tuple(run.notices),
            level=run.level,
            only=run.only,
            fast=run.fast,
            versions={"shareproof": suite_version(), **run.versions},
            canary=run.canary,
            tier=run.tier,
        ),
        target=run.target,
        client=replace(run.client, brokers=_by_broker(rules)) if run.client else None,
        rules=rules,
        problems=tuple(run.problems),
        newer_than_target=tuple(
            rule.id
            for rule in run.rules.values()
            if rule.id not in listed and not defined_in(rule, release)
        ),
        summary={
            **tally(judged),
            "unexpected": sum(not entry.expected for entry in judged),
            "problems": len(run.problems) + sum(bool(entry.problem) for entry in judged),
        },
        timing=run.timing,
    )


def timing_of(
    *,
    total: float,
    cluster_start: float = 0.0,
    before_checks: float | None = None,
    checks: float,
    by_check: Mapping[str, float],
) -> Timing:
    """Return where the time went, given each check's own time; see :class:`Timing`.

    The first check begins when the cluster is up, unless ``before_checks`` says when.
    """
    slowest = sorted(by_check.items(), key=lambda item: -item[1])[:10]
    return Timing(
        total=round(total, 3),
        cluster_start=round(cluster_start, 3),
        before_checks=round(cluster_start if before_checks is None else before_checks, 3),
        checks=round(checks, 3),
        work=round(sum(by_check.values()), 3),
        executions=len(by_check),
        slowest=tuple(
            results.SlowCheck(check=check, seconds=round(spent, 3)) for check, spent in slowest
        ),
    )


def about(ledger: Ledger, rules: Collection[str]) -> Ledger:
    kept = tuple(entry for entry in ledger.expected if entry.rule in rules)
    return replace(ledger, expected=kept)


def _by_broker(rules: Sequence[RuleResult]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for rule in rules:
        for broker in rule.facing:
            counts = found.setdefault(broker, {})
            counts[rule.verdict] = counts.get(rule.verdict, 0) + 1
    return found


def _rule(judged: Judged, run: RunRecord) -> RuleResult:
    rule = judged.rule
    return RuleResult(
        id=rule.id,
        level=rule.level,
        area=rule.area,
        text=rule.text,
        basis=rule.basis,
        internal=rule.internal,
        about=rule.about,
        source=tuple(map(str, rule.source)),
        since=rule.since,
        honesty=rule.honesty,
        verdict=judged.word,
        expected=judged.expected,
        reason=judged.reason,
        problem=judged.problem,
        evidence=dict(sorted(judged.evidence.items())),
        situations=judged.situations,
        witness=judged.witness,
        facing=tuple(sorted({run.faced(seen.check) for seen in judged.checks} - {""})),
        checks=tuple(_check(seen, run) for seen in judged.checks),
        known_failures=tuple(
            KnownFailure(
                verdict=entry.verdict,
                versions=entry.versions,
                match=entry.match,
                reason=entry.reason,
                bug=entry.bug,
                finding=entry.finding,
                expires=entry.expires.isoformat(),
            )
            for entry in judged.entries
        ),
        reproduce=run.reproduce(rule.id) if judged.verdict else "",
    )


def _check(seen: Observation, run: RunRecord) -> CheckResult:
    first = seen.first
    return CheckResult(
        check=seen.check,
        verdict=seen.verdict,
        reason=seen.reason,
        seconds=seen.seconds,
        transcript=run.transcript(seen.check, False),
        first_try=None
        if first is None
        else FirstTry(
            verdict=first.verdict,
            reason=first.reason,
            seconds=first.seconds,
            transcript=run.transcript(first.check, True),
        ),
        cases=seen.evidence.get("cases", 0),
        excuses=seen.excuses,
    )
