"""What the suite was seen to detect, for the site: evidence, beside what there is to detect."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from fixtures.adapters.model.mutants import MUTANTS as CLIENT_MUTANTS
from fixtures.interface.mutant import Mutant
from fixtures.mutants import MUTANTS as KAFKA_MUTANTS
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as REFERENCE_MUTANTS
from reports import evidence
from reports.evidence import Entry
from reports.site.detection import Detection, Missed, Noticed
from spec.catalogue import Past, load_track_record

BROKEN: Mapping[str, Mapping[str, Mutant[Any]]] = {
    evidence.REFERENCE_MUTANT: REFERENCE_MUTANTS,
    evidence.KAFKA_MUTANT: KAFKA_MUTANTS,
    evidence.CLIENT_MUTANT: CLIENT_MUTANTS,
}
"""The mutants of each kind, by name."""

EXEMPT: Mapping[str, str] = {
    "CFG-32": "Kafka 4.4.0 breaks it by itself (finding 122), and no reference broker starts again",
    "COO-32": "Kafka 4.4.0 breaks it by itself (finding 018), and no reference broker has replicas",
}
"""Why nothing that breaks just this rule can be built, by rule."""


def detection(entries: Iterable[Entry] | None = None) -> Detection:
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
    # The most telling kill of a rule: of real Kafka before the reference broker.
    kills = {
        rule: _as_noticed(
            min(mine, key=lambda one: (one.release == evidence.REFERENCE, one.kind, one.name))
        )
        for rule, mine in own_kills(found).items()
    }
    waiting = {
        rule: f"not yet played in front of real Kafka: {name}"
        for name, one in ALTERATIONS.items()
        for rule in one.rules
        if rule not in kills
    }
    exempt = {**waiting, **EXEMPT}
    return Detection(made=made, noticed=noticed, missed=missed, kills=kills, exempt=exempt)


def own_kills(entries: Iterable[Entry] | None = None) -> dict[str, list[Entry]]:
    """Return by rule what rightly died by it: each broke this very rule, and was declared to."""
    found: dict[str, list[Entry]] = {}
    for one in evidence.read() if entries is None else entries:
        if one.verdict == "fail" and one.rule in declared(one.kind, one.name):
            found.setdefault(one.rule, []).append(one)
    return found


@cache
def _track_record() -> tuple[Past, ...]:
    return tuple(load_track_record())


def declared(kind: str, name: str) -> tuple[str, ...]:
    if kind == evidence.RELEASE:
        return tuple(one.rule for one in _track_record() if one.seen == name)
    known = ALTERATIONS if kind == evidence.ALTERATION else BROKEN.get(kind, {})
    return known[name].rules if name in known else ()


def _noticed(failed: Iterable[Entry]) -> Iterator[Noticed]:
    """Yield each alteration before real Kafka by each check that noticed it, and each mutant."""
    seen: set[tuple[str, ...]] = set()
    for one in sorted(failed, key=lambda entry: (entry.rule, entry.check, entry.name)):
        if altered := one.kind == evidence.ALTERATION:
            counts = one.release != evidence.REFERENCE and one.name in ALTERATIONS
        else:
            counts = one.rule in declared(one.kind, one.name)
        which = (one.kind, one.name, one.rule, one.check if altered else "")
        if counts and which not in seen:
            seen.add(which)
            yield _as_noticed(one)


def _as_noticed(one: Entry) -> Noticed:
    known = ALTERATIONS if one.kind == evidence.ALTERATION else BROKEN.get(one.kind, {})
    sentence = known[one.name].sentence if known else "A defect of the release itself."
    check = one.check or "the rule's checks"
    return Noticed(kind=one.kind, name=one.name, sentence=sentence, rule=one.rule, check=check)
