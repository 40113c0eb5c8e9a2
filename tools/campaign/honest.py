"""Checks that no reference broker can satisfy: what they accept on real Kafka."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from fixtures.targets import DEFAULT_TARGET
from reports import evidence
from reports.evidence import Entry
from reports.reading import read
from reports.results import Results
from shareproof.runner.scheduling import scope
from spec.verdict import Verdict
from tools.campaign import runs
from tools.campaign.asked import Asked
from tools.campaign.hunting import checks
from tools.campaign.record import Keeper


def accepted(results: Results, wanted: Collection[str]) -> list[Entry]:
    """Return entries of the checks all of whose rules held; what a pass rests on is the rule's."""
    verdicts: dict[str, set[str]] = defaultdict(set)
    for one in runs.seen(results):
        verdicts[one.check].add(one.verdict)
    name = results.target.name
    altered = _alteration(name) if "@" in name else ""
    rests_on = {rule.id: dict(rule.evidence) for rule in results.requirements}
    found = {
        (one.check, one.rule): Entry(
            kind=evidence.HONEST,
            name=altered,
            rule=one.rule,
            check=one.check,
            verdict="pass",
            release=results.target.version,
            date="",
            seed=results.run.seed,
            evidence=rests_on[one.rule],
        )
        for one in runs.seen(results)
        if one.check in wanted and verdicts[one.check] == {Verdict.PASS.value}
    }
    return list(found.values())


def _alteration(target: str) -> str:
    """Return the name of the alteration in front of a target, or of an alteration itself."""
    return target.partition("@")[0].removeprefix("altered:")


def beyond(known: Iterable[Entry]) -> list[str]:
    """Return the trusted checks that no reference broker was seen satisfying."""
    seen = {
        one.check
        for one in known
        if one.kind == evidence.HONEST and one.release == evidence.REFERENCE
    }
    return [name for name, check in checks().items() if not check.draft and name not in seen]


def take(folders: Iterable[Path], keeper: Keeper) -> list[str]:
    """Keep what certifications of honest brokers accepted; return a line about each."""
    lines = []
    for folder in folders:
        found = accepted(read(folder), beyond(keeper.known))
        keeper.add(found)
        lines.append(f"{folder}: {len({one.check for one in found})} checks accept")
    return lines


def replay(entries: Sequence[Entry], asked: Asked) -> list[Entry]:
    """Play checks on real Kafka again; return the entries of those that did not pass."""
    groups: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for one in entries:
        if one.check in checks():
            groups[one.name, scope(one.check)][one.check] = None
    before = len(asked.keeper.new)
    for (name, stage), some in groups.items():
        altered = _alteration(name)
        target = f"altered:{altered}@{DEFAULT_TARGET}" if altered else DEFAULT_TARGET
        asked.keeper.add(accepted(runs.results(target, list(some), brokers=3), some))
        asked.say(f"{stage}: {len(some)} checks on {target}")
    new = asked.keeper.new[before:]
    seen, keys = {(one.check, one.rule) for one in new}, {one.key for one in new}
    lost = [one for one in entries if (one.check, one.rule) not in seen]
    asked.keeper.drop([one for one in entries if one not in lost and one.key not in keys])
    return lost
