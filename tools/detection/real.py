"""The mutants of real Kafka on the page: what killed them, and why nothing kills the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fixtures.mutants import MUTANTS as REAL
from fixtures.targets import DEFAULT_TARGET
from tools import real_mutants

__all__ = ["REAL", "TITLE", "hunt", "known", "section"]

TITLE = "## Mutants of real Kafka"


def known() -> dict[str, dict[str, Any]]:
    """Return what is recorded: ``mutants`` that are dead, and why ``survivors`` are not."""
    if not real_mutants.RECORD.exists():
        return {"mutants": {}, "survivors": {}}
    record: dict[str, dict[str, Any]] = json.loads(real_mutants.RECORD.read_text(encoding="utf-8"))
    return record


def section() -> str:
    """Return the page's section."""
    return "\n".join([f"{TITLE}\n", *_lines(known())])


def _lines(record: dict[str, dict[str, Any]]) -> Iterator[str]:
    dead, survivors = record["mutants"], record["survivors"]
    yield (
        f"`{DEFAULT_TARGET}:NAME` is Apache Kafka with one method changed while it loads. Of "
        f"{len(REAL)} such mutants,\n{len(dead)} are recorded dead. "
        "`python -m tools.detection --real` hunts them; each takes a start of Kafka or more.\n"
    )
    yield "| mutant | what is wrong | rule | killed by |\n|---|---|---|---|"
    for name, mutant in REAL.items():
        kill = dead.get(name)
        rule, by = (kill["rule"], f"`{kill['check'].rpartition('/')[2]}`") if kill else ("", "")
        if not kill:
            by = f"alive: {survivors.get(name) or 'not hunted, or not explained yet'}"
        yield f"| `{name}` | {mutant.sentence} | {rule} | {by} |"
    yield ""


def hunt(names: Sequence[str], seed: int, tell: Callable[[str], None]) -> list[str]:
    """Hunt mutants and record what kills them; return those alive without an explanation.

    The release itself is certified last, by all that killed; what fails there has killed nothing.
    """
    for name in names:
        kill = real_mutants.hunt(name, seed)
        real_mutants.record(name, kill)
        tell(
            f"{name}: {kill.rule} by {kill.check.rpartition('/')[2]}" if kill else f"{name}: alive"
        )
    for name in real_mutants.control(seed):
        tell(f"{name}: what killed it fails on the release itself, too")
    record = known()
    return [n for n in names if n not in record["mutants"] and not record["survivors"].get(n)]
