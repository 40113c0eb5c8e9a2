"""Which risks a cluster has: findings that apply to its release, and configurations of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.html import PAGE, filled
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


def lines(facts: Facts, found: Sequence[Found]) -> Iterator[str]:
    yield _cluster(facts)
    for rank, risks in groupby(found, key=lambda one: one.risk.rank):
        yield f"\n{rank}"
        for one in risks:
            risk, tried = one.risk, "" if one.risk.tried or not one.risk.seen else " (not tried)"
            yield f"  {risk.id}: {risk.what} ({risk.rules})"
            yield from (f"      seen   {value}" for value in one.seen)
            yield from [f"      do     {risk.avoid}{tried}"] if risk.avoid else ()
            yield from [f"      tried  {risk.tried}"] if risk.tried else ()
    yield ""
    yield from (f"could not be read: {one}" for one in facts.unread)
    yield _counted(found)


def page(facts: Facts, found: Sequence[Found]) -> str:
    style = (PAGE / "report.css").read_text(encoding="utf-8")
    said = {"cluster": _cluster(facts), "counted": _counted(found)}
    return filled("risks.html.jinja", facts=facts, found=found, style=style, **said)


def _cluster(facts: Facts) -> str:
    release = facts.release or "an unknown release"
    patch = ", of which no patch release can be told: --release" if release.count(".") == 1 else ""
    level = facts.levels.get("share.version")
    share = f", share.version {level}" if level is not None else ""
    counts = f"brokers read: {len(facts.brokers)}, share groups: {len(facts.groups)}"
    return f"{facts.target}: Kafka {release}{patch}{share}; {counts}"


def _counted(found: Sequence[Found]) -> str:
    own = sum(one.avoidable for one in found)
    defects = sum(bool(one.risk.seen) for one in found)
    return f"{len(found)} risks, {defects} of them defects of the release; avoidable here: {own}"
