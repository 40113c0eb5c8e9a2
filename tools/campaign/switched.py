"""Hunts mutants of Kafka on one broker, which is switched from each mutant to the next.

It is a process of its own, as deadlines are shorter where a broken broker keeps checks waiting:
``python -m tools.campaign.switched TARGET FILE SEED MUTANT...`` prints, as lines of JSON, what was
seen of the rules that a mutant breaks, until one is reported broken. The check that killed a mutant
is played again at once on the sound broker; ``sound`` says whether it passes there.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

from fixtures.interface.info import ClusterInfo
from fixtures.mutants import MUTANTS
from fixtures.mutants.agency import switch
from fixtures.targets import open_target
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from shareproof.runner.inventory import by_rule
from shareproof.runner.outcome import observe
from spec.verdict import Observation, Undecided, Verdict
from suites.broker.share import world
from suites.broker.state import Store
from suites.judge import Judge, Vacuous
from tools.campaign.cases import Case
from tools.campaign.hunting import cases_of, checks

AT_ONCE = 5
"""Checks that are played at a time."""

LIMIT = 45.0
"""Seconds that a check may take here at most."""


class Broker:
    """The broker that is switched."""

    def __init__(self, info: ClusterInfo, file: Path, seed: int) -> None:
        self.info, self.file, self.seed = info, file, seed
        self.schemas = Schemas.from_jar(info.schema_jar)
        self.plays_so_far = itertools.count()

    async def play(self, case: Case) -> list[Observation]:
        """Play one case on the broker as it is now."""
        judge = Judge(case.check.rules)
        error: BaseException | None = None
        try:
            async with asyncio.timeout(min(case.limit, LIMIT)):
                await self._check(case, judge)
            if silent := judge.unexercised():
                error = Vacuous(", ".join(silent))
        except TimeoutError:
            error = Undecided("no verdict in time")
        except Exception as caught:  # the mapping of outcomes knows whose fault it is
            error = caught
        return observe(case.name, judge, error, 0.0)

    async def _check(self, case: Case, judge: Judge) -> None:
        # Names are drawn, and no play may meet the topics and groups of another.
        rng = Random(f"{self.seed} {case.name} {next(self.plays_so_far)}")
        async with world(self.info, rng, [Transcript()], self.schemas) as share:
            offered = {"share": share, "judge": judge, "store": Store(share), "rng": rng}
            wanted = {name: offered[name] for name in case.wanted}
            await case.function(**wanted, **case.parameters)
            await share.disband()

    async def plays(self, cases: Sequence[Case]) -> AsyncIterator[tuple[Case, Observation]]:
        """Play cases, a few at a time; yield what each said of each rule."""
        for at in range(0, len(cases), AT_ONCE):
            some = cases[at : at + AT_ONCE]
            for case, seen in zip(some, await asyncio.gather(*map(self.play, some)), strict=True):
                for one in seen:
                    yield case, one

    async def hunt(self, name: str) -> None:
        """Print what the checks of a mutant's rules say of it, until one kills it."""
        switch(self.file, name)
        found = by_rule(checks().values())
        for rule in MUTANTS[name].rules:
            mine = [check.id for check in found.get(rule, ()) if not check.solo]
            cases = [case for check in mine for case in cases_of(check)]
            async for case, one in self.plays(cases):
                if one.requirement not in MUTANTS[name].rules:
                    continue
                killed = one.verdict is Verdict.FAIL
                if killed:
                    switch(self.file, "")
                    again = await self.play(case)
                    told = {"sound": all(o.verdict is Verdict.PASS for o in again)}
                    killed = told["sound"]
                    print(json.dumps({"mutant": name, **asdict(one), **told}), flush=True)
                    if killed:
                        return
                    switch(self.file, name)
                elif one.verdict is not Verdict.PASS:
                    print(json.dumps({"mutant": name, **asdict(one)}), flush=True)


async def hunts(target: str, file: Path, seed: int, names: Sequence[str]) -> None:
    """Hunt mutants one after the other."""
    opened = open_target(target)
    opened.start()
    broker = Broker(opened.info, file, seed)
    for name in names:
        await broker.hunt(name)


if __name__ == "__main__":
    where, path, number, *mutants = sys.argv[1:]
    asyncio.run(hunts(where, Path(path), int(number), mutants))
