"""results.json as typed values: the one document between a run and everything made of it.

``reports.reader`` makes it of a file, ``reports.html`` makes a file of it, ``reports.document``
makes it of settled rules. Nobody else knows that it is JSON. ``reports.reader`` makes its JSON
Schema of these classes: a field without a default is required, and a field that equals its default
is left out of the file. The descriptions are the docstrings'.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Annotated, Literal

from spec.rule import About, Basis, Honesty, Internal, Level
from spec.verdict import Verdict

SCHEMA = 1  # additions keep the number; a change that breaks readers raises it

Word = Literal[
    "pass", "unsupported", "out of reach", "vacuous", "unknown", "fail", "error", "untested"
]
"""A verdict, or ``untested`` for a rule that has no check."""

Counted = Literal[Word, "unexpected", "problems"]
Count = Annotated[int, {"minimum": 0}]
Seconds = Annotated[float, {"minimum": 0}]
RuleId = Annotated[str, {"pattern": "^[A-Z]{3}-[0-9]{2,3}$"}]
Area = Annotated[str, {"pattern": "^[A-Z]{3}$"}]
Day = Annotated[str, {"format": "date"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """The check that must fail in every run, so that all others are believed."""

    check: str
    verdict: Verdict
    reason: str
    witness: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the run was started, and how it ended.

    Attributes:
        started: ISO 8601, UTC.
        exit_code: 0 as expected, 1 a rule does not hold, 2 wrong usage, 3 harness or environment,
            130 interrupted.
        partial: The run was cut short: absent rules were not judged.
        errors: Why the harness or the environment could not finish the run.
        notices: What a reader must know before the verdicts, such as a release newer than the
            suite.
        level: Rules from MUST down to this level must hold.
        canary: The check that must fail; null where a run has none.
        tier: The tier of rules that was asked for; not there for a run of all rules.
    """

    started: str
    seconds: Seconds
    seed: Count
    command: tuple[str, ...]
    exit_code: int
    partial: bool
    errors: tuple[str, ...]
    notices: tuple[str, ...]
    level: Level
    only: tuple[str, ...]
    fast: bool
    versions: Mapping[str, str]
    canary: Canary | None
    tier: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The broker or cluster that was tested, or that the client under test faced.

    Attributes:
        version: Empty if the target did not report one.
        ledger: The ledger of known failures that verdicts are compared with.
    """

    name: str
    version: str
    ledger: str
    brokers: Count
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The client under test, as it introduces itself, and the broker it faced.

    Attributes:
        brokers: Verdicts counted by broker faced; a rule tested with two brokers counts for each.
    """

    name: str
    version: str
    language: str
    runtime: str
    capabilities: tuple[str, ...]
    facing: str
    facing_version: str
    brokers: Mapping[str, Mapping[str, Count]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTry:
    """What the first try of a check ended with: it could not decide, or its worker died."""

    verdict: Verdict
    reason: str
    seconds: Seconds
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found of a rule.

    Attributes:
        transcript: Path inside the run's directory, or empty.
        first_try: Only for a check that was played twice; all else is of its second try.
        cases: Only for histories: how many cases put the rule to the test.
        excuses: How many more would have, but for what may have happened meanwhile, by reason.
    """

    check: str
    verdict: Verdict
    reason: str
    seconds: Seconds
    transcript: str
    first_try: FirstTry | None = None
    cases: Count = 0
    excuses: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """An entry of the ledger that applies to the release under test.

    Attributes:
        match: Regular expression that the reason or the witness must match.
        expires: The entry is an error after this day.
    """

    verdict: Annotated[Verdict, {"enum": ["fail", "unknown", "vacuous"]}]
    versions: str
    match: str
    reason: str
    bug: str
    finding: str
    expires: Day


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One rule and its verdict.

    Attributes:
        expected: Whether the verdict is pass, unsupported, out of reach (unless the run is strict
            about that), untested, or a known failure.
        problem: What is wrong with the ledger's entry: stale, wrong reason, expired.
        basis: What the rule rests on; not in results of earlier releases.
        internal: What of Apache Kafka's own it is about, if anything.
        about: What the rule is about; those about state are checked in several situations.
        evidence: Named events the verdict rests on.
        situations: Those in which its checks put the rule to the test, by name.
        witness: The events that break the rule.
        facing: Only for clients: the brokers that the rule's checks used.
        known_failures: The ledger's entries for this rule and release.
        reproduce: Command that runs this rule again; empty if no check reaches it.
    """

    id: RuleId
    level: Level
    area: Area
    text: str
    basis: Basis | None = None
    internal: Internal | None = None
    about: About | None = None
    source: tuple[str, ...]
    since: str
    honesty: Honesty
    verdict: Word
    expected: bool
    reason: str
    problem: str
    evidence: Mapping[str, Count]
    situations: tuple[str, ...] = ()
    witness: tuple[str, ...]
    facing: tuple[str, ...] = ()
    checks: tuple[CheckResult, ...]
    known_failures: tuple[KnownFailure, ...]
    reproduce: str

    @property
    def by_contract(self) -> bool:
        """Whether a contract demands it of every implementation."""
        return self.basis is Basis.CONTRACT and not self.internal

    @property
    def unexpected(self) -> bool:
        """Whether nothing explains the verdict, or the ledger's entry is wrong."""
        return not self.expected or bool(self.problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How long something took, or how often it happened, in one part of a history.

    Attributes:
        during: The fault, or else the phase, of the delivery.
        one_in: Of a large history every nth record was measured.
    """

    during: str
    measure: str
    count: Count
    median: int
    p90: int
    p99: int
    max: int
    one_in: Annotated[int, {"minimum": 2}] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How often a history got into a state worth testing."""

    state: str
    count: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """A fault that was injected.

    Attributes:
        subject: What it was injected into, such as a broker or a partition.
        at: Seconds after the load began, as planned.
        lasts: Seconds, as planned.
        since: Nanoseconds on the run's clock.
        until: Nanoseconds on the run's clock.
        hit: The proof that it took effect; empty if it never did.
        healed: The proof that it was healed; empty if that was never observed.
        trouble: Why a proof is missing.
        blocked_by: The faults that kept it from taking effect, if others did.
    """

    fault: str
    subject: str
    at: float
    lasts: float
    since: int
    until: int
    hit: str
    healed: str
    trouble: str
    blocked_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosRun:
    """What was injected into one run, with the proof that it took effect and was healed.

    Attributes:
        run: The run's directory.
        seconds: How long records were produced.
        verdict: Whether faults took effect: one at least, and each kind of a scenario.
        owed: Rules that the run had to exercise.
        judged: Which share of the cases of these rules it may not excuse.
        drained: Whether every group reached the end of the log.
        trouble: What went wrong that no fault explains.
        notes: What else is worth knowing, such as that brokers had to be restarted.
    """

    run: str
    scenario: str
    seed: int
    seconds: float
    verdict: Literal["pass", "vacuous"]
    owed: tuple[str, ...]
    produced: Count
    delivered: Count
    drained: bool
    trouble: tuple[str, ...]
    faults: tuple[InjectedFault, ...]
    judged: Annotated[float, {"minimum": 0, "maximum": 1}] = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCheck:
    """One of the slowest checks."""

    check: str
    seconds: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where the time went, in seconds.

    Attributes:
        total: The whole run, from options read to reports written.
        cluster_start: Until the target was ready.
        before_checks: Until the first check began; includes most of cluster_start.
        checks: From the start of the first check to the end of the last.
        work: The checks' own times added up; more than checks when they overlap.
        executions: How many checks ran.
    """

    total: Seconds
    cluster_start: Seconds
    before_checks: Seconds
    checks: Seconds
    work: Seconds
    executions: Count
    slowest: tuple[SlowCheck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Results of a shareproof run.

    Attributes:
        client: Only if a client library was tested.
        rules: One entry per rule that the run reached or that no check can reach.
        problems: Problems of the ledger that belong to no single rule.
        newer_than_target: Rules that a release newer than the one under test introduced.
        summary: How many rules have each verdict, are unexpected, or have a ledger problem.
        distributions: Only of judged histories: by history, how long things took and how often
            they happened.
        reached: Only of judged histories: by history, how often it got into each state.
        chaos: Only of chaos runs: what was injected.
    """

    schema: Annotated[int, {"const": SCHEMA}]
    run: Run
    target: Target
    client: Client | None = None
    rules: tuple[RuleResult, ...]
    problems: tuple[str, ...]
    newer_than_target: tuple[RuleId, ...]
    summary: Mapping[Counted, Count]
    timing: Timing
    distributions: Mapping[str, tuple[Measure, ...]] | None = None
    reached: Mapping[str, tuple[Reached, ...]] | None = None
    chaos: tuple[ChaosRun, ...] | None = None

    @property
    def subject(self) -> str:
        """Who was tested: a client with its version, or a target."""
        return f"{self.client.name} {self.client.version}" if self.client else self.target.name

    @property
    def is_partial(self) -> bool:
        """Whether the run was cut short, or covered a part of the rules only."""
        return bool(self.run.partial or self.run.only or self.run.fast)

    @property
    def unexpected(self) -> tuple[RuleResult, ...]:
        """The rules whose verdict nothing explains, or whose ledger entry is wrong."""
        return tuple(rule for rule in self.rules if rule.unexpected)

    @property
    def second_tries(self) -> int:
        """How many checks were played twice."""
        checks = (check for rule in self.rules for check in rule.checks)
        return len({check.check for check in checks if check.first_try})

    @property
    def known_failures(self) -> tuple[RuleResult, ...]:
        """The rules that do not hold, or are undecided, as the ledger says."""
        return tuple(
            rule
            for rule in self.rules
            if not rule.unexpected and rule.verdict in {"fail", "unknown"}
        )


def suite_version() -> str:
    """Return the version of this suite, or ``checkout`` when it is not installed."""
    try:
        return metadata.version("shareproof")
    except metadata.PackageNotFoundError:
        return "checkout"
