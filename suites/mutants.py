"""Kill every mutant of the reference broker: ``python -m suites.mutants``.

A mutant is killed when a check that names one of its rules reports that very rule broken, and says
nothing of the kind about the honest broker by the same random choices. The checks are played here
without pytest, several mutants side by side in one process, because what they do most is wait. What
killed whom is recorded in ``suites/self/killed.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.cluster import Cluster
from fixtures.reference.mutants import MUTANTS, Mutant
from fixtures.reference.target import ReferenceTarget
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault, Violation
from suites.broker.share import Share
from suites.broker.statestore import Store
from suites.inventory import Check, by_rule, read_checks
from suites.judge import Judge

RECORD = Path(__file__).parent / "self" / "killed.json"
LONGEST = 45.0
"""Seconds after which one check of one mutant is given up."""

TRIES = 3
"""Seeds with which a mutant is hunted: some are only seen by some random choices."""

_FIXTURES = frozenset({"share", "solo_share", "judge", "store", "rng"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What killed a mutant."""

    rule: str
    check: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One check with one set of parameters."""

    check: Check
    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def playable(self) -> bool:
        """Whether it needs nothing that only pytest has."""
        wanted = inspect.signature(self.function).parameters.keys()
        return wanted - self.parameters.keys() <= _FIXTURES


def cases(check: Check) -> Iterator[Case]:
    """Yield a check once for each combination of its parameters."""
    path, _, name = check.id.partition("::")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    function = getattr(module, name)
    marks = [mark for mark in getattr(function, "pytestmark", ()) if isinstance(mark, pytest.Mark)]
    properties: dict[str, str] = {}
    choices: list[list[dict[str, Any]]] = []
    for mark in marks:
        if mark.name == "solo":
            for given in (*mark.args, mark.kwargs):
                properties |= {key: str(value) for key, value in given.items()}
        elif mark.name == "parametrize":
            choices.append(_choices(*mark.args[:2]))
    for chosen in itertools.product(*choices):
        merged = {key: value for one in chosen for key, value in one.items()}
        yield Case(check=check, function=function, parameters=merged, properties=properties)


def _choices(names: str | Sequence[str], values: Iterable[Any]) -> list[dict[str, Any]]:
    listed = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    found = []
    for value in values:
        given = value.values if hasattr(value, "values") and not isinstance(value, dict) else value
        row = given if len(listed) > 1 or hasattr(value, "marks") else (given,)
        found.append(dict(zip(listed, row, strict=True)))
    return found


class Hunt:
    """Plays checks against mutants until each is dead."""

    def __init__(self, schemas: Schemas, seed: int) -> None:
        self.schemas = schemas
        self.seed = seed
        self.rules = by_rule(read_checks())

    def suspects(self, mutant: Mutant) -> Iterator[Case]:
        """Yield the cases that may kill a mutant, those of its first rule first."""
        for rule in mutant.rules:
            for check in self.rules.get(rule, ()):
                if check.id.count("/") == 2:  # a stage's checks break brokers
                    yield from (case for case in cases(check) if case.playable)

    async def kill(self, mutant: Mutant) -> Kill | None:
        """Return what kills a mutant, None if nothing does."""
        for seed in range(self.seed, self.seed + TRIES):
            for case in self.suspects(mutant):
                broken = await self.play(mutant.name, case, seed)
                # A check that fails against the honest broker, too, has killed nothing.
                if broken in mutant.rules and await self.play("", case, seed) is None:
                    return Kill(rule=broken, check=case.check.id)
        return None

    async def play(self, name: str, case: Case, seed: int) -> str | None:
        """Play a case against a mutant; return the rule that it reports broken."""
        solo = bool(case.check.solo)
        target = ReferenceTarget(name, brokers=1 if solo else 3, properties=case.properties)
        try:
            await asyncio.to_thread(target.start)
            return await asyncio.wait_for(self._play(target, case, seed), LONGEST)
        except Violation as violation:
            return violation.rule
        except (Exception, EnvironmentFault):  # whatever it is, it names no rule
            return None
        finally:
            await asyncio.to_thread(target.stop)

    async def _play(self, target: ReferenceTarget, case: Case, seed: int) -> None:
        rng = random.Random(f"{seed} {case.check.id} {sorted(map(str, case.parameters.items()))}")
        judge = Judge(case.check.rules)
        async with Cluster(target.info, schemas=self.schemas, rng=rng) as cluster:
            await cluster.any()
            share = Share(cluster, rng)
            offered = {
                "share": share,
                "solo_share": share,
                "judge": judge,
                "store": Store(share),
                "rng": rng,
            }
            wanted = inspect.signature(case.function).parameters.keys()
            fixtures = {key: value for key, value in offered.items() if key in wanted}
            await case.function(**fixtures, **case.parameters)


async def hunt(names: Sequence[str], seed: int, together: int) -> dict[str, Kill | None]:
    """Hunt mutants, some at a time; return what killed each."""
    probe = ReferenceTarget()
    await asyncio.to_thread(probe.start)
    schemas = Schemas.from_jar(probe.info.schema_jar)
    await asyncio.to_thread(probe.stop)
    pack, room = Hunt(schemas, seed), asyncio.Semaphore(together)
    found: dict[str, Kill | None] = {}

    async def one(name: str) -> None:
        async with room:
            began = time.monotonic()
            found[name] = kill = await pack.kill(MUTANTS[name])
            record({name: kill})
            told = f"{kill.rule} by {kill.check.split('/')[-1]}" if kill else "ALIVE"
            print(f"{name}: {told} ({time.monotonic() - began:.1f} s)", flush=True)

    await asyncio.gather(*(one(name) for name in names))
    return found


def record(found: Mapping[str, Kill | None]) -> None:
    """Write what killed whom, keeping what is known of other living mutants."""
    known: dict[str, Any] = {}
    if RECORD.exists():
        known = json.loads(RECORD.read_text(encoding="utf-8"))["mutants"]
    for name, kill in found.items():
        if kill is not None:
            known[name] = {"rule": kill.rule, "check": kill.check}
    mutants = {name: known[name] for name in sorted(known) if name in MUTANTS}
    RECORD.write_text(json.dumps({"mutants": mutants}, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Hunt; exit code 1 while a mutant lives."""
    parser = argparse.ArgumentParser(description="Kill every mutant of the reference broker.")
    parser.add_argument("names", nargs="*", help="mutants; default: those not yet recorded dead")
    parser.add_argument("--all", action="store_true", help="hunt those recorded dead, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=6, help="mutants at a time")
    options = parser.parse_args()
    dead: set[str] = set()
    if RECORD.exists() and not options.all:
        dead = set(json.loads(RECORD.read_text(encoding="utf-8"))["mutants"])
    names = options.names or [name for name in MUTANTS if name not in dead]
    found = asyncio.run(hunt(names, options.seed, options.together))
    alive = [name for name, kill in found.items() if kill is None]
    print(f"{len(found) - len(alive)} of {len(found)} mutants killed; alive: {alive}")
    return int(bool(alive))


if __name__ == "__main__":
    raise SystemExit(main())
