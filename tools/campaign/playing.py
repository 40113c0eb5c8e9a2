"""Plays a check against a variant of the reference broker, in virtual time and without pytest.

The same variant, case and seed give the same frames, the same verdicts and the same digest, on any
machine. Nobody waits for a lock to run out: half a minute of the broker's time is a moment of ours.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fixtures import virtual
from fixtures.virtual.world import World, reference_world
from fixtures.wire.frame import Transcript
from shareproof.runner.outcome import observe
from spec.verdict import Observation, OutOfReach, Undecided, Verdict
from suites.broker.share import world
from suites.broker.state import Store
from suites.judge import Judge, Vacuous
from tools.campaign.cases import Case

HONEST = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of one case against one target.

    Attributes:
        observations: one for each rule that the check names.
        digest: of every request and every response, as hexadecimal digits.
        reachable: False if the check needs what no reference broker has.
    """

    observations: Sequence[Observation]
    digest: str
    reachable: bool = True

    @property
    def held(self) -> bool:
        """Whether every rule was put to the test and held."""
        return all(seen.verdict is Verdict.PASS for seen in self.observations)

    @property
    def broken(self) -> Observation | None:
        """The first rule that was broken, if any was."""
        return next(self._broken(), None)

    def broken_of(self, rule: str) -> Observation | None:
        """What was seen of one rule, if it was broken."""
        return next((seen for seen in self._broken() if seen.requirement == rule), None)

    def _broken(self) -> Iterator[Observation]:
        return (seen for seen in self.observations if seen.verdict is Verdict.FAIL)


def play(target: str, case: Case, seed: int) -> Played:
    """Play one case.

    Args:
        target: ``reference``, ``reference:MUTANT`` or ``altered:NAME@reference``.
        case: a playable case.
        seed: decides over every random choice, the check's and the broker's.
    """
    judge, digests = Judge(case.check.rules), [""]
    error: BaseException | None = None
    try:
        virtual.run(_play(target, case, seed, judge, digests))
        if judge.unexercised():
            error = Vacuous(", ".join(judge.unexercised()))
    except Exception as caught:  # whatever it is, the mapping of outcomes knows whose fault
        error = caught
    return Played(
        observations=tuple(observe(case.name, judge, error, 0.0)),
        digest=digests[-1],
        reachable=not isinstance(error, OutOfReach),
    )


async def _play(target: str, case: Case, seed: int, judge: Judge, digests: list[str]) -> None:
    properties = dict(case.properties)
    brokers = int(properties.pop("brokers", "1" if case.check.solo else "3"))
    async with reference_world(target, brokers=brokers, properties=properties, seed=seed) as here:
        try:
            async with asyncio.timeout(case.limit) as budget:
                await _check(here, case, random.Random(f"{seed} {case.name}"), judge)
        except TimeoutError:
            if budget.expired():
                raise Undecided(f"no verdict within {case.limit:g} s") from None
            raise
        finally:
            digests.append(here.digest())


async def _check(here: World, case: Case, rng: random.Random, judge: Judge) -> None:
    async with world(here.info, rng, [Transcript()], here.schemas) as share:
        offered = {
            "share": share,
            "solo_share": share,
            "judge": judge,
            "store": Store(share),
            "rng": rng,
        }
        await case.function(**{name: offered[name] for name in case.wanted}, **case.parameters)
        await share.disband()
