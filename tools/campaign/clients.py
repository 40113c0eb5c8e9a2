"""Kill every mutant of the model client: ``python -m tools.client_mutants``.

A mutant is killed when a check that names one of its rules reports that very rule broken. All of
them face one reference broker, several at a time, because what the checks do most is wait. What
killed whom is recorded in ``evidence/clients_killed.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures.adapters.model.mutants import MUTANTS, Mutant
from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.targets import TargetOptions, open_target
from fixtures.wire.schema import Schemas
from shareproof.runner.inventory import CLIENT, by_rule, read_checks
from spec.verdict import EnvironmentFault, Violation
from suites.client.harness import harness_on
from suites.judge import Judge
from tools.detection.cases import Case, cases

RECORD = Path(__file__).parents[1] / "evidence" / "clients_killed.json"
LONGEST = 100.0
"""Seconds after which one check of one mutant is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What killed a mutant."""

    rule: str
    check: str


class Hunt:
    """Plays client checks against mutants until each is dead.

    ``facing`` is the broker of the checks that need no hostile one; that one, unless it is given.
    """

    def __init__(self, hostile: ClusterInfo, seed: int, facing: ClusterInfo | None = None) -> None:
        own = facing or hostile
        self.brokers = {name: _spoken(own) for name in ("scene", "doomed")}
        self.brokers["hostile"] = _spoken(hostile)
        self.seed = seed
        self.rules = by_rule(read_checks(CLIENT))

    def suspects(self, mutant: Mutant) -> Iterator[Case]:
        """Yield the cases that may kill a mutant, those of its first rule first."""
        seen: set[str] = set()
        for rule in mutant.rules:
            for check in self.rules.get(rule, ()):
                if check.id not in seen:
                    seen.add(check.id)
                    yield from cases(check)

    async def kill(self, mutant: Mutant) -> tuple[Kill | None, list[str]]:
        """Return what kills a mutant, None if nothing does; and how each check ended."""
        said: list[str] = []
        for case in self.suspects(mutant):
            adapter = Adapter(command_of(f"model:{mutant.name}"))
            try:
                await adapter.start()
                broken, how = await self.play(adapter, mutant.name, case)
            finally:
                await adapter.stop()
            said.append(f"{case.check.id.split('::')[-1]}: {how}")
            if broken in mutant.rules:
                return Kill(rule=broken, check=case.check.id), said
        return None, said

    async def play(self, adapter: Adapter, name: str, case: Case) -> tuple[str, str]:
        """Play a case; return the rule that it reports broken, and what it said."""
        try:
            async with asyncio.timeout(LONGEST):
                await self._play(adapter, name, case)
        except Violation as violation:
            return violation.rule, str(violation)
        except (Exception, EnvironmentFault) as error:  # whatever it is, it names no rule
            return "", f"{type(error).__name__}: {error}"
        return "", "passed"

    async def _play(self, adapter: Adapter, name: str, case: Case) -> None:
        rng = random.Random(f"{self.seed} {name} {case.check.id} {case.parameters}")
        judge = Judge(case.check.rules)
        wanted = inspect.signature(case.function).parameters.keys()
        async with contextlib.AsyncExitStack() as stack:
            offered: dict[str, Any] = {"judge": judge, "rng": rng}
            for broker in self.brokers.keys() & wanted:
                offered[broker] = await stack.enter_async_context(
                    harness_on(*self.brokers[broker], adapter, rng, [])
                )
            if "adapter" in wanted:
                offered["adapter"] = await stack.enter_async_context(_another(adapter))
            fixtures = {key: value for key, value in offered.items() if key in wanted}
            await case.function(**fixtures, **case.parameters)


def _spoken(info: ClusterInfo) -> tuple[ClusterInfo, Schemas]:
    return info, Schemas.from_jar(info.schema_jar)


@contextlib.asynccontextmanager
async def _another(adapter: Adapter) -> AsyncIterator[Adapter]:
    """Run a second process of the same adapter."""
    made = Adapter(adapter.command)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def hunt(names: Sequence[str], seed: int, together: int) -> dict[str, Kill | None]:
    """Hunt mutants, some at a time; return what killed each."""
    target = open_target("reference", TargetOptions(brokers=3))
    await asyncio.to_thread(target.start)
    pack, room = Hunt(target.info, seed), asyncio.Semaphore(together)
    found: dict[str, Kill | None] = {}

    async def one(name: str) -> None:
        async with room:
            began = time.monotonic()
            found[name], said = await pack.kill(MUTANTS[name])
            kill = found[name]
            record({name: kill})
            told = f"{kill.rule} by {kill.check.split('/')[-1]}" if kill else f"ALIVE {said}"
            print(f"{name}: {told} ({time.monotonic() - began:.1f} s)", flush=True)

    try:
        await asyncio.gather(*(one(name) for name in names))
    finally:
        await asyncio.to_thread(target.stop)
    return found


def known() -> dict[str, Any]:
    """Return what is recorded."""
    if not RECORD.exists():
        return {}
    mutants: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))["mutants"]
    return mutants


def record(found: Mapping[str, Kill | None]) -> None:
    """Write what killed whom, keeping what is known of other living mutants."""
    before = known()
    for name, kill in found.items():
        if kill is not None:
            before[name] = {"rule": kill.rule, "check": kill.check}
    mutants = {name: before[name] for name in sorted(before) if name in MUTANTS}
    RECORD.write_text(json.dumps({"mutants": mutants}, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Hunt; exit code 1 while a mutant lives."""
    parser = argparse.ArgumentParser(description="Kill every mutant of the model client.")
    parser.add_argument("names", nargs="*", help="mutants; default: those not yet recorded dead")
    parser.add_argument("--all", action="store_true", help="hunt those recorded dead, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=4, help="mutants at a time")
    options = parser.parse_args()
    dead = set() if options.all else set(known())
    names = options.names or [name for name in MUTANTS if name not in dead]
    found = asyncio.run(hunt(names, options.seed, options.together))
    alive = [name for name, kill in found.items() if kill is None]
    print(f"{len(found) - len(alive)} of {len(found)} mutants killed; alive: {alive}")
    return int(bool(alive))


if __name__ == "__main__":
    raise SystemExit(main())
