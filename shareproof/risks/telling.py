"""The risks of a cluster as lines and as a page."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from reports.html import PAGE, filled
from shareproof.risks.facts import Facts
from shareproof.risks.found import Found


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
