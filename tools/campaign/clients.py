"""Mutants of the model client: each is killed by a check that names one of its rules.

All of them face one reference broker, several at a time, because what the checks do most is wait.
``repeat --client`` plays all checks of clients the same way, once for each seed: whatever the model
client does not pass there is not to be trusted.
"""

import asyncio
import contextlib
import functools
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from fixtures.adapters.model.mutants import MUTANTS
from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.interface.mutant import Mutant
from fixtures.targets import Target, TargetOptions, open_target
from fixtures.wire.schema import Schemas
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import CLIENT, Check, by_rule, read_checks
from spec.verdict import EnvironmentFault
from suites.client.account import judge_account
from suites.client.harness import harness_on, hostile_target
from suites.judge import Judge
from tools.campaign.options import Options, Outcome, chosen_mutants, entry_of, meant, nothing
from tools.campaign.player import Case, Played, cases, observed

LONGEST = 100.0  # Seconds after which one check of one mutant is given up.
TOGETHER, TOGETHER_REPEATED = 4, 12  # Mutants at a time; checks at a time where none is a mutant.


class Hunt:
    """Plays client checks against mutants until each is dead."""

    def __init__(self, hostile: ClusterInfo, seed: int, facing: ClusterInfo | None = None) -> None:
        own = facing or hostile
        self.brokers = {
            name: (info, Schemas.from_jar(info.schema_jar))
            for name, info in (("harness", own), ("doomed", own), ("hostile", hostile))
        }
        self.seed = seed
        self.rules = by_rule(read_checks(CLIENT))

    def suspects(self, mutant: Mutant[Any]) -> Iterator[Case]:
        named = (check for rule in mutant.rules for check in self.rules.get(rule, ()))
        for check in {one.id: one for one in named}.values():
            yield from cases(check)

    async def kill(
        self, mutant: Mutant[Any], first: Sequence[Case] = ()
    ) -> tuple[Entry | None, list[str]]:
        lines: list[str] = []
        for case in (*first, *self.suspects(mutant)):
            async with _running(command_of(f"model:{mutant.name}")) as adapter:
                played = await self.play(adapter, mutant.name, case)
            lines.append(f"{case.check.id.split('::')[-1]}: {played.summary}")
            if (seen := played.broken()) and seen.rule in mutant.rules:
                return entry_of(evidence.CLIENT_MUTANT, mutant.name, seen, seed=self.seed), lines
        return None, lines

    async def play(self, adapter: Adapter, name: str, case: Case) -> Played:
        if strange := case.wanted - self.brokers.keys() - {"judge", "rng", "adapter"}:
            raise EnvironmentFault(f"{case.name} needs fixtures unknown here: {sorted(strange)}.")
        rng = random.Random(f"{self.seed} {name} {case.check.id} {case.parameters}")
        meet = functools.partial(self.play_on, adapter, case, rng=rng)
        return await observed(case, meet, LONGEST)

    async def play_on(
        self, adapter: Adapter, case: Case, judge: Judge, *, rng: random.Random
    ) -> None:
        async with contextlib.AsyncExitStack() as stack:
            offered: dict[str, Any] = {"judge": judge, "rng": rng}
            for broker in self.brokers.keys() & case.wanted:
                offered[broker] = await stack.enter_async_context(
                    harness_on(*self.brokers[broker], adapter, rng, [])
                )
            if "adapter" in case.wanted:  # a second process of the same
                offered["adapter"] = await stack.enter_async_context(_running(adapter.command))
            fixtures = {key: offered[key] for key in case.wanted}
            await case.function(**fixtures, **case.parameters)
        for broker in self.brokers.keys() & case.wanted:
            judge_account(offered[broker].account, judge)


@contextlib.asynccontextmanager
async def _running(command: Sequence[str]) -> AsyncIterator[Adapter]:
    adapter = Adapter(command)
    try:
        await adapter.start()
        yield adapter
    finally:
        await adapter.stop()


