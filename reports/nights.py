"""Nights of chaos runs: what ``shareproof night`` keeps in night.json, and what its page says.

Pure functions over what was kept; they decide words and order, the template only sets them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.headlines import cases
from reports.results import Results
from reports.verdicts import BROKEN, FAULT
from spec.plain import from_plain

RECORD = "night.json"
RANKS: Mapping[str, tuple[str, ...]] = {
    "loss": ("INV-05", "INV-06", "INV-37"),
    "duplicate": (
        *("INV-01", "INV-02", "INV-03", "INV-14", "INV-18", "INV-21", "INV-35"),
        *("INV-36", "INV-41"),
    ),
    "stall": ("INV-23", "INV-24", "INV-25", "INV-26"),
}
"""What users see of a broken invariant, worst first, in the ranks of docs/findings."""
WRONG = "wrong response"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    rule: str
    reason: str
    known: bool = False
    finding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    fault: str
    blocked_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    faults: str
    reliability: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    seed: int
    run: str  # Its directory, below that of the night.
    faults: tuple[str, ...]  # The kinds of fault that its schedule was drawn from.
    began: str
    seconds: float
    exit_code: int
    trouble: tuple[str, ...] = ()  # What went wrong that no fault explains.
    failures: tuple[Failure, ...] = ()
    exercised: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    hit: tuple[str, ...] = ()
    missed: tuple[Missed, ...] = ()
    judged: float = 1.0  # The smallest share of cases that an invariant judged.
    # For each replay of its schedule the rules that it broke.
    replays: tuple[tuple[str, ...], ...] = ()
    shrunk: Shrunk | None = None

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(one.rule for one in self.failures if not one.known)

    def fails(self, rule: str) -> tuple[int, int]:
        return 1 + sum(rule in broken for broken in self.replays), 1 + len(self.replays)


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    name: str
    target: str
    seed: int
    minutes: float
    hours: float
    overlap: str
    rate: float
    began: str
    ended: str = ""
    spent: float = 0.0
    trouble: str = ""
    plays: tuple[Play, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if a rule was broken that no ledger has, 3 if a run ended by a fault of ours, or 0."""
        if any(play.broken for play in self.plays):
            return BROKEN
        ours = self.trouble or not self.plays or any(one.exit_code == FAULT for one in self.plays)
        return FAULT if ours else max(play.exit_code for play in self.plays)

    @property
    def sentence(self) -> str:
        new = [one for one in self.broken if not one.known]
        ours = sum(play.exit_code == FAULT for play in self.plays)
        plural = "" if len(self.plays) == 1 else "s"
        told = [
            f"{len(self.plays)} run{plural} on {self.target} from seed {self.seed} on",
            f"broken and new: {', '.join(dict.fromkeys(one.rule for one in new))}"
            if new
            else "nothing new broke",
        ]
        told += [f"{ours} ended by a fault of the suite or its machine"] if ours else []
        told += [self.trouble] if self.trouble else []
        return "; ".join(told) + ("" if self.ended else "; not at its end yet") + "."

    def replay(self, one: Broken, archive: Path) -> str:
        play = one.smallest
        file = play.shrunk.file if play.shrunk and play.shrunk.file else f"{play.run}/schedule.json"
        schedule = shlex.quote(str(archive / self.name / file))
        return f"shareproof chaos --target {self.target} --rate {self.rate:g} --schedule {schedule}"

    def summary(self) -> dict[str, Any]:
        return {
            "night": self.name,
            "sentence": self.sentence,
            "exit_code": self.exit_code,
            "runs": len(self.plays),
            "not_exercised": list(self.idle),
            "broken": [
                {
                    "rule": one.rule,
                    "rank": one.rank,
                    "new": not one.known,
                    "finding": one.finding,
                    "confirmed": one.confirmed,
                    "fails": [one.failed, one.played],
                    "reason": one.reason,
                    "seeds": [play.seed for play in one.runs],
                }
                for one in self.broken
            ],
        }

    @property
    def idle(self) -> tuple[str, ...]:
        exercised = {rule for play in self.plays for rule in play.exercised}
        return tuple(sorted({rule for play in self.plays for rule in play.idle} - exercised))

    @property
    def broken(self) -> tuple[Broken, ...]:
        found: dict[tuple[str, str], list[tuple[Play, Failure]]] = {}
        for play in self.plays:
            for failure in play.failures:
                found.setdefault((failure.rule, failure.finding), []).append((play, failure))
        kinds = [_broken(*key, some) for key, some in found.items()]
        order = [*RANKS, WRONG]
        return tuple(sorted(kinds, key=lambda one: (one.known, order.index(one.rank), one.rule)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    rule: str
    rank: str
    known: bool
    finding: str
    reason: str
    runs: tuple[Play, ...]
    failed: int
    played: int
    smallest: Play

    @property
    def replayed(self) -> bool:
        return any(play.replays for play in self.runs)

    @property
    def confirmed(self) -> bool:
        return self.failed > len(self.runs)

    @property
    def verdict(self) -> str:
        often = f"fails {self.failed} of {self.played}"
        if self.known:
            return self.finding or "known"
        return f"new, {often}" if self.replayed else "new, not replayed"


def _broken(rule: str, finding: str, some: Sequence[tuple[Play, Failure]]) -> Broken:
    plays = tuple(play for play, _ in some)
    counts = [play.fails(rule) for play in plays]
    return Broken(
        rule=rule,
        rank=rank_of(rule),
        known=some[0][1].known,
        finding=finding,
        reason=some[0][1].reason,
        runs=plays,
        failed=sum(failed for failed, _ in counts),
        played=sum(played for _, played in counts),
        smallest=min(plays, key=lambda play: (play.shrunk is None, len(play.hit))),
    )


def rank_of(rule: str) -> str:
    return next((rank for rank, rules in RANKS.items() if rule in rules), WRONG)


def changes(before: Night, now: Night) -> tuple[str, ...]:
    told = []
    for what, old, new in (
        ("broken", _names(before.broken), _names(now.broken)),
        ("not exercised", set(before.idle), set(now.idle)),
    ):
        told += [f"{rule}: newly {what}" for rule in sorted(new - old)]
        told += [f"{rule}: no longer {what}" for rule in sorted(old - new)]
    return tuple(told)


def _names(some: Iterable[Broken]) -> set[str]:
    return {f"{one.rule} ({one.finding or 'new'})" for one in some}


def find(*archives: Path) -> tuple[tuple[Path, Night], ...]:
    found = []
    for file in {file for archive in archives for file in archive.rglob(RECORD)}:
        with suppress(ValueError):
            found.append((file.parent, read(file.parent)))
    return tuple(sorted(found, key=lambda one: one[1].began))


def read(folder: Path) -> Night:
    """Read what was kept of a night; raises ValueError."""
    try:
        return from_plain(Night, json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder / RECORD}: no record of a night: {error}") from None


def before_each(nights: Sequence[Night]) -> dict[str, Night]:
    found: dict[str, list[Night]] = {}
    for night in nights:
        found.setdefault(night.target, []).append(night)
    return {new.name: old for some in found.values() for old, new in pairwise(some)}


def play_of(results: Results, play: Play) -> Play:
    chaos = results.chaos or ()
    faults = [fault for run in chaos for fault in run.faults]
    hit = {fault.fault for fault in faults if fault.hit}
    missed = {one.fault: one.blocked_by for one in faults if one.fault not in hit}
    judged = [case.share for run in chaos for case in cases(results, Path(run.run).name)]
    by_verdict: dict[str, list[str]] = {}
    for rule in results.rules:
        by_verdict.setdefault(rule.verdict, []).append(rule.id)
    return replace(
        play,
        exit_code=results.run.exit_code,
        trouble=results.run.errors,
        failures=tuple(
            Failure(
                rule=rule.id,
                reason=rule.reason,
                known=rule.expected,
                finding=next((one.finding or one.bug for one in rule.known_failures), "")
                if rule.expected
                else "",
            )
            for rule in results.rules
            if rule.verdict == "fail"
        ),
        exercised=tuple(by_verdict.get("pass", []) + by_verdict.get("fail", [])),
        idle=tuple(by_verdict.get("vacuous", [])),
        hit=tuple(sorted(hit)),
        missed=tuple(Missed(fault=name, blocked_by=by) for name, by in missed.items()),
        judged=min(judged, default=1.0),
    )
