"""The judge: how a check states what it found, rule by rule.

A check asks the judge instead of using ``assert``, because the judge counts. A rule that a check
names but never puts before the judge is vacuous, however green the test is.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import allure
import pytest

from spec.verdict import Stalled, Undecided, Violation

REFUSED = pytest.StashKey[str]()
"""Where the target's refusal of a feature is kept: the verdict is then `unsupported`."""

MAKESHIFT = pytest.StashKey[Callable[[], str]]()
"""Where a check keeps why it had to do without a configuration of its group, if it had to."""

IN_VAIN = pytest.StashKey[Callable[[], Awaitable[Stalled | None]]]()
"""Where a check's fixtures say how to find out whether its target hangs, once it waited in vain."""

OBSERVED = pytest.StashKey[bool]()
"""Whether a check's frames are all that is done to its groups, and are as the broker sent them."""

PATIENCE = pytest.StashKey[float]()
"""Where a check's fixtures say how many seconds longer than usual it may take on this target."""

MAX_WITNESS = 3  # A witness is the one to three events that prove the violation, not a log.
MAX_TEXT = 600
LONG = 12  # A collection with more items than this is shown by its difference.


AS_WRITTEN = "as written"
"""The situation of a check that says nothing of others: the one that it makes itself."""


class Vacuous(Exception):
    """A check ended well and never put one of its rules before the judge."""


class MisusedJudge(Exception):
    """A check judged a rule that its marker does not name: the harness is wrong, not the target."""


class Judge:
    """Compares what happened with what a rule demands, and counts what that rests on.

    A check of one rule has a judge of that rule. Where a check names several, ``judge["ACK-01"]``
    is the judge of one of them, and so is what a helper gets.

    Every method raises :class:`~spec.verdict.Violation` when the rule is broken, and counts one
    assertion as evidence for it otherwise.
    """

    def __init__(self, rules: Collection[str]) -> None:
        self.rules = tuple(rules)
        self.rule = self.rules[0] if len(self.rules) == 1 else ""
        self.situations: tuple[str, ...] = (AS_WRITTEN,)
        """The situations in which the check put its rules to the test."""
        self._evidence: dict[str, Counter[str]] = {rule: Counter() for rule in self.rules}

    def __getitem__(self, rule: str) -> Judge:
        if rule not in self._evidence:
            raise MisusedJudge(f"the check judges {rule} but its marker names {self._named}")
        bound = copy.copy(self)
        bound.rule = rule
        return bound

    def equal(self, expected: object, actual: object, what: str, *, witness: Witness = ()) -> None:
        """Demand that ``actual`` equals ``expected``; ``what`` says what was compared."""
        sentence = f"{what}: expected {_short(expected)}, got {_short(actual)}"
        if _long(expected) or _long(actual):
            sentence = f"{what}: {_difference(expected, actual) or sentence}"
        self.holds(expected == actual, sentence, witness=witness, step=what)

    def delivered(self, expected: Mapping[int, int], counts: Mapping[int, int], what: str) -> None:
        """Demand that just these offsets came; how often they were delivered is DLV's to judge."""
        self.equal(sorted(expected), sorted(counts), what)
        if counts != expected:
            raise Undecided(f"{what}: delivery counts are {_short(counts)}, not {_short(expected)}")

    def one_of(
        self, allowed: Mapping[Any, str], actual: object, what: str, *, witness: Witness = ()
    ) -> None:
        """Demand that ``actual`` is among ``allowed``, where the specification leaves a choice.

        Each choice has the source that allows it: a section of a KIP, a field of a message, a page
        of the documentation or Javadoc, the rule where it is one about Apache's own choice, or
        ``order:`` where no contract says which of two things comes first.

        Raises:
            MisusedJudge: a choice has no source.
        """
        _demand_sources(allowed, what)
        choices = " or ".join(_short(choice) for choice in allowed)
        sentence = f"{what}: expected {choices}, got {_short(actual)}"
        self.holds(actual in allowed, sentence, witness=witness, step=what)

    def none_but(self, allowed: Mapping[Any, str], actual: Collection[Any], what: str) -> None:
        """Demand that whatever was seen is among ``allowed``, each with its source as above."""
        _demand_sources(allowed, what)
        self.equal(set(), set(actual) - allowed.keys(), what)

    def holds(
        self, condition: object, sentence: str, *, witness: Witness = (), step: str = ""
    ) -> None:
        """Demand that ``condition`` is true.

        ``sentence`` says what was expected and what was seen, ``witness`` has up to three events
        that prove the violation, ``step`` is the report's line, where that is not the sentence.
        """
        counter = self._counter
        with allure.step(f"{self.rule}: {step or sentence}"):
            if not condition:
                lines = (witness,) if isinstance(witness, str) else witness
                proof = tuple(_short(line, quote=False) for line in lines)[:MAX_WITNESS]
                raise Violation(self.rule, sentence, proof)
        counter["assertions"] += 1

    def saw(self, **events: int) -> None:
        """Count events that the verdict rests on, as in ``redeliveries=3``; zeros prove nothing."""
        self._counter.update({name: count for name, count in events.items() if count > 0})

    def besides(self, rule: str) -> Judge:
        """Return the judge of a rule that every check of its kind is held against at its end."""
        self._evidence.setdefault(rule, Counter())
        return self[rule]

    def evidence_besides(self) -> Mapping[str, dict[str, int]]:
        return {r: dict(c) for r, c in self._evidence.items() if r not in self.rules}

    def evidence(self, rule: str) -> Mapping[str, int]:
        return dict(self._evidence.get(rule, {}))

    def unexercised(self) -> tuple[str, ...]:
        return tuple(rule for rule in self.rules if not self._evidence[rule])

    @property
    def _counter(self) -> Counter[str]:
        if not self.rule:
            raise MisusedJudge(f'which rule? judge["..."] says it; the marker names {self._named}')
        return self._evidence[self.rule]

    @property
    def _named(self) -> str:
        return ", ".join(self.rules) or "no rule"


_SOURCE = re.compile(
    r"(KIP-\d+ §|[A-Z]\w+(Request|Response) [A-Z]|documentation |Javadoc |[A-Z]{3}-\d+ |order: )"
    r".{6}"
)
"""What the source of a choice begins with; a sentence follows."""


def _demand_sources(allowed: Mapping[Any, str], what: str) -> None:
    bare = [choice for choice, source in allowed.items() if not _SOURCE.match(source)]
    if bare:
        raise MisusedJudge(f"nothing is said to allow {bare} as the {what}")


Witness = str | tuple[Any, ...] | list[Any]


def _long(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and len(value) > LONG


def _difference(expected: object, actual: object) -> str:
    """Say what is missing and what is too much: two long lists of offsets help nobody."""
    if not isinstance(expected, Collection) or not isinstance(actual, Collection):
        return ""
    missing = [item for item in expected if item not in actual]
    surplus = [item for item in actual if item not in expected]
    if not missing and not surplus:
        return ""
    return (
        f"expected {len(expected)}, got {len(actual)}; missing {_short(missing)}, "
        f"not expected {_short(surplus)}"
    )


def _short(value: object, *, quote: bool = True) -> str:
    text = value if isinstance(value, str) and not quote else repr(value)
    text = str(text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
