"""Plays checks without pytest: each function with each set of its parameters, by one set of limits.

:func:`play` is for variants of the reference broker, in virtual time: the same variant, case and
seed give the same frames, the same verdicts and the same digest, on any machine, and no lock
takes real time to run out. On anything else a check is played by :func:`observed`.
"""

import asyncio
import importlib
import inspect
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fixtures import virtual
from fixtures.interface.info import ClusterInfo
from fixtures.virtual import virtual_cluster
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from shareproof.runner.inventory import Check
from shareproof.runner.limits import TIME_LIMIT
from shareproof.runner.outcome import left_open, observe
from spec.verdict import Observation, Undecided, Verdict
from suites.broker.env import open_env
from suites.broker.state import Store
from suites.judge import Judge

HONEST = "reference"
FIXTURES = frozenset({"env", "solo_env", "judge", "store", "rng"})
"""What a check may ask for and be played all the same."""

ParameterSet = type(pytest.param())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    check: Check
    function: Callable[..., Any]
    parameters: Mapping[str, Any]  # What ``parametrize`` gives it.
    properties: Mapping[str, str]  # Broker properties of its ``solo`` marker.
    limit: float  # Seconds after which it is undecided.

    @property
    def name(self) -> str:
        chosen = ",".join(
            str(getattr(value, "__qualname__", value)) for value in self.parameters.values()
        )
        return f"{self.check.id}[{chosen}]" if chosen else self.check.id

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.function).parameters) - self.parameters.keys()

    @property
    def playable(self) -> bool:
        return self.wanted <= FIXTURES


def cases(check: Check) -> Iterator[Case]:
    path, _, name = check.id.partition("::")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    function = getattr(module, name)
    outer = getattr(module, "pytestmark", [])
    found = [*getattr(function, "pytestmark", ()), *(outer if isinstance(outer, list) else [outer])]
    properties: dict[str, str] = {}
    choices: list[list[dict[str, Any]]] = []
    limit = TIME_LIMIT
    for mark in (getattr(mark, "mark", mark) for mark in found):
        if mark.name == "solo":
            for given in (*mark.args, mark.kwargs):
                properties |= {key: str(value) for key, value in given.items()}
        elif mark.name == "parametrize":
            choices.append(_choices(*mark.args[:2]))
        elif mark.name == "timeout" and mark.args:
            limit = float(mark.args[0])
    for chosen in itertools.product(*choices):
        merged = {key: value for one in chosen for key, value in one.items()}
        yield Case(
            check=check, function=function, parameters=merged, properties=properties, limit=limit
        )


def _choices(names: str | Sequence[str], values: Iterable[Any]) -> list[dict[str, Any]]:
    listed = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    found = []
    for value in values:
        given = value.values if isinstance(value, ParameterSet) else value
        row = given if len(listed) > 1 or isinstance(value, ParameterSet) else (given,)
        found.append(dict(zip(listed, row, strict=True)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    observations: Sequence[Observation]  # One for each rule that the check names.
    digest: str = ""  # Of every request and every response, in virtual time.

    @property
    def reachable(self) -> bool:
        return any(seen.verdict is not Verdict.OUT_OF_REACH for seen in self.observations)

    @property
    def held(self) -> bool:
        return all(seen.verdict is Verdict.PASS for seen in self.observations)

    def broken(self, rule: str = "") -> Observation | None:
        mine = (one for one in self.observations if rule in {"", one.rule})
        return next((one for one in mine if one.verdict is Verdict.FAIL), None)

    @property
    def summary(self) -> str:
        wrong = [one for one in self.observations if one.verdict is not Verdict.PASS]
        reasons = dict.fromkeys(f"{one.verdict}: {one.reason}" for one in wrong)
        return "; ".join(reasons) or "passed"


async def on_env(
    case: Case,
    judge: Judge,
    info: ClusterInfo,
    schemas: Schemas,
    *,
    rng: random.Random,
    frames: list[Transcript],
) -> None:
    async with open_env(info, rng, frames, schemas) as env:
        offered = {
            "env": env,
            "solo_env": env,
            "judge": judge,
            "store": Store(env),
            "rng": rng,
        }
        try:
            await case.function(**{name: offered[name] for name in case.wanted}, **case.parameters)
        except Exception as error:
            if (left := left_open(error, frames)) and left is not error:
                raise left from error
            raise
        await env.disband()


async def observed(case: Case, play: Callable[[Judge], Awaitable[None]], limit: float) -> Played:
    judge = Judge(case.check.rules)
    error: Exception | None = None
    try:
        async with asyncio.timeout(limit) as budget:
            await play(judge)
    except TimeoutError as late:
        error = Undecided(f"no verdict within {limit:g} s") if budget.expired() else late
    except Exception as caught:  # the mapping of outcomes knows whose fault
        error = caught
    return _played(case, judge, error)


def _played(case: Case, judge: Judge, error: Exception | None) -> Played:
    return Played(observations=tuple(observe(case.name, judge, error, 0.0)))


def play(target: str, case: Case, seed: int) -> Played:
    """Play one case against a broken reference broker; the seed decides all choices."""
    digests, properties = [""], dict(case.properties)
    brokers = int(properties.pop("brokers", "1" if case.check.solo else "3"))
    rng = random.Random(f"{seed} {case.name}")

    async def meet(judge: Judge) -> None:
        made = virtual_cluster(target, brokers=brokers, properties=properties, seed=seed)
        async with made as here:
            try:
                await on_env(case, judge, here.info, here.schemas, rng=rng, frames=[])
            finally:
                digests.append(here.digest())

    try:
        played = virtual.run(observed(case, meet, case.limit))
    except Exception as error:  # of the virtual world itself, such as one in which nothing happens
        played = _played(case, Judge(case.check.rules), error)
    return replace(played, digest=digests[-1])
