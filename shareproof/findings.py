"""Whether findings about brokers are still there: the rules that show them, played again.

A finding is known by its ledger entries, whatever releases those name: what a run says of their
rules tells its fate on any target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fixtures.targets import UsageFault
from reports.results import Results, RuleResult
from spec.ledger import Expected, load_ledger


class Fate(StrEnum):
    """What became of a finding on a target."""

    THERE = "still there"
    OTHERWISE = "fails otherwise"
    NOT_SEEN = "not seen"
    GONE = "gone"
    NOT_PLAYED = "cannot be played here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A page of ``docs/findings`` with its entries in a ledger."""

    page: str
    entries: tuple[Expected, ...]

    @property
    def number(self) -> str:
        """Such as ``051``."""
        return self.page.partition("-")[0]

    @property
    def rules(self) -> tuple[str, ...]:
        """Its rules that checks reach, and not histories alone."""
        named = dict.fromkeys(entry.rule for entry in self.entries)
        return tuple(rule for rule in named if not rule.startswith("INV"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A finding's fate, with the rule and the reason that tell it."""

    finding: str
    page: str
    fate: Fate
    why: str


def chosen(ledger: str, numbers: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings of a ledger that are meant, in their order; all for no numbers.

    Raises:
        UsageFault: the ledger has none of such a number.
    """
    entries: dict[str, list[Expected]] = {}
    for entry in load_ledger(ledger).expected:
        if entry.finding:
            entries.setdefault(entry.finding, []).append(entry)
    all_of_them = (Finding(page=page, entries=tuple(entries[page])) for page in sorted(entries))
    found = {finding.number: finding for finding in all_of_them}
    wanted = [number.partition("-")[0].zfill(3) for number in numbers]
    for number in wanted:
        if number not in found:
            raise UsageFault(
                f"No finding {number} in the ledger {ledger}; it has {', '.join(found)}. Findings "
                "about clients are played by their own programs, which their pages name."
            )
    return tuple(found[number] for number in wanted or found)


def fates(findings: Sequence[Finding], results: Results | None) -> tuple[Played, ...]:
    """Return what a run of the findings' rules says of each."""
    judged = {rule.id: rule for rule in results.rules} if results else {}
    return tuple(_fate(finding, judged) for finding in findings)


def _fate(finding: Finding, judged: Mapping[str, RuleResult]) -> Played:
    def played(fate: Fate, why: str) -> Played:
        return Played(finding=finding.number, page=finding.page, fate=fate, why=why)

    rules = [judged[rule] for rule in finding.rules if rule in judged]
    if not rules:
        return played(Fate.NOT_PLAYED, _not_judged(finding))
    for entry in finding.entries:
        rule = judged.get(entry.rule)
        if rule is not None and _shows(entry, rule):
            return played(Fate.THERE, f"{rule.id}: {entry.reason}")
    for rule in rules:
        if rule.verdict == "fail" and rule.unexpected:
            return played(Fate.OTHERWISE, f"{rule.id}: {rule.reason}")
    for rule in rules:
        if rule.verdict != "pass":
            why = "by another known cause" if rule.verdict == "fail" else rule.reason
            return played(Fate.NOT_PLAYED, f"{rule.id} is {rule.verdict}: {why}")
    if all(entry.intermittent for entry in finding.entries):
        return played(
            Fate.NOT_SEEN, f"{', '.join(rule.id for rule in rules)} pass; it comes at times"
        )
    return played(Fate.GONE, f"{', '.join(rule.id for rule in rules)} pass")


def _not_judged(finding: Finding) -> str:
    if finding.rules:
        return f"the run did not get as far as {', '.join(finding.rules)}"
    named = ", ".join(dict.fromkeys(entry.rule for entry in finding.entries))
    return f"only histories of chaos show it ({named})"


def _shows(entry: Expected, rule: RuleResult) -> bool:
    seen = {(rule.verdict, rule.reason), *((one.verdict, one.reason) for one in rule.checks)}
    return any(
        verdict == entry.verdict and entry.explains(entry.verdict, reason, rule.witness)
        for verdict, reason in seen
    )
