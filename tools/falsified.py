"""The record of what was seen failing: which lie made which check report which rule broken."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from shareproof.runner.inventory import Check, read_checks

RECORD = Path(__file__).parents[1] / "evidence" / "falsified.json"

Pair = tuple[str, str]
"""A check and one of its rules."""


def function_of(nodeid: str) -> str:
    """Return the check of a node id, which is its test function whatever its parameters are."""
    return nodeid.partition("[")[0]


@dataclass(slots=True)
class Matrix:
    """Which alterations made which check report which rule broken."""

    kills: dict[Pair, set[str]] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Matrix:
        """Read the record, empty when there is none."""
        if not RECORD.exists():
            return cls()
        raw = json.loads(RECORD.read_text(encoding="utf-8"))["checks"]
        return cls(
            {
                (check, rule): set(names)
                for check, rules in raw.items()
                for rule, names in rules.items()
            }
        )

    def add(self, nodeid: str, rule: str, name: str) -> bool:
        """Take over one failure; tell whether the check was never seen rejecting this before."""
        killers = self.kills.setdefault((function_of(nodeid), rule), set())
        new = not killers
        killers.add(name)
        return new

    def pending(self, checks: Iterable[Check]) -> list[Check]:
        """Return the checks that have a rule they were not yet seen rejecting."""
        return [c for c in checks if any((c.id, rule) not in self.kills for rule in c.rules)]

    def save(self) -> None:
        """Write the record, without checks and rules that no longer exist.

        What another sweep has written meanwhile is kept.
        """
        live = {(check.id, rule) for check in read_checks(drafts=True) for rule in check.rules}
        with RECORD.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for pair, names in Matrix.load().kills.items():
                self.kills.setdefault(pair, names)
            self._write(live)

    def _write(self, live: set[Pair]) -> None:
        checks: dict[str, dict[str, list[str]]] = {}
        for (check, rule), names in sorted(self.kills.items()):
            if (check, rule) in live:
                checks.setdefault(check, {})[rule] = sorted(names)
        text = json.dumps({"checks": checks}, indent=1)
        RECORD.write_text(f"{text}\n", encoding="utf-8")
