"""What an alteration is, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

Alter = Callable[..., None]
"""Takes a copy, and the fields that are declared with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One thing that is altered in a copy, and what the judge must say of it.

    Attributes:
        rule: The rule that it is about.
        breaks: Whether it breaks that rule; otherwise it breaks none.
        also: Rules that see the same, and may or may not say so.
        partition: That of the log that is copied: records of 1 are deleted now and then.
        name: What it does.
        alter: Does it; raises NoPlace where the history has no place for it.
    """

    rule: str
    breaks: bool
    also: frozenset[str]
    partition: int
    name: str
    alter: Alter

    def __str__(self) -> str:
        return f"{self.rule} {'broken' if self.breaks else 'kept'}: {self.name}"


ALTERATIONS: list[Alteration] = []
"""Every alteration, in the order in which the modules beside this one tell them."""


def breaks(
    rule: str, *also: str, name: str = "", partition: int = 0, **fields: Any
) -> Callable[[Alter], Alter]:
    """Declare that what a function alters, when it is given these fields, breaks a rule.

    An alteration without a name is called like the function.
    """
    facts = {"rule": rule, "breaks": True, "also": frozenset(also), "partition": partition}
    return _declared(name, fields, facts)


def keeps(
    rule: str, *also: str, name: str = "", partition: int = 0, **fields: Any
) -> Callable[[Alter], Alter]:
    """Declare that what a function alters is legal, though it looks like the breach of a rule."""
    facts = {"rule": rule, "breaks": False, "also": frozenset(also), "partition": partition}
    return _declared(name, fields, facts)


def _declared(name: str, fields: dict[str, Any], facts: dict[str, Any]) -> Callable[[Alter], Alter]:
    def declare(alter: Alter) -> Alter:
        called = name or alter.__name__.replace("_", " ").strip()
        ALTERATIONS.append(Alteration(name=called, alter=partial(alter, **fields), **facts))
        return alter

    return declare
