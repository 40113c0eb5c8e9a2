"""What killed a mutant of real Kafka."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A check, and the rule that it reported broken."""

    rule: str
    check: str
