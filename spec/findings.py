"""Findings, defects of published releases with a page in ``docs/findings``, and other risks.

``findings.toml`` is the one place that ranks findings and says where they apply; which rules a
finding breaks on which release is in the ledgers. ``risks.toml`` has configurations that users
regret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from spec.tables import SpecError, parse, record

RANKS = ("loss", "duplicate", "stall", "overload", "wrong response", "cosmetic")
"""What users see at worst, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """A finding, or a configuration that users regret; ``findings.toml`` tells the fields."""

    id: str
    rank: str
    what: str
    rules: str
    seen: str = ""
    components: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    demoted: str = ""
    versions: str | None = None
    where: str = ""
    avoid: str = ""
    tried: str = ""

    @property
    def number(self) -> str:
        """That of a finding, such as ``051``; the id of any other risk."""
        first = self.id.partition("-")[0]
        return first if first.isdigit() else self.id


@cache
def load_risks(file: str = "risks.toml") -> Mapping[str, Risk]:
    """Return what a file of this package has by id, the worst first; raises SpecError."""
    by_rank = parse((resources.files("spec") / file).read_text(encoding="utf-8"), file)
    if strange := by_rank.keys() - set(RANKS):
        raise SpecError(f"{file}: {min(strange)} is no rank; there are {', '.join(RANKS)}")
    return MappingProxyType(
        {
            name: record(Risk, raw, f"{file}: {name}", id=name, rank=rank)
            for rank in RANKS
            for name, raw in by_rank.get(rank, {}).items()
        }
    )


def load_findings() -> Mapping[str, Risk]:
    """Return the findings by the names of their pages, the worst first."""
    return load_risks("findings.toml")


def rank_of(page: str) -> str:
    """Return the rank of a finding by its page; empty for a page that is none."""
    finding = load_findings().get(page)
    return finding.rank if finding else ""
