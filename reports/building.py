"""From settled rules to the results document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports import results
from reports.results import SCHEMA, CheckResult, FirstTry, KnownFailure, Results, RuleResult, Timing
from reports.verdicts import Judged, tally
from spec.profile import Expected
from spec.verdict import Observation

SLOWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a rule's entry says beside its verdict.

    Attributes:
        reproduce: Gives the command that runs one rule again.
        transcript: Gives the path of a check's transcript inside the run's directory, or ``""``;
            with ``True`` that of its first try.
        faced: For a client, gives the broker that a check put in front of it.
    """

    reproduce: Callable[[str], str]
    transcript: Callable[[str, bool], str] = lambda _check, _first: ""
    faced: Callable[[str], str] = lambda _check: ""


def build(
    run: results.Run,
    target: results.Target,
    judged: Sequence[Judged],
    context: Context,
    *,
    timing: Timing,
    problems: Sequence[str] = (),
    newer: Sequence[str] = (),
    client: results.Client | None = None,
) -> Results:
    """Return the results of a run.

    Args:
        run: the run's own facts.
        target: what was tested.
        judged: the settled rules.
        context: what their entries say beside.
        timing: where the time went.
        problems: ledger problems that belong to no single rule.
        newer: rules that the tested release does not owe yet.
        client: the client under test, if one is tested.
    """
    requirements = tuple(_rule(entry, context) for entry in judged)
    return Results(
        schema=SCHEMA,
        run=run,
        target=target,
        client=replace(client, brokers=_by_broker(requirements)) if client else None,
        requirements=requirements,
        problems=tuple(problems),
        newer_than_target=tuple(newer),
        summary={
            **tally(judged),
            "unexpected": sum(not entry.expected for entry in judged),
            "problems": len(problems) + sum(bool(entry.problem) for entry in judged),
        },
        timing=timing,
    )


def timing_of(
    *,
    total: float,
    cluster_start: float,
    before_checks: float,
    checks: float,
    by_check: Mapping[str, float],
) -> Timing:
    """Return where the time went, given each check's own time; see :class:`Timing`."""
    slowest = sorted(by_check.items(), key=lambda item: -item[1])[:SLOWEST]
    return Timing(
        total=round(total, 3),
        cluster_start=round(cluster_start, 3),
        before_checks=round(before_checks, 3),
        checks=round(checks, 3),
        work=round(sum(by_check.values()), 3),
        executions=len(by_check),
        slowest=tuple(
            results.SlowCheck(check=check, seconds=round(spent, 3)) for check, spent in slowest
        ),
    )


def _by_broker(rules: Sequence[RuleResult]) -> dict[str, dict[str, int]]:
    """Count verdicts by the broker faced; a rule that two are faced for counts for each."""
    found: dict[str, dict[str, int]] = {}
    for rule in rules:
        for broker in rule.facing:
            counts = found.setdefault(broker, {})
            counts[rule.verdict] = counts.get(rule.verdict, 0) + 1
    return found


def _rule(judged: Judged, context: Context) -> RuleResult:
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
        facing=tuple(sorted({context.faced(seen.check) for seen in judged.checks} - {""})),
        checks=tuple(_check(seen, context) for seen in judged.checks),
        known_failures=tuple(_known(entry) for entry in judged.entries),
        reproduce=context.reproduce(rule.id) if judged.verdict else "",
    )


def _check(seen: Observation, context: Context) -> CheckResult:
    return CheckResult(
        check=seen.check,
        verdict=seen.verdict,
        reason=seen.reason,
        seconds=seen.seconds,
        transcript=context.transcript(seen.check, False),
        first_try=_first_try(seen.first, context),
        cases=seen.evidence.get("cases", 0),
        excuses=seen.excuses,
    )


def _first_try(seen: Observation | None, context: Context) -> FirstTry | None:
    if seen is None:
        return None
    return FirstTry(
        verdict=seen.verdict,
        reason=seen.reason,
        seconds=seen.seconds,
        transcript=context.transcript(seen.check, True),
    )


def _known(entry: Expected) -> KnownFailure:
    return KnownFailure(
        verdict=entry.verdict,
        versions=entry.versions,
        match=entry.match,
        reason=entry.reason,
        bug=entry.bug,
        finding=entry.finding,
        expires=entry.expires.isoformat(),
    )
