"""The options of a campaign, and its outcome: the same for every subject."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fixtures.interface.mutant import Mutant
from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.runner.inventory import Check
from suites.options import LISTED, AsJson, Option, repeated
from tools.campaign.record import EvidenceStore

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def split(only: Iterable[str] | None) -> tuple[str, ...]:
    """Return the words of an option that may be repeated, and may have commas."""
    return tuple(word.strip() for text in only or () for word in text.split(",") if word.strip())


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a campaign, and where its evidence and its progress go."""

    subjects: Annotated[
        tuple[str, ...],
        Option(
            "What to play: reference (mutants of the reference broker, in virtual time; the "
            "default), variants (of it, which are right), alterations (in front of real Kafka), "
            "kafka (mutants of real Kafka), random and random-client (drawn from all points of the "
            "share-group code of real Kafka and of its Java client), clients (mutants of the model "
            "client), releases (past defects), repeat, histories (random ones, against both "
            "judges), rules (what breaks a rule that nothing has died by yet), declared (the same "
            "on real Kafka), coverage (which branches of Kafka a certification and chaos reach); "
            "or check, which is reference, alterations and repeat for the checks of --only, and "
            "with --record which requests they send.",
            kind=LISTED,
            parse=repeated,
            argument=True,
            show_default=False,
        ),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        Option(
            "Mutant, alteration, area, rule or part of a check's name; repeatable, or a,b,c.",
            kind=LISTED,
            parse=split,
        ),
    ] = ()
    listed: Annotated[bool, Option("List what is broken on purpose, and exit.", "--list")] = False
    again: Annotated[bool, Option("Play what evidence has again, and record what was seen.")] = (
        False
    )
    record: Annotated[bool, Option("Write what is seen to evidence/.")] = False
    full: Annotated[bool, Option("Go on where something was seen to notice already.")] = False
    seed: Annotated[int, Option("Random seed.", min=0)] = 1
    workers: Annotated[
        int, Option("Plays at a time; 0: the usual number.", "--workers", "-n", min=0)
    ] = 0
    rounds: Annotated[int, Option("How often repeat plays.", min=1)] = 20
    count: Annotated[int, Option("How many seeds histories plays.", min=1)] = 1000
    mutants: Annotated[
        int, Option("How many mutants random and random-client draw; 0: all.", min=0)
    ] = 100
    target: Annotated[
        str, Option("Cluster of alterations and repeat, such as external:HOST:PORT.")
    ] = DEFAULT_TARGET
    client: Annotated[str, Option("With repeat: repeat a client's checks.")] = ""
    as_json: AsJson = False
    store: EvidenceStore = field(default_factory=lambda: EvidenceStore(record=False))
    say: Callable[[str], None] = print  # Prints a line about progress.
    progress: Progress = lambda what, done, total: None  # noqa: ARG005


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The outcome of a subject: by ``broken`` the exit code is 1, by ``faults`` 3."""

    said: list[str] = field(default_factory=list)  # The result in a sentence or more.
    broken: list[str] = field(default_factory=list)  # What was not as it must be, a line each.
    faults: list[str] = field(default_factory=list)  # What says that the suite itself is wrong.
    more: dict[str, Any] = field(default_factory=dict)  # What ``--json`` prints beside that.


def means_rule(word: str, rules: Iterable[str]) -> bool:
    return any(word.upper() in {rule, rule[:3]} for rule in rules)


def means_check(word: str, check: Check) -> bool:
    return means_rule(word, check.rules) or (len(word) > len("ACK-01") and word in check.id)


def meant(words: Iterable[str], checks: Iterable[Check]) -> list[Check]:
    return [one for one in checks if any(means_check(word, one) for word in words)]


def chosen(
    only: Sequence[str], names: Iterable[str], checks: Iterable[Check]
) -> tuple[list[str], list[Check]]:
    """Return which of some names and which checks words mean: all of a sort that no word means."""
    names, checks = list(names), list(checks)
    found = [name for name in names if name in only]
    rest = [word for word in only if word not in names]
    for word in rest:
        if not meant([word], checks):
            raise nothing(word)
    return found or names, meant(rest, checks) if rest else checks


def chosen_mutants(
    only: Sequence[str], mutants: Mapping[str, Mutant[Any]], checks: Sequence[Check]
) -> list[str]:
    """Return the mutants that words mean by name, rule, area or a check of their rules."""
    found = dict[str, None]()
    for word in only:
        rules = {rule for check in meant([word], checks) for rule in check.rules}
        mine = [
            name
            for name, one in mutants.items()
            if word == name or means_rule(word, one.rules) or rules & set(one.rules)
        ]
        if not mine:
            raise nothing(word)
        found |= dict.fromkeys(mine)
    return list(found) if only else list(mutants)


def nothing(word: str) -> UsageFault:
    return UsageFault(
        f"--only {word}: no mutant, alteration, area, rule or check is called that; "
        "`shareproof list` lists rules, evidence/*.jsonl the rest."
    )
