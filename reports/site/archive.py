"""The runs that a site is made of, found below the paths that were given, and how they compare.

A run is a results.json with what lies beside it. Who was tested is the run's *subject*: the client
library where one was tested, else the target. Runs of one subject, in the order they were started,
are its history. Beside each other stand what changed between two, and tables of who by what.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.headlines import Told
from reports.reader import read
from reports.results import Client, Results, RuleResult, Word

LONGEST_NAME = 100
"""Characters of a run's name in addresses; two are in that of a change, and files have limits."""

MOST_TOLD = 12  # other runs that a rule's history names


@dataclass(frozen=True, kw_only=True)
class Run:
    slug: str  # Its name in addresses; no two runs of an archive have the same.
    folder: Path  # Where its files are.
    results: Results  # What it found.

    @property
    def kind(self) -> str:
        if self.results.client:
            return "client"
        return "broker" if self.results.distributions is None else "history"

    @property
    def subject(self) -> str:
        """Who was tested: a client with its version and the broker it faced, or a target.

        What a target did over a whole history is a subject of its own, for it answers other rules.
        """
        client, target = self.results.client, self.results.target.name
        if client is not None:
            return f"{client.name} {client.version} facing {client.facing}"
        if self.kind == "broker":
            return target
        return f"{target} under load" if self.results.chaos is None else f"{target} under chaos"

    @property
    def started(self) -> str:
        return self.results.run.started

    @cached_property
    def rules(self) -> Mapping[str, RuleResult]:
        return judged(self.results)


def judged(results: Results) -> dict[str, RuleResult]:
    return {rule.id: rule for rule in results.rules if rule.verdict != "untested"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Runs in the order they were started, and what is wrong with files that were left out.

    ``doubles`` are files that say what another one of the archive says, to the byte.
    """

    runs: tuple[Run, ...]
    unreadable: tuple[str, ...] = ()
    doubles: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        return (*self.unreadable, *self.doubles)

    @property
    def histories(self) -> Mapping[str, tuple[Run, ...]]:
        found: dict[str, tuple[Run, ...]] = {}
        for run in self.runs:
            found[run.subject] = (*found.pop(run.subject, ()), run)
        return dict(reversed(found.items()))

    @property
    def newest(self) -> tuple[Run, ...]:
        """The newest run of each subject that judged the most rules, by the name of the subject.

        A glance at three rules does not stand for a subject that was certified in full before.
        """
        whole = (
            max(runs, key=lambda run: (len(run.rules), run.started))
            for runs in self.histories.values()
        )
        return tuple(sorted(whole, key=lambda run: (run.kind, run.subject)))

    @property
    def lasting(self) -> Mapping[str, Run]:
        taken: set[str] = set()
        return {_free(run.subject, taken): run for run in self.newest}

    @property
    def changes(self) -> tuple[tuple[Run, Run], ...]:
        pairs = (pair for runs in self.histories.values() for pair in pairwise(runs))
        return tuple(sorted(pairs, key=lambda pair: pair[1].started, reverse=True))

    def told(self, run: Run, address: Callable[[Run], str]) -> Mapping[str, list[Told]]:
        """Return what the other runs of a run's subject said of each of its rules, newest first."""
        found: dict[str, list[Told]] = {}
        for other in reversed(self.histories[run.subject]):
            if other is run:
                continue
            page = address(other)
            for name in run.rules.keys() & other.rules.keys():
                verdict = other.rules[name].verdict
                one = Told(started=other.started, verdict=verdict, address=f"{page}#{name}")
                found.setdefault(name, []).append(one)
        return {name: others[:MOST_TOLD] for name, others in found.items()}


def find(paths: Iterable[Path]) -> Archive:
    """Return the archive of all runs at and below some paths; raises ValueError."""
    found: dict[Path, Results] = {}
    unreadable: list[str] = []
    for file in dict.fromkeys(file for path in paths for file in _files(path)):
        try:
            found[file] = read(file)
        except ValueError as error:
            unreadable.append(str(error))
    if not found:
        raise ValueError("; ".join(unreadable))
    doubles = _doubles(found)
    ordered = sorted(
        ((file, results) for file, results in found.items() if file not in doubles),
        key=lambda item: (item[1].run.started, str(item[0])),
    )
    slugs: set[str] = set()
    runs = tuple(
        Run(slug=_slug(results, slugs), folder=file.parent, results=results)
        for file, results in ordered
    )
    told = tuple(f"{file}: the same run as {kept}" for file, kept in doubles.items())
    return Archive(runs=runs, unreadable=tuple(unreadable), doubles=told)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path.resolve()]
    files = sorted(file.resolve() for file in path.rglob("results.json") if not file.is_dir())
    if not files:
        raise ValueError(f"{path}: no results.json at or below it")
    return files


