"""Writes evidence; :mod:`reports.evidence` says what a line means, and reads it."""

import fcntl
import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from reports.evidence import FILE, FOLDER, REFERENCE, Entry, read
from spec.plain import write_atomically
from spec.verdict import Observation

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
        """Take over what was just seen, with today's date and commit."""
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
    """Return the commit of this checkout; nothing where it has changes, or is none."""
    words = ("git", "-C", str(FOLDER.parent), "describe", "--always", "--dirty", "--exclude", "*")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = done.stdout.strip()
    return "" if found.endswith("-dirty") else found


def first_sentence(reason: str) -> str:
    """Return what of a reason is kept: its first sentence, and not all of a long one."""
    flat = " ".join(reason.split())
    sentence = re.split(r"(?<=[a-z0-9)\]'][.;]) ", flat, maxsplit=1)[0]
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…"


def write(entries: Iterable[Entry], folder: Path = FOLDER) -> None:
    """Write all entries: a line for each thing that was broken, in the order of their keys."""
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
