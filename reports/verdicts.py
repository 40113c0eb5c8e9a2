"""Settles a run: from what the checks saw to one verdict per rule, compared with the ledger.

Pure. The rules of settlement:

* A rule gets the worst verdict of its checks; evidence adds up; the reason is that of the worst.
* A rule that no check reached is not listed, unless it is declared untested: then it is, with why.
* A rule younger than the release under test is not owed by it, so it is not listed either, unless a
  check saw the release refuse it (``unsupported``).
* A rule that the target cannot be asked (``out of reach``) counts against it only where that is
  demanded (``strict_reach``).
* Every verdict but those, ``pass`` and ``unsupported`` must be a known failure of the ledger, with
  the matching reason and before the entry expires, and every entry must still be needed.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, get_args

from reports.results import Counted, Word
from spec.ledger import Expected, Ledger, defined_in
from spec.rule import Honesty, Level, Rule
from spec.verdict import SEVERITY, Observation, Verdict

UNTESTED: Final = "untested"  # what stands in place of a verdict for a rule that has no check

BENIGN = frozenset({Verdict.PASS, Verdict.UNSUPPORTED})
MAX_WITNESSES = 12

OK, BROKEN, USAGE, FAULT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: as expected, a rule does not hold, wrong usage, harness or environment, Ctrl-C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One rule after settlement. ``verdict`` is None for a rule that is declared untested.

    ``problem`` says what is wrong with the ledger's entry for this rule, or nothing.
    """

    rule: Rule
    verdict: Verdict | None
    expected: bool
    reason: str = ""
    evidence: Mapping[str, int]
    witness: tuple[str, ...] = ()
    checks: tuple[Observation, ...] = ()
    entries: tuple[Expected, ...] = ()
    problem: str = ""
    situations: tuple[str, ...] = ()

    @property
    def word(self) -> Word:
        return self.verdict.value if self.verdict else UNTESTED


def settle(
    rules: Mapping[str, Rule],
    observations: Iterable[Observation],
    *,
    ledger: Ledger,
    version: str,
    today: date,
    unfinished: Collection[str] = (),
    release: str | None = None,
    strict_reach: bool = False,
) -> list[Judged]:
    """Return one verdict per rule that the run reached, in the order of ``rules``.

    ``version`` is ``""`` if the target did not say, ``release`` the Kafka release that says which
    rules exist where that is not the version. Of ``unfinished`` rules some check did not run, so no
    entry of theirs is called stale.
    """
    seen: dict[str, list[Observation]] = {}
    for observation in observations:
        seen.setdefault(observation.rule, []).append(observation)
    known = ledger.expectations(version)
    benign = BENIGN if strict_reach else BENIGN | {Verdict.OUT_OF_REACH}
    judged: list[Judged] = []
    for rule in rules.values():
        found, entries = seen.get(rule.id, []), known.get(rule.id, [])
        refused = any(one.verdict is Verdict.UNSUPPORTED for one in found)
        owed = defined_in(rule, version if release is None else release)
        if found and (refused or owed):
            complete = rule.id not in unfinished
            judged.append(_judge(rule, found, entries, today, complete=complete, benign=benign))
        elif not found and rule.honesty is Honesty.UNTESTED:
            judged.append(
                Judged(rule=rule, verdict=None, expected=True, reason=rule.why, evidence={})
            )
    return judged


def exit_code(judged: Sequence[Judged], problems: Sequence[str], level: Level) -> int:
    """Return the run's exit code; rules below ``level`` are reported and forgiven.

    A broken harness outranks a broken rule: with it, the other verdicts cannot be trusted.
    """
    if any(entry.verdict is Verdict.ERROR for entry in judged):
        return FAULT
    if problems or any(entry.problem for entry in judged):
        return BROKEN
    return BROKEN if any(counts(entry, level) for entry in judged) else OK


def counts(judged: Judged, level: Level) -> bool:
    order = list(Level)
    return not judged.expected and order.index(judged.rule.level) <= order.index(level)


def tally(judged: Iterable[Judged]) -> dict[Counted, int]:
    """Count verdicts, every verdict named even when there is none of it."""
    found = Counter(entry.word for entry in judged)
    return {word: found[word] for word in get_args(Word)}


def known_failure(seen: Observation, entries: Iterable[Expected]) -> Expected | None:
    given = (seen.verdict, seen.reason, seen.witness)
    return next((each for each in entries if each.explains(*given)), None)


def _judge(
    rule: Rule,
    found: Sequence[Observation],
    entries: Sequence[Expected],
    today: date,
    *,
    complete: bool,
    benign: Collection[Verdict],
) -> Judged:
    # Among equals the one that was played twice, whose reason tells of it.
    worst = max(found, key=lambda one: (SEVERITY.index(one.verdict), one.first is not None))
    evidence: Counter[str] = Counter()
    for observation in found:
        evidence.update(observation.evidence)
    unexpected = [
        one
        for one in found
        if not (one.verdict in benign or one.excused or known_failure(one, entries))
    ]
    witness = (line for one in found if one.verdict is worst.verdict for line in one.witness)
    return Judged(
        rule=rule,
        verdict=worst.verdict,
        expected=not unexpected,
        reason=worst.reason,
        evidence=dict(evidence),
        witness=tuple(dict.fromkeys(witness))[:MAX_WITNESSES],
        checks=tuple(found),
        entries=tuple(entries),
        problem=_problem(found, unexpected, entries, today, complete),
        situations=tuple(sorted({name for seen in found for name in seen.situations})),
    )


def _problem(
    found: Sequence[Observation],
    unexpected: Sequence[Observation],
    entries: Sequence[Expected],
    today: date,
    complete: bool,
) -> str:
    expired = [entry for entry in entries if entry.expires < today]
    if expired:
        return f"the ledger's entry expired on {expired[0].expires}: look again, then renew it"
    mute = (Verdict.ERROR, Verdict.OUT_OF_REACH)
    undecided = any(o.verdict in mute or o.excused for o in found)
    if not entries or undecided:
        return ""
    if unexpected:
        seen = unexpected[0]
        return (
            f"wrong reason: the ledger expects {entries[0].verdict} matching "
            f"{entries[0].match!r}, the run saw {seen.verdict}: {seen.reason}"
        )
    unused = [
        entry
        for entry in entries
        if not entry.intermittent and not any(known_failure(o, [entry]) for o in found)
    ]
    if unused and complete and not any(o.verdict is Verdict.UNSUPPORTED for o in found):
        gone = unused[0]
        return (
            f"stale: the ledger expects {gone.verdict} ({gone.reason}), which this run did not see"
        )
    return ""