async def hunt(
    names: Sequence[str], options: Options, first: dict[str, list[Case]]
) -> dict[str, Entry | None]:
    async with _started(hostile_target()) as info:
        pack, turns = Hunt(info, options.seed), asyncio.Semaphore(options.workers or TOGETHER)
        found: dict[str, Entry | None] = {}

        async def one(name: str) -> None:
            async with turns:
                began = time.monotonic()
                kill, lines = await pack.kill(MUTANTS[name], first.get(name, ()))
                found[name] = kill
                options.store.add([kill] if kill else [])
                result = f"{kill.rule} by {kill.check.split('/')[-1]}" if kill else f"alive {lines}"
                options.say(f"{name}: {result} ({time.monotonic() - began:.1f} s)")

        await asyncio.gather(*map(one, names))
    return found


def play(options: Options) -> Outcome:
    names = chosen_mutants(options.only, MUTANTS, read_checks(CLIENT))
    found = asyncio.run(hunt(names, options, {}))
    alive = [name for name, kill in found.items() if kill is None]
    return Outcome(
        said=[f"{len(found) - len(alive)} of {len(found)} mutants of the model client killed"],
        broken=[f"alive: {name}: {MUTANTS[name].sentence}" for name in alive],
    )


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    known = {check.id: check for check in read_checks(CLIENT)}
    entries = [one for one in entries if one.name in MUTANTS]
    first: dict[str, list[Case]] = {}
    for one in entries:
        first.setdefault(one.name, []).extend(cases(known[one.check]) if one.check in known else ())
    found = asyncio.run(hunt(list(first), options, first))
    lost = [one for one in entries if found[one.name] is None]
    seen = {one.key for one in found.values() if one}
    options.store.drop([one for one in entries if one not in lost and one.key not in seen])
    return lost


def repeat(options: Options) -> Outcome:
    checks: Sequence[Check] = read_checks(CLIENT)
    if options.only and not (checks := meant(options.only, checks)):
        raise nothing(", ".join(options.only))
    return asyncio.run(_repeat(options, [case for check in checks for case in cases(check)]))


async def _repeat(options: Options, shared: Sequence[Case]) -> Outcome:
    outcome = Outcome()
    async with contextlib.AsyncExitStack() as stack:
        facing = hostile = await stack.enter_async_context(_started(hostile_target()))
        if options.target != "reference":
            target = open_target(options.target, TargetOptions(brokers=1))
            facing = await stack.enter_async_context(_started(target))
        options.say(f"{options.client} in front of {options.target} {facing.version}")
        for seed in range(options.seed, options.seed + options.rounds):
            began = time.monotonic()
            wrong = await _once(Hunt(hostile, seed, facing), shared, options)
            options.say(f"seed {seed}: {len(wrong)} not passed ({time.monotonic() - began:.0f} s)")
            outcome.broken += wrong
    outcome.said.append(f"{len(shared)} cases, {options.rounds} rounds each")
    return outcome


async def _once(pack: Hunt, shared: Sequence[Case], options: Options) -> list[str]:
    turns = asyncio.Semaphore(options.workers or TOGETHER_REPEATED)
    wrong: list[str] = []

    async def one(case: Case) -> None:
        async with turns:
            played = await pack.play(adapter, f"{pack.seed}", case)
        if not played.held:
            name = case.check.id.rpartition("/")[2]
            wrong.append(f"seed {pack.seed}: {name} {dict(case.parameters)}: {played.summary}")

    # Who kills its process cannot share it.
    alone = [case for case in shared if "doomed" in case.wanted]
    async with _running(command_of(options.client)) as adapter:
        await asyncio.gather(*(one(case) for case in shared if case not in alone))
        for case in alone:
            await one(case)
    return wrong


@contextlib.asynccontextmanager
async def _started(target: Target) -> AsyncIterator[ClusterInfo]:
    await asyncio.to_thread(target.start)
    try:
        yield target.info
    finally:
        await asyncio.to_thread(target.stop)
