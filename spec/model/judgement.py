"""What the model answers: fine, or one sentence for each rule that no interleaving can save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from spec.verdict import Violation


class Span(NamedTuple):
    """When something happened: at one moment between ``sent`` and ``received``, in milliseconds.

    That is all an observer on the client side knows of a request. What the observer did itself at
    one moment has equal ends.
    """

    sent: float
    received: float


Moment = Span | float | int


def span(moment: Moment) -> Span:
    """Return a span; a bare number is a moment that is known exactly."""
    return moment if isinstance(moment, Span) else Span(moment, moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One rule that was broken, by which offsets, in one sentence."""

    rule: str
    sentence: str
    first: int = -1
    last: int = -1

    def __str__(self) -> str:
        return f"{self.rule}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one observation. Without refusals, some interleaving explains it."""

    refusals: tuple[Refusal, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.refusals

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the broken rules, each once, in the order they were found."""
        return tuple(dict.fromkeys(refusal.rule for refusal in self.refusals))

    def check(self, *witness: str) -> None:
        """Raise the first refusal.

        Raises:
            Violation: the observation is not allowed; carries the rule and ``witness``.
        """
        if self.refusals:
            first = self.refusals[0]
            raise Violation(first.rule, first.sentence, witness)


FINE = Judgement()
