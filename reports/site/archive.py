"""The runs that a site is made of, found below the paths that were given.

A run is a results.json with what lies beside it. Who was tested is the run's *subject*: the client
library where one was tested, else the target. Runs of one subject, in the order they were started,
are its history.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from reports.headlines import Told
from reports.reader import read
from reports.results import Results, RuleResult

LONGEST_NAME = 100
"""Characters of a run's name in addresses; two are in that of a change, and files have limits."""

MOST_TOLD = 12  # other runs that a rule's history names


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the archive."""

    slug: str  # Its name in addresses; no two runs of an archive have the same.
    folder: Path  # Where its files are.
    results: Results  # What it found.

    @property
    def kind(self) -> str:
        """What was judged: a ``client``, a ``history`` of a broker's work, or a ``broker``."""
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
        """When it was started; ISO 8601, UTC."""
        return self.results.run.started

    @cached_property
    def rules(self) -> Mapping[str, RuleResult]:
        return judged(self.results)


def judged(results: Results) -> dict[str, RuleResult]:
    """Return the rules that a run judged, by id; those that no check reaches are left out."""
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
        """What was found and is not among the runs, and why: a sentence for each file."""
        return (*self.unreadable, *self.doubles)

    @property
    def histories(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs of each subject, oldest first; the subject that was tested last comes first."""
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
        """The newest runs by a name of their subject that fits an address and does not change."""
        taken: set[str] = set()
        return {_free(run.subject, taken): run for run in self.newest}

    @property
    def changes(self) -> tuple[tuple[Run, Run], ...]:
        """Each run with the one before it of the same subject, newest first."""
        pairs = (pair for runs in self.histories.values() for pair in pairwise(runs))
        return tuple(sorted(pairs, key=lambda pair: pair[1].started, reverse=True))

    def told(self, run: Run, address: Callable[[Run], str]) -> Mapping[str, list[Told]]:
        """Return what the other runs of a run's subject said of each of its rules, newest first.

        ``address`` gives where the page of another run is, seen from the page of this one.
        """
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
    """Return the archive of all runs at and below some paths.

    Raises:
        ValueError: a path is not there, or has no run at or below it that can be read.
    """
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
    """Return a name as it may stand in an address, with a number if it is taken; take it."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-LONGEST_NAME:].strip("-.")
    slug, number = plain, 1
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    taken.add(slug)
    return slug
