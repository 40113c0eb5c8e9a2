"""Both sides of every check, as data: an honest broker that it accepts, broken ones it rejects.

Kept in ``evidence/detection.json``; ``python -m tools.detection --record`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fixtures.reference.mutants import MUTANTS

FILE = Path(__file__).parents[2] / "evidence" / "detection.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A run against an honest target in which every rule of a check was put to the test and held.

    ``evidence`` counts by rule what that rests on, all cases of the check together.
    """

    target: str
    seed: int
    evidence: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A run against a broken target in which a check reported one of its rules broken.

    The same check accepts the honest target by the same seed.
    """

    target: str
    seed: int
    rule: str
    sentence: str

    @property
    def mutant(self) -> str:
        """The mutant of the reference broker that was rejected, or nothing for a lie."""
        kind, _, name = self.target.partition(":")
        return name if kind == "reference" else ""

    @property
    def kills(self) -> bool:
        """Whether the rule is one of those that the mutant breaks."""
        return self.mutant in MUTANTS and self.rule in MUTANTS[self.mutant].rules


@dataclass(slots=True)
class Record:
    """What is known of each check, by its id."""

    accepts: dict[str, Acceptance] = field(default_factory=dict)
    rejects: dict[str, dict[str, Rejection]] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path = FILE) -> Record:
        """Read a record; an empty one when there is none."""
        record = cls()
        if not file.exists():
            return record
        raw: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["checks"]
        for check, sides in raw.items():
            if accepts := sides.get("accepts"):
                record.accepts[check] = Acceptance(**accepts)
            for rejection in sides.get("rejects", ()):
                record.reject(check, Rejection(**rejection))
        return record

    def reject(self, check: str, rejection: Rejection) -> None:
        """Take over that a check rejected something."""
        self.rejects.setdefault(check, {})[rejection.target] = rejection

    def killers(self, mutant: str) -> Iterator[tuple[str, Rejection]]:
        """Yield the checks that killed a mutant by a rule that it breaks, its first rule first."""
        target, rules = f"reference:{mutant}", MUTANTS[mutant].rules
        killed = {
            check: found[target]
            for check, found in self.rejects.items()
            if target in found and found[target].kills
        }
        yield from sorted(killed.items(), key=lambda kill: (rules.index(kill[1].rule), kill[0]))

    def noticed(self, check: str) -> list[Rejection]:
        """Return what a check rejected: mutants that it killed, other mutants, lies."""
        found = self.rejects.get(check, {}).values()
        return sorted(found, key=lambda one: (not one.kills, not one.mutant, one.target))

    def without(self, checks: Collection[str], targets: Collection[str]) -> Record:
        """Return the record of these checks and targets only; what is gone is no evidence."""
        return Record(
            {check: side for check, side in self.accepts.items() if check in checks},
            {
                check: kept
                for check, found in self.rejects.items()
                if check in checks
                and (kept := {name: one for name, one in found.items() if name in targets})
            },
        )

    def to_plain(self) -> dict[str, Any]:
        """Return what is written to the file."""
        return {
            "checks": {
                check: {
                    **({"accepts": asdict(self.accepts[check])} if check in self.accepts else {}),
                    "rejects": [asdict(one) for one in self.noticed(check)],
                }
                for check in sorted(self.accepts.keys() | self.rejects.keys())
            }
        }

    def save(self, file: Path = FILE) -> None:
        """Write the record."""
        text = json.dumps(self.to_plain(), indent=1, ensure_ascii=False)
        file.write_text(f"{text}\n", encoding="utf-8")


def merged(records: Iterable[Record]) -> Record:
    """Return records in one; what comes later wins."""
    whole = Record()
    for record in records:
        whole.accepts |= record.accepts
        for check, rejections in record.rejects.items():
            for rejection in rejections.values():
                whole.reject(check, rejection)
    return whole
