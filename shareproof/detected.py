"""What the suite was seen to detect, for the site: evidence, beside what there is to detect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fixtures.adapters.model.mutants import MUTANTS as CLIENT_MUTANTS
from fixtures.interface.mutant import Mutant
from fixtures.mutants import MUTANTS as KAFKA_MUTANTS
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as REFERENCE_MUTANTS
from reports import evidence
from reports.evidence import Entry
from reports.site.detecting import Detection, Missed, Noticed

BROKEN: Mapping[str, Mapping[str, Mutant[Any]]] = {
    evidence.REFERENCE_MUTANT: REFERENCE_MUTANTS,
    evidence.KAFKA_MUTANT: KAFKA_MUTANTS,
    evidence.CLIENT_MUTANT: CLIENT_MUTANTS,
}
"""The mutants of each kind, by name."""


def detection(entries: Iterable[Entry] | None = None) -> Detection:
    """Return what was detected of everything that is broken on purpose; by default, on record."""
    found = list(evidence.read() if entries is None else entries)
    noticed = tuple(_noticed(one for one in found if one.verdict == "fail"))
    seen = {(one.kind, one.name) for one in noticed}
    why = {(one.kind, one.name): one.reason for one in found if one.verdict == "survived"}
    missed = tuple(
        Missed(kind=kind, name=name, sentence=one.sentence, why=why.get((kind, name), ""))
        for kind, mutants in BROKEN.items()
        for name, one in mutants.items()
        if (kind, name) not in seen
    )
    made = {kind: len(mutants) for kind, mutants in BROKEN.items()}
    return Detection(made=made, noticed=noticed, missed=missed)


def _noticed(failed: Iterable[Entry]) -> Iterator[Noticed]:
    """Yield each alteration by each check that noticed it, each mutant by the first of a rule."""
    seen: set[tuple[str, ...]] = set()
    for one in sorted(failed, key=lambda entry: (entry.rule, entry.check, entry.name)):
        by = one.check if one.kind == evidence.ALTERATION else ""
        which = (one.kind, one.name, one.rule, by)
        sentence = _sentence(one)
        if sentence and which not in seen:
            seen.add(which)
            yield Noticed(
                kind=one.kind, name=one.name, sentence=sentence, rule=one.rule, check=one.check
            )


def _sentence(entry: Entry) -> str:
    """Return what is wrong with what an entry broke; nothing if the entry is no detection.

    An alteration counts in front of real Kafka only, and a mutant where the rule is one of its own.
    """
    if entry.kind == evidence.ALTERATION:
        known = entry.release != evidence.REFERENCE and entry.name in ALTERATIONS
        return ALTERATIONS[entry.name].sentence if known else ""
    mutant = BROKEN.get(entry.kind, {}).get(entry.name)
    return mutant.sentence if mutant and entry.rule in mutant.rules else ""
