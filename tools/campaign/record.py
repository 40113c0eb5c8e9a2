"""Writes evidence; :mod:`reports.evidence` says what a line means, and reads it."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from reports.evidence import FILES, FOLDER, Entry, read, read_kind
from tools.campaign import hashing

_ORDER = (
    "rule", "check", "name", "release", "verdict", "reason", "seed", "date", "evidence", "hash"
)  # fmt: skip
LONGEST = 200
"""Characters of a reason that are kept."""

REHASHED = "rehashed"
"""The file that says when hashes were renewed without playing again, and why."""


class Keeper:
    """What is known, and what a campaign adds to it; written at once if it is to be recorded.

    A campaign may be cut short, and another one may run meanwhile: nothing of either is lost.
    """

    def __init__(self, *, record: bool, folder: Path = FOLDER) -> None:
        """Read what is known."""
        self.known = read(folder)
        self.new: list[Entry] = []
        self._record, self._folder = record, folder

    def add(self, entries: Iterable[Entry]) -> None:
        """Take over what was just seen, with today's date and the hashes of today's code."""
        made = [
            replace(one, date=today(), reason=first_sentence(one.reason), hash=hashing.hashes(one))
            for one in entries
        ]
        self.new += made
        self.known = _replaced(made, self.known)
        if self._record:
            for kind in {one.kind for one in made}:
                mine = [one for one in made if one.kind == kind]
                change(kind, partial(_replaced, mine), self._folder)

    def drop(self, entries: Iterable[Entry]) -> None:
        """Forget what was not seen again."""
        gone = {one.key for one in entries}
        self.known = [one for one in self.known if one.key not in gone]
        if self._record:
            for kind in {key[0] for key in gone}:
                change(kind, lambda old: [e for e in old if e.key not in gone], self._folder)

    def prune(self) -> None:
        """Forget entries whose check, rule, mutant or alteration is no more."""
        self.drop([one for one in self.known if hashing.gone(one)])


def today() -> str:
    """Return the date of new entries."""
    return datetime.now(UTC).date().isoformat()


def first_sentence(reason: str) -> str:
    """Return what of a reason is kept: its first sentence, and not all of a long one."""
    flat = " ".join(reason.split())
    sentence = re.split(r"(?<=[a-z0-9)\]'][.;]) ", flat, maxsplit=1)[0]
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…"


def rehash(because: str, only: Callable[[Entry], bool], folder: Path = FOLDER) -> dict[str, int]:
    """Take today's code for what stale entries were played with, and write down why.

    Returns how many entries there were by the part of them that changed; entries of which only
    names changed count as ``names``.
    """
    counts: dict[str, int] = {}
    for kind in FILES:
        renewed: dict[tuple[str, ...], Entry] = {}
        for one, parts in hashing.stale(read_kind(kind, folder)):
            if only(one) and not hashing.gone(one):
                renewed[one.key] = replace(one, hash=hashing.hashes(one))
                for part in parts:
                    counts[part] = counts.get(part, 0) + 1
        if renewed:
            change(kind, partial(_replaced, list(renewed.values())), folder)
    if counts:
        line = {"date": today(), "because": because, "entries": dict(sorted(counts.items()))}
        with (folder / f"{REHASHED}.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line, ensure_ascii=False) + "\n")
    return counts


def change(
    kind: str, changed: Callable[[list[Entry]], Iterable[Entry]], folder: Path = FOLDER
) -> None:
    """Replace the entries of a kind by what a function makes of them, under a lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write(kind, changed(list(read_kind(kind, folder))), folder)


def write(kind: str, entries: Iterable[Entry], folder: Path = FOLDER) -> None:
    """Write all entries of a kind, one on a line, in the order of checks and mutants."""
    lines = [_line(entry) for entry in sorted(entries, key=lambda entry: entry.key)]
    (folder / f"{FILES[kind]}.jsonl").write_text("".join(lines), encoding="utf-8")


def _line(entry: Entry) -> str:
    raw = asdict(entry)
    kept = {name: raw[name] for name in _ORDER if raw[name] not in (None, "", {})}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def _replaced(new: Iterable[Entry], old: Iterable[Entry]) -> list[Entry]:
    return list(({one.key: one for one in old} | {one.key: one for one in new}).values())
