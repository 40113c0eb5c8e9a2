"""Whether findings are still there: the rules, sweeps and programs that show them, played again.

A finding is known by its ledger entries, whatever releases those name: what a run says of their
rules tells its fate on any target. One that only cases of a sweep show is told by those, and one
that no check shows by its program.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from fixtures.targets import UsageFault
from reports.results import Results, RuleResult
from spec.catalogue import load_findings
from spec.ledger import Expected, load_ledger, shipped

FILE = "findings.json"
_CLIENTS = {
    "kafka-clients": "java",
    "confluent-kafka": "confluent",
    "kafkit-client": "kafkit",
    "spring-kafka": "spring",
}
"""What a client of a ledger is called on the command line, where it has another name there."""


_NONE: Mapping[str, Results] = MappingProxyType({})


class Fate(StrEnum):
    THERE = "still there"
    OTHERWISE = "fails otherwise"
    NOT_SEEN = "not seen"
    GONE = "gone"
    NOT_PLAYED = "cannot be played here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    page: str
    entries: tuple[Expected, ...] = ()
    cases: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        return self.page.partition("-")[0]

    @property
    def rules(self) -> tuple[str, ...]:
        named = dict.fromkeys(entry.rule for entry in self.entries if not self.cases)
        return tuple(rule for rule in named if not rule.startswith("INV"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    finding: str
    page: str
    fate: Fate
    why: str


def chosen(ledger: str, numbers: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings that are meant, as a ledger has them; all for no numbers, worst first.

    Raises:
        UsageFault: there is none of such a number.
    """
    entries: dict[str, list[Expected]] = {}
    for entry in load_ledger(ledger).expected:
        entries.setdefault(entry.finding, []).append(entry)
    found = {
        one.number: Finding(
            page=page,
            entries=tuple(entries.get(page, ())),
            cases=one.cases if page in entries else (),
        )
        for page, one in load_findings().items()
    }
    wanted = [number.partition("-")[0].zfill(3) for number in numbers]
    for number in wanted:
        if number not in found:
            raise UsageFault(f"There is no finding {number}; docs/findings/README.md lists them.")
    return tuple(found[number] for number in wanted or found)


def fates(
    findings: Sequence[Finding], results: Results | None, swept: Mapping[str, Results] = _NONE
) -> tuple[Played, ...]:
    judged = {rule.id: rule for rule in results.rules} if results else {}
    return tuple(
        _of_cases(one, swept.get(one.page)) if one.cases else _of_rules(one, judged)
        for one in findings
    )


def _of_cases(finding: Finding, swept: Results | None) -> Played:
    cases = [(rule.id, check) for rule in (swept.rules if swept else ()) for check in rule.checks]
    for entry in finding.entries:
        for rule, check in cases:
            if rule == entry.rule and entry.explains(check.verdict, check.reason):
                return _played(finding, Fate.THERE, f"{rule}: {check.reason}")
    count = len({check.check for _, check in cases})
    fate = Fate.GONE if count else Fate.NOT_PLAYED
    return _played(finding, fate, f"none of {count} cases of a sweep shows it")


def _of_rules(finding: Finding, judged: Mapping[str, RuleResult]) -> Played:
    rules = [judged[rule] for rule in finding.rules if rule in judged]
    if not rules:
        return _played(finding, Fate.NOT_PLAYED, "; ".join(_not_judged(finding)))
    for entry in finding.entries:
        rule = judged.get(entry.rule)
        if rule is not None and (reason := _shown(entry, rule)) is not None:
            return _played(finding, Fate.THERE, f"{rule.id}: {reason}")
    for rule in rules:
        if rule.verdict == "fail" and rule.unexpected:
            return _played(finding, Fate.OTHERWISE, f"{rule.id}: {rule.reason}")
    passing = [rule.id for rule in rules if rule.verdict == "pass"]
    sure = {entry.rule for entry in finding.entries if not entry.intermittent}
    for rule in rules:
        if rule.verdict in ("fail", "untested") and passing and rule.id not in sure:
            continue  # A sweep plays it, or another known cause breaks it: another rule tells.
        if rule.verdict != "pass":
            why = "by another known cause" if rule.verdict == "fail" else rule.reason
            return _played(finding, Fate.NOT_PLAYED, f"{rule.id} is {rule.verdict}: {why}")
    passed = f"{', '.join(passing)} pass"
    if all(entry.intermittent for entry in finding.entries):
        return _played(finding, Fate.NOT_SEEN, f"{passed}; it comes at times")
    return _played(finding, Fate.GONE, passed)


def _played(finding: Finding, fate: Fate, why: str) -> Played:
    return Played(finding=finding.number, page=finding.page, fate=fate, why=why)


def _not_judged(finding: Finding) -> Iterator[str]:
    if finding.rules:
        yield f"the run did not get as far as {', '.join(finding.rules)}"
    elif finding.entries:
        named = ", ".join(dict.fromkeys(entry.rule for entry in finding.entries))
        yield f"only histories of chaos show it ({named})"
    else:
        yield f"seen on {load_findings()[finding.page].seen}"
        yield from list(_elsewhere(finding)) or [f"docs/findings/{finding.page}.md has a program"]


@cache
def _ledgers() -> Mapping[str, tuple[Expected, ...]]:
    return {name: load_ledger(name).expected for name in shipped()}


def _elsewhere(finding: Finding) -> Iterator[str]:
    play, clients = f"shareproof finding {finding.number}", []
    for ledger, entries in _ledgers().items():
        kind, _, name = ledger.partition("-")
        rules = [entry.rule for entry in entries if entry.finding == finding.page]
        if rules and kind == "client":
            clients.append(_CLIENTS.get(name, name))
        elif rules and kind == "program":
            yield f"shareproof app --ledger {ledger} --only {','.join(dict.fromkeys(rules))}"
        elif rules:
            yield f"{play} --ledger {ledger}"
    if clients:
        yield f"{play} --client {' or '.join(clients)}"


def _shown(entry: Expected, rule: RuleResult) -> str | None:
    seen = ((rule.verdict, rule.reason), *((one.verdict, one.reason) for one in rule.checks))
    explained = (
        reason
        for verdict, reason in seen
        if verdict == entry.verdict and entry.explains(entry.verdict, reason, rule.witness)
    )
    return next(explained, None)
