"""All records of what was noticed, as the site tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fixtures.adapters.model.mutants import MUTANTS as CLIENTS
from fixtures.mutants import MUTANTS as REAL
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS
from reports.site.detecting import Detection, Missed, Noticed
from tools import client_mutants, falsified
from tools.detection import real
from tools.detection.record import Record


def detection() -> Detection:
    """Return what was seen of everything that is broken on purpose."""
    made = {
        "reference": {name: mutant.sentence for name, mutant in MUTANTS.items()},
        "kafka": {name: mutant.sentence for name, mutant in REAL.items()},
        "client": {name: mutant.sentence for name, mutant in CLIENTS.items()},
    }
    noticed = (*_reference(), *_lies(), *_kafka(), *_clients())
    found = {(one.kind, one.name) for one in noticed}
    survivors = real.known()["survivors"]
    missed = tuple(
        Missed(kind=kind, name=name, sentence=sentence, why=str(survivors.get(name, "")))
        for kind, names in made.items()
        for name, sentence in names.items()
        if (kind, name) not in found
    )
    count = {kind: len(names) for kind, names in made.items()}
    return Detection(made=count, noticed=noticed, missed=missed)


def _reference() -> Iterator[Noticed]:
    """Yield each mutant with each rule that killed it, by the first of the checks that did."""
    record = Record.load()
    for mutant in MUTANTS.values():
        by_rule = {seen.rule: check for check, seen in reversed([*record.killers(mutant.name)])}
        for rule, check in sorted(by_rule.items()):
            yield Noticed(
                kind="reference",
                name=mutant.name,
                sentence=mutant.sentence,
                rule=rule,
                check=check,
            )


def _lies() -> Iterator[Noticed]:
    for (check, rule), names in sorted(falsified.Matrix.load().kills.items()):
        for name in sorted(names & ALTERATIONS.keys()):
            sentence = ALTERATIONS[name].sentence
            yield Noticed(kind="lie", name=name, sentence=sentence, rule=rule, check=check)


def _kafka() -> Iterator[Noticed]:
    for name, kill in real.known()["mutants"].items():
        if name in REAL:
            yield _killed("kafka", name, REAL[name].sentence, kill)


def _clients() -> Iterator[Noticed]:
    for name, kill in client_mutants.known().items():
        if name in CLIENTS:
            yield _killed("client", name, CLIENTS[name].sentence, kill)


def _killed(kind: str, name: str, sentence: str, kill: Mapping[str, str]) -> Noticed:
    return Noticed(kind=kind, name=name, sentence=sentence, rule=kill["rule"], check=kill["check"])
