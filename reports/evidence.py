"""Evidence: which checks noticed what was broken on purpose, as campaigns last played it.

``evidence/noticed.jsonl`` has a line for each thing that was broken, on each release, with the date
and the commit of its last play, and what each check said. ``python -m tools.campaign`` writes it.
Here is only what reads it, so that an installation can show it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "evidence"
FILE = "noticed.jsonl"

REFERENCE_MUTANT = "reference-mutant"
ALTERATION = "alteration"
KAFKA_MUTANT = "kafka-mutant"
CLIENT_MUTANT = "client-mutant"
RELEASE = "release"
FIELD = "field"  # A leaf or an error of a response, made wrong in front of the reference broker.

REFERENCE = "reference"
"""What an entry calls the reference broker, where others name a release of Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    kind: str  # One of the constants above.
    rule: str  # The rule that was judged.
    release: str  # Of Kafka, or :data:`REFERENCE`.
    verdict: str = "fail"  # ``fail``; ``pass`` for releases without the defect; ``survived``.
    date: str = ""  # When it was played.
    commit: str = ""  # Of the suite that played it; empty where that is not known.
    # The check that judged it; empty for a survivor and where a whole run was asked.
    check: str = ""
    name: str = ""  # The mutant or alteration; the release for ``release``.
    # The first sentence of what the check said; of a survivor, why nothing kills it.
    reason: str = ""
    seed: int | None = None  # The run's; None if it is not known.

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return (self.kind, self.name, self.release, self.check, self.rule)


def read(folder: Path = FOLDER) -> list[Entry]:
    file = folder / FILE
    entries = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        line = json.loads(text)
        entries += [Entry(**line, **one) for one in line.pop("seen")]
    return entries
