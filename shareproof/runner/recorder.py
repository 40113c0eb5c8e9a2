"""Collects what a run's checks report, in the controller, and turns it into the run's results."""

import platform
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

import spec.rule
from fixtures.interface.info import ClusterInfo
from reports.document import RunRecord, document, timing_of
from reports.results import Canary, Results, Target
from reports.verdicts import BROKEN, FAULT, INTERRUPTED, OK
from shareproof.runner.checks import existing, transcript_name
from shareproof.runner.inventory import Check, by_rule, in_tier, read_checks
from shareproof.runner.options import faced, facing
from shareproof.runner.outcome import AGAIN, PROPERTY, broken, unpack, with_second_try
from spec.ledger import check_ledger
from spec.releases import release_notice
from spec.tiers import ALL
from spec.verdict import Observation, Verdict
from suites import canary
from suites.canary import CANARY
from suites.options import UNSEEN, RunOptions, named_ledger

DIED = "harness: the worker process died while it ran"
PRESENT = "shareproof-present"
"""Name of the report property that carries a feature declared absent and found present."""


@dataclass(slots=True)
class Recorder:
    options: RunOptions
    checks_folder: Path
    began: float = field(default_factory=time.monotonic)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seen: dict[str, list[Observation]] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    first: dict[str, list[Observation]] = field(default_factory=dict)
    canary: list[Observation] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    planned: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    ordinary_failures: int = 0
    interrupted: bool = False
    first_check: float = 0.0
    last_check: float = 0.0

    def take(self, report: pytest.TestReport) -> None:
        now = time.monotonic()
        self.first_check = self.first_check or now - report.duration
        self.last_check = now
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.when not in {"setup", "call", "teardown"}:
            sentence, rules = f"{DIED} {report.nodeid}", self._rules_of(report.nodeid)
            self.seen.setdefault(report.nodeid, []).extend(broken(report.nodeid, rules, sentence))
            if rules:
                self.again.add(report.nodeid)
            else:
                self.faults.append(sentence)
            return
        carried = dict(report.user_properties)
        if PRESENT in carried:
            self.present.add(str(carried[PRESENT]))
        if AGAIN in carried:
            self.again.add(report.nodeid)
        if PROPERTY in carried:
            observed = unpack(str(carried[PROPERTY]))
            if any(one.rule == CANARY for one in observed):
                self.canary += observed
            else:
                self.seen.setdefault(report.nodeid, []).extend(observed)
        elif report.failed:
            self.ordinary_failures += 1

    def undecided(self) -> set[str]:
        """Return what a second try may decide: nothing is decided, or broken but by a death."""
        decided = {Verdict.FAIL, Verdict.ERROR}
        return {
            nodeid
            for nodeid in (() if self.interrupted or self.faults else self.again)
            if all(o.verdict not in decided or o.reason.startswith(DIED) for o in self.seen[nodeid])
        }

    def begin_again(self, chosen: Collection[str]) -> None:
        self.first = {nodeid: self.seen.pop(nodeid) for nodeid in chosen}

    def _observations(self) -> list[Observation]:
        found = []
        for nodeid in self.seen:
            first = {one.rule: one for one in self.first.get(nodeid, ())}
            for one in self.seen[nodeid]:
                before = first.get(one.rule)
                found.append(with_second_try(before, one) if before else one)
        open_ones = self.first.keys() - self.seen.keys()
        found += [one for nodeid in open_ones for one in self.first[nodeid]]
        if self.interrupted or self.faults:
            return found
        # A check that was collected and never reported is no pass.
        sentence = "harness: the check was collected and never reported"
        lost = self.planned - set(self.seconds)
        return found + [o for id_ in lost for o in broken(id_, self._rules_of(id_), sentence)]

    def _rules_of(self, nodeid: str) -> tuple[str, ...]:
        plain = nodeid.split("[", 1)[0]
        return next((check.rules for check in self._checks() if check.id == plain), ())

    def _checks(self) -> tuple[Check, ...]:
        if not self.checks_folder.is_dir():
            return ()
        return read_checks(self.checks_folder, drafts=self.options.drafts)

    def heed_canary(self) -> None:
        """Note a fault unless the canary has failed as it must; an ended run owes none."""
        sentence = canary.fault(self.canary)
        if sentence and not (self.interrupted or self.faults):
            self.faults.append(sentence)

    def results(self, info: ClusterInfo | None, start_seconds: float) -> Results:
        options = self.options
        ledger = named_ledger(options.ledger_for(info.ledger if info else UNSEEN))
        release = options.expect_version or (info.version if info else options.version)
        version = options.judged(release)
        observations = self._observations()
        strangers = {o.rule for o in observations} - spec.rule.load_rules().keys()
        for rule in sorted(strangers):
            self.faults.append(f"harness: a check judges {rule}, not a live rule")
        ran = {nodeid.split("[", 1)[0] for nodeid in (*self.seen, *self.first)}
        absent = ledger.absences(version)
        notices = info.notices if info else (release_notice(options.version),)
        now = time.monotonic()
        vouched = canary.told(self.canary)
        out = Path(options.out) if options.out else None
        return document(
            RunRecord(
                rules=in_tier(options.selected(), options.tier),
                observations=observations,
                ledger=ledger,
                target=Target(
                    name=options.client.option[1] if options.client else options.target,
                    version=version,
                    ledger=ledger.name,
                    brokers=len(info.bootstrap) if info else options.brokers,
                    properties=info.properties if info else {},
                ),
                client=facing(options, info),
                release=release,
                unfinished={
                    rule
                    for rule, checks in by_rule(self._checks()).items()
                    if any(check.id not in ran for check in checks)
                },
                problems=[
                    *check_ledger(ledger, spec.rule.load_rules()),
                    *(
                        f"stale: the ledger declares {feature} absent ({absent[feature].reason}), "
                        "but this target has it"
                        for feature in sorted(self.present & absent.keys())
                    ),
                ],
                seed=options.seed,
                level=options.level,
                only=options.only,
                fast=options.fast,
                tier=options.tier if options.tier < ALL else None,
                strict_reach=options.strict_reach,
                started=self.started,
                timing=timing_of(
                    total=now - self.began,
                    cluster_start=start_seconds,
                    before_checks=max(0.0, (self.first_check or now) - self.began),
                    checks=max(0.0, self.last_check - self.first_check),
                    by_check={id_: s for id_, s in self.seconds.items() if id_ in self.seen},
                ),
                partial=self.interrupted or bool(self.faults),
                errors=self.faults,
                notices=list(dict.fromkeys(filter(None, notices))),
                canary=None
                if vouched is None
                else Canary(
                    check=vouched.check,
                    verdict=vouched.verdict,
                    reason=vouched.reason,
                    witness=vouched.witness,
                ),
                broken=BROKEN if self.ordinary_failures else OK,
                ended=INTERRUPTED if self.interrupted else FAULT if self.faults else OK,
                versions={
                    "python": platform.python_version(),
                    "pytest": pytest.__version__,
                    "platform": platform.platform(),
                },
                reproduce=options.reproduce,
                transcript=lambda check, first: existing(out, transcript_name(check, first=first)),
                faced=faced(options),
            )
        )
