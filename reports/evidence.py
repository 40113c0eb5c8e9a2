"""Evidence: what campaigns saw, one line per rule, check and what was broken on purpose.

``evidence/*.jsonl`` has a file for each kind; ``python -m tools.campaign`` writes them. A line is
an :class:`Entry`. Here is only what reads them, so that an installation can show them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parents[1] / "evidence"

HONEST = "honest"
REFERENCE_MUTANT = "reference-mutant"
ALTERATION = "alteration"
KAFKA_MUTANT = "kafka-mutant"
CLIENT_MUTANT = "client-mutant"
RELEASE = "release"

FILES: Mapping[str, str] = MappingProxyType(
    {
        HONEST: "honest",
        REFERENCE_MUTANT: "reference-mutants",
        ALTERATION: "alterations",
        KAFKA_MUTANT: "kafka-mutants",
        CLIENT_MUTANT: "client-mutants",
        RELEASE: "releases",
    }
)
"""The file of each kind, without its suffix."""

REFERENCE = "reference"
"""What an entry calls the reference broker, where others name a release of Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one check said of one rule when one thing was broken on purpose, or nothing was.

    Attributes:
        kind: one of :data:`FILES`.
        name: the mutant or alteration; the release for ``release``; nothing for ``honest``.
        rule: the rule that was judged.
        check: the check that judged it; empty for a survivor and where a whole run was asked.
        verdict: ``fail``; ``pass`` for ``honest`` and releases without the defect; ``survived``.
        release: of Kafka, or :data:`REFERENCE`.
        date: when it was played.
        reason: the first sentence of what the check said; of a survivor, why nothing kills it.
        seed: the run's; None if it is not known.
        evidence: what a pass rests on, counted.
        hash: of the check's code, its shape, the rule's text and what was broken, by part.
    """

    kind: str
    rule: str
    verdict: str
    release: str
    date: str
    check: str = ""
    name: str = ""
    reason: str = ""
    seed: int | None = None
    evidence: Mapping[str, int] = field(default_factory=dict)
    hash: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What no two entries have in common."""
        return (self.kind, self.check, self.name, self.release, self.rule)


def read(folder: Path = FOLDER) -> list[Entry]:
    """Return all entries, kind by kind."""
    return [entry for kind in FILES for entry in read_kind(kind, folder)]


def read_kind(kind: str, folder: Path = FOLDER) -> Iterator[Entry]:
    """Yield the entries of one kind; none if there is no file."""
    file = folder / f"{FILES[kind]}.jsonl"
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            yield Entry(kind=kind, **json.loads(line))
