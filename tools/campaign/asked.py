"""What a campaign is asked for, and what comes of it: the same for every subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.runner.inventory import Check
from tools.campaign.record import Keeper

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a campaign.

    Attributes:
        only: names of mutants or alterations, rules, areas, parts of the names of checks.
        full: play all that could notice, and not only until something does.
        seed: of the first play.
        workers: processes, or plays at a time; 0 for the subject's own choice.
        rounds: how often ``repeat`` plays.
        count: how many seeds ``histories`` plays.
        target: what ``repeat`` and ``alterations`` play on.
        client: what ``repeat`` certifies instead of a broker; nothing for a broker.
        keeper: where evidence goes.
        say: prints a line about progress.
        progress: moves a bar.
    """

    keeper: Keeper
    only: tuple[str, ...] = ()
    full: bool = False
    seed: int = 1
    workers: int = 0
    rounds: int = 20
    count: int = 1000
    target: str = DEFAULT_TARGET
    client: str = ""
    say: Callable[[str], None] = print
    progress: Progress = lambda what, done, total: None  # noqa: ARG005


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of a subject.

    Attributes:
        said: the result in a sentence or more.
        broken: what was not as it must be, a line each; the exit code is 1.
        faults: what says that the suite itself is wrong; the exit code is 3.
        more: what ``--json`` prints beside that.
    """

    said: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


def split(only: Iterable[str]) -> tuple[str, ...]:
    """Return the words of an option that may be repeated, and may have commas."""
    return tuple(word.strip() for text in only for word in text.split(",") if word.strip())


def means_rule(word: str, rules: Iterable[str]) -> bool:
    """Return whether a word is one of some rules, or the area of one."""
    return any(word.upper() in {rule, rule[:3]} for rule in rules)


def means_check(word: str, check: Check) -> bool:
    """Return whether a word is a check's rule or area, or a part of its name."""
    return means_rule(word, check.rules) or (len(word) > len("ACK-01") and word in check.id)


def chosen(
    only: Sequence[str], names: Iterable[str], checks: Iterable[Check]
) -> tuple[list[str], list[Check]]:
    """Return which of some names and which checks words mean: all of a sort that no word means.

    Raises:
        UsageFault: a word means nothing.
    """
    names, checks = list(names), list(checks)
    found = [name for name in names if name in only]
    rest = [word for word in only if word not in names]
    for word in rest:
        if not any(means_check(word, check) for check in checks):
            raise nothing(word)
    reached = [check for check in checks if any(means_check(word, check) for word in rest)]
    return found or names, reached if rest else checks


def nothing(word: str) -> UsageFault:
    """Return what says that a word means nothing."""
    return UsageFault(
        f"--only {word}: no mutant, alteration, area, rule or check is called that; "
        "`shareproof list` lists rules, evidence/*.jsonl the rest."
    )
