"""Runs beside each other: what changed between two, and tables of who by what."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reports.results import Client, RuleResult, Word
from reports.site.archive import Run

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
    """A rule whose verdict changed."""

    rule: RuleResult
    before: Word

    @property
    def word(self) -> Word:
        return self.rule.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Changes by :data:`KINDS`, and rules that only one of the two runs judged."""

    changes: Mapping[str, tuple[Change, ...]]
    added: tuple[str, ...]
    dropped: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the changes in numbers, such as ``2 newly failing, 1 newly passing``."""
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
    """A table. ``cells`` has a run by row and column, where there is one."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Run]

    @property
    def neighbours(self) -> tuple[tuple[Run, Run], ...]:
        """Each run with the one in the column before it, row by row."""
        return tuple(
            pair
            for row in self.rows
            for pair in pairwise(
                self.cells[row, column] for column in self.columns if (row, column) in self.cells
            )
        )


def by_release(run: Run) -> tuple[str, str]:
    """Return the implementation of a broker, and the release whose rules it was asked for."""
    target = run.results.target
    return target.name.removesuffix(f":{target.version}"), target.version


def by_broker(run: Run) -> tuple[str, str]:
    """Return a client library with its version, and the broker that it faced."""
    client = _client(run)
    return f"{client.name} {client.version}", client.facing


def by_version(run: Run) -> tuple[str, str]:
    """Return a client library with the broker that it faced, and its version."""
    client = _client(run)
    return f"{client.name} facing {client.facing}", client.version


def _client(run: Run) -> Client:
    if run.results.client is None:
        raise ValueError(f"{run.folder}: no client was tested")
    return run.results.client


def cross(runs: Iterable[Run], sides: Sides) -> Cross:
    """Return the table of some runs; what comes later wins a cell that two could have."""
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
