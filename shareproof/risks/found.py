"""Which risks a cluster has: findings that apply to its release, and configurations of its own."""

from dataclasses import dataclass

from shareproof.risks.facts import Facts
from shareproof.risks.table import look
from spec.findings import RANKS, Risk, load_findings, load_risks
from spec.ledger import Ledger, covers
from spec.releases import line_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A risk of a cluster; ``seen`` is what makes it so, nothing for a defect of every cluster.

    ``avoidable``: this cluster has it, unlike others, and a change of it helps.
    """

    risk: Risk
    seen: tuple[str, ...]
    avoidable: bool


def risks_of(facts: Facts, ledger: Ledger) -> tuple[Found, ...]:
    """Return the risks of a cluster, the worst first, those that can be avoided before others."""
    seen = look(facts)
    risks = [risk for risk in load_risks().values() if risk.id in seen]
    for finding in load_findings().values():
        ranges = [known.versions for known in ledger.expected if known.finding == finding.id]
        ranges += [] if finding.versions is None else [finding.versions]
        there = not finding.where or finding.where in seen
        if there and any(_has(versions, facts.release) for versions in ranges):
            risks.append(finding)
    found = []
    for risk in risks:
        values = seen.get(risk.where or risk.id, ())
        found.append(Found(risk=risk, seen=values, avoidable=bool(values and risk.avoid)))
    return tuple(sorted(found, key=lambda one: (RANKS.index(one.risk.rank), not one.avoidable)))


def _has(versions: str, release: str) -> bool:
    """Tell whether a release has what a range of them has; a line has what any of it has."""
    if release.count(".") != 1:
        return covers(versions, release) or not release
    return any(covers(versions, one) for one in (f"{release}.0", line_of(release).default))