def _doubles(files: Iterable[Path]) -> dict[Path, Path]:
    """Return copies of one run, each with the file that is kept: the one with most beside it.

    A site keeps copies of its runs, and may lie among them.
    """
    same: dict[str, list[Path]] = {}
    for file in files:
        same.setdefault(sha256(file.read_bytes()).hexdigest(), []).append(file)
    found: dict[Path, Path] = {}
    for copies in same.values():
        kept = max(copies, key=lambda file: len(list(file.parent.iterdir())))
        found |= {file: kept for file in copies if file != kept}
    return found


def _slug(results: Results, taken: set[str]) -> str:
    name = results.subject.replace(" ", "-")
    when = re.sub(r"\D", "", results.run.started)[:14]
    return _free(f"{name}-{when}", taken)


def _free(name: str, taken: set[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-LONGEST_NAME:].strip("-.")
    slug, number = plain, 1
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    taken.add(slug)
    return slug


KINDS = {
    "fail": "newly failing",
    "error": "newly without a verdict, because the run failed",
    "unknown": "newly undecided",
    "vacuous": "newly vacuous",
    "out of reach": "newly out of reach",
    "unsupported": "newly unsupported",
    "pass": "newly passing",
}
"""What a new verdict is called, in the order a reader wants them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    rule: RuleResult
    before: Word

    @property
    def word(self) -> Word:
        return self.rule.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    changes: Mapping[str, tuple[Change, ...]]
    added: tuple[str, ...]
    dropped: tuple[str, ...]

    @property
    def sentence(self) -> str:
        told = [f"{len(found)} {KINDS[word]}" for word, found in self.changes.items()]
        told += [f"{len(self.added)} more rules judged"] if self.added else []
        told += [f"{len(self.dropped)} rules not judged this time"] if self.dropped else []
        return ", ".join(told) or "no verdict changed"

    @property
    def lines(self) -> tuple[str, ...]:
        told = [self.sentence]
        for word, found in self.changes.items():
            told += ["", KINDS[word]]
            told += [f"  {one.rule.id} was {one.before}: {one.rule.text}" for one in found]
        for what, names in (("judged now only", self.added), ("judged before only", self.dropped)):
            told += ["", what, f"  {' '.join(names)}"] if names else []
        return tuple(told)

    def to_plain(self) -> dict[str, Any]:
        changed = [
            {"rule": one.rule.id, "before": one.before, "after": one.word}
            for found in self.changes.values()
            for one in found
        ]
        return {"changes": changed, "added": list(self.added), "dropped": list(self.dropped)}


def compare(old: Mapping[str, RuleResult], new: Mapping[str, RuleResult]) -> Comparison:
    changed = [
        Change(rule=rule, before=old[name].verdict)
        for name, rule in new.items()
        if name in old and old[name].verdict != rule.verdict
    ]
    by_word = {word: tuple(each for each in changed if each.word == word) for word in KINDS}
    return Comparison(
        changes={word: found for word, found in by_word.items() if found},
        added=tuple(sorted(new.keys() - old.keys())),
        dropped=tuple(sorted(old.keys() - new.keys())),
    )


Sides = Callable[[Run], tuple[str, str]]  # from a run to its row and its column


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Run]

    @property
    def neighbours(self) -> tuple[tuple[Run, Run], ...]:
        return tuple(
            pair
            for row in self.rows
            for pair in pairwise(
                self.cells[row, column] for column in self.columns if (row, column) in self.cells
            )
        )


def by_release(run: Run) -> tuple[str, str]:
    target = run.results.target
    return target.name.removesuffix(f":{target.version}"), target.version


def by_broker(run: Run) -> tuple[str, str]:
    client = _client(run)
    return f"{client.name} {client.version}", client.facing


def by_version(run: Run) -> tuple[str, str]:
    client = _client(run)
    return f"{client.name} facing {client.facing}", client.version


def _client(run: Run) -> Client:
    if run.results.client is None:
        raise ValueError(f"{run.folder}: no client was tested")
    return run.results.client


def cross(runs: Iterable[Run], sides: Sides) -> Cross:
    cells = {sides(run): run for run in runs}
    return Cross(
        rows=tuple(sorted({row for row, _ in cells}, key=_naturally)),
        columns=tuple(sorted({column for _, column in cells}, key=_naturally)),
        cells=cells,
    )


def _naturally(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which 4.10.0 comes after 4.9.0."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts if part]
