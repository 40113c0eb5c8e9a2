"""The options of a campaign, its outcome, and the evidence that it writes, for all subjects.

:mod:`reports.evidence` says what a line of evidence means, and reads it.
"""

import fcntl
import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fixtures.interface.mutant import Mutant
from fixtures.targets import DEFAULT_TARGET, UsageFault
from reports.evidence import FILE, FOLDER, REFERENCE, Entry, read
from shareproof.runner.inventory import Check
from spec.plain import write_atomically
from spec.verdict import Observation
from suites.options import LISTED, AsJson, Option, repeated

_PLAYED = ("kind", "name", "release", "date", "commit")
_SEEN = ("check", "rule", "verdict", "seed", "reason")
LONGEST = 200  # Characters of a reason that are kept.


class EvidenceStore:
    """What is known, and what a campaign adds to it; written at once if it is to be recorded.

    A campaign may be cut short, and another one may run meanwhile: nothing of either is lost.
    """

    def __init__(self, *, record: bool, folder: Path = FOLDER) -> None:
        self.known = read(folder)
        self.new: list[Entry] = []
        self._record, self._folder = record, folder

    def add(self, entries: Iterable[Entry]) -> None:
        made = [
            replace(one, date=today(), commit=commit(), reason=first_sentence(one.reason))
            for one in entries
        ]
        self.new += made
        fresh = {one.key: one for one in made}
        self._change(lambda old: list(({one.key: one for one in old} | fresh).values()))

    def drop(self, entries: Iterable[Entry]) -> None:
        gone = {one.key for one in entries}
        self._change(lambda old: [one for one in old if one.key not in gone])

    def _change(self, changed: Callable[[list[Entry]], list[Entry]]) -> None:
        self.known = changed(self.known)
        if self._record:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / ".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                write(changed(read(self._folder)), self._folder)


def entry_of(
    kind: str, name: str, seen: Observation, release: str = REFERENCE, seed: int | None = None
) -> Entry:
    """Return what a check saw of something broken as evidence has it: cases count as one check."""
    return Entry(
        kind=kind,
        name=name,
        rule=seen.rule,
        check=seen.check.partition("[")[0],
        verdict=seen.verdict.value,
        release=release,
        seed=seed,
        reason=seen.reason,
    )


def today() -> str:
    return datetime.now(UTC).date().isoformat()


@cache
def commit() -> str:
    words = ("git", "-C", str(FOLDER.parent), "describe", "--always", "--dirty", "--exclude", "*")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = done.stdout.strip()
    return "" if found.endswith("-dirty") else found


def first_sentence(reason: str) -> str:
    flat = " ".join(reason.split())
    sentence = re.split(r"(?<=[a-z0-9)\]'][.;]) ", flat, maxsplit=1)[0]
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…"


def write(entries: Iterable[Entry], folder: Path = FOLDER) -> None:
    ordered = sorted(entries, key=lambda one: (one.key[:3], one.date, one.commit, one.key))
    lines = []
    for _, some in itertools.groupby(ordered, lambda one: _kept(one, _PLAYED)):
        group = list(some)
        line = {**_kept(group[0], _PLAYED), "seen": [_kept(one, _SEEN) for one in group]}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    write_atomically(folder / FILE, "".join(lines))


def _kept(entry: Entry, names: Iterable[str]) -> dict[str, object]:
    found = {name: getattr(entry, name) for name in names}
    return {k: v for k, v in found.items() if v not in (None, "") and (k, v) != ("verdict", "fail")}


T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def split(only: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for text in only or () for word in text.split(",") if word.strip())


@dataclass(frozen=True, kw_only=True)
class Options:
    subjects: Annotated[
        tuple[str, ...],
        Option(
            "What to play: reference (mutants of the reference broker, in virtual time; the "
            "default), variants (of it, which are right), alterations (in front of real Kafka), "
            "kafka (mutants of real Kafka), random and random-client (drawn from all points of the "
            "share-group code of real Kafka and of its Java client), clients (mutants of the model "
            "client), releases (past defects), repeat, histories (random ones, against both "
            "judges), rules (what breaks a rule that nothing has died by yet), declared (the same "
            "on real Kafka), fields (of responses, made wrong), coverage (branches of Kafka that a "
            "certification and chaos reach); or check, which is reference, alterations and repeat "
            "for the checks of --only, and with --record which requests they send.",
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
