"""What an alteration is, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.altered.copies import Copy

Alter = Callable[[Copy], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One thing that is altered in a copy, and what the judge must say of it.

    Attributes:
        rule: The rule that it is about.
        breaks: Whether it breaks that rule; otherwise it breaks none.
        also: Rules that see the same, and may or may not say so.
        partition: That of the log that is copied: records of 1 are deleted now and then.
        alter: Does it; raises NoPlace where the history has no place for it.
    """

    rule: str
    breaks: bool
    also: frozenset[str]
    partition: int
    alter: Alter

    def __str__(self) -> str:
        name = self.alter.__name__.replace("_", " ").strip()
        return f"{self.rule} {'broken' if self.breaks else 'kept'}: {name}"


ALTERATIONS: list[Alteration] = []
"""Every alteration, in the order in which the modules beside this one tell them."""


def breaks(rule: str, *also: str, partition: int = 0) -> Callable[[Alter], Alter]:
    """Declare that what a function alters breaks a rule."""
    return _declared(rule, also, partition, breaking=True)


def keeps(rule: str, *, partition: int = 0) -> Callable[[Alter], Alter]:
    """Declare that what a function alters is legal, though it looks like the breach of a rule."""
    return _declared(rule, (), partition, breaking=False)


def _declared(
    rule: str, also: tuple[str, ...], partition: int, *, breaking: bool
) -> Callable[[Alter], Alter]:
    def declare(alter: Alter) -> Alter:
        ALTERATIONS.append(
            Alteration(
                rule=rule,
                breaks=breaking,
                also=frozenset(also),
                partition=partition,
                alter=alter,
            )
        )
        return alter

    return declare
