"""From what was found in histories to results: observations, verdicts, and what a run says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from reports.analysis.judge import observation
from reports.analysis.request import Judged, Request
from reports.analysis.rules import Invariant
from reports.document import RunRecord, about, document, timing_of
from reports.results import Results, Target
from reports.verdicts import FAULT, OK
from spec.ledger import load_ledger
from spec.releases import release_notice
from spec.rule import load_rules
from spec.verdict import Observation, Verdict


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
    """Return what each run had to put to the test; one that says nothing is not in it."""
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
