"""Writes evidence; :mod:`reports.evidence` says what a line means, and reads it."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from reports.evidence import FILES, FOLDER, Entry, read_kind

_ORDER = (
    "rule",
    "check",
    "name",
    "release",
    "verdict",
    "reason",
    "seed",
    "date",
    "evidence",
    "hash",
)


def today() -> str:
    """Return the date of new entries."""
    return datetime.now(UTC).date().isoformat()


def first_sentence(reason: str) -> str:
    """Return what of a reason is kept: its first sentence, on one line, at most 200 characters."""
    flat = " ".join(reason.split())
    sentence = re.split(r"(?<=[a-z0-9)\]'][.;]) ", flat, maxsplit=1)[0]
    return sentence if len(sentence) <= 200 else f"{sentence[:199]}…"


def write(kind: str, entries: Iterable[Entry], folder: Path = FOLDER) -> None:
    """Write all entries of a kind, one on a line, in the order of checks and rules."""
    lines = [_line(entry) for entry in sorted(entries, key=lambda entry: entry.key)]
    (folder / f"{FILES[kind]}.jsonl").write_text("".join(lines), encoding="utf-8")


def _line(entry: Entry) -> str:
    raw = asdict(entry)
    kept = {name: raw[name] for name in _ORDER if raw[name] not in (None, "", {})}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def change(
    kind: str, changed: Callable[[list[Entry]], Iterable[Entry]], folder: Path = FOLDER
) -> None:
    """Replace the entries of a kind by what a function makes of them.

    A campaign writes what it sees at once, and another one may run meanwhile: a lock keeps both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write(kind, changed(list(read_kind(kind, folder))), folder)


def add(entries: Iterable[Entry], folder: Path = FOLDER) -> None:
    """Take over new entries; each replaces the one with its key, if there is one."""
    by_kind: dict[str, dict[tuple[str, ...], Entry]] = {}
    for entry in entries:
        by_kind.setdefault(entry.kind, {})[entry.key] = entry
    for kind, new in by_kind.items():
        change(kind, partial(_replaced, new), folder)


def _replaced(new: dict[tuple[str, ...], Entry], old: Iterable[Entry]) -> Iterable[Entry]:
    return ({one.key: one for one in old} | new).values()
