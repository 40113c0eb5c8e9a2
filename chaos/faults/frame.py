"""Faults of single frames: every nth request or response of an API, at every broker's proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from chaos.faults.fault import Fault, Injection
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.proxies.conditions import CLIENT, INTERNAL
from fixtures.proxies.fronts import Weather
from fixtures.proxies.rules import Act, Rule, Way, state_write_refused
from fixtures.wire.errors import ErrorCode

_FETCH, _ACK = frozenset({"ShareFetch"}), frozenset({"ShareAcknowledge", "ShareFetch"})
_WRITE = frozenset({"WriteShareGroupState"})
_BEAT = frozenset({"ShareGroupHeartbeat"})
_REFUSALS = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFault:
    """A kind of rule; ``seldom`` is how many frames pass between two that do not, at most."""

    name: str
    sentence: str
    listener: str
    rule: Callable[[int], Rule]
    seldom: int = 5
    blinds: bool = False


class Frames(Injection):
    """A rule holds at the fronts of all brokers; ``subject`` says how seldom it applies."""

    def __init__(self, world: World, subject: int, spec: FrameFault) -> None:
        super().__init__(world, subject)
        self.spec = spec
        self.rule = spec.rule(subject)
        self.rule.nth = 1 + subject % spec.seldom

    @property
    def blinds(self) -> bool:  # type: ignore[override]
        """Whether what nobody saw may have been carried out."""
        return self.spec.blinds

    async def inject(self) -> str:
        """Let the rule hold."""
        await self._everywhere(lambda weather: weather.rules.append(self.rule))
        apis = "/".join(sorted(self.rule.apis))
        return f"every {self.rule.nth}. {self.rule.way.value} of {apis}"

    async def hit(self) -> str:
        """See that it took frames."""
        return f"{self.rule.done} of {self.rule.seen} frames" if self.rule.done else ""

    async def heal(self) -> None:
        """Take the rule back."""

        def without(weather: Weather) -> None:
            weather.rules = [rule for rule in weather.rules if rule is not self.rule]

        await self._everywhere(without)

    async def healed(self) -> str:
        """See that it is gone everywhere."""
        return f"{self.rule.done} frames in all" if self.rule.done else "no rule any more"

    async def _everywhere(self, change: Callable[[Weather], None]) -> None:
        for node in self.world.nodes:
            fronts = self.world.frame_fronts
            door = fronts.door(node, self.spec.listener)
            await asyncio.to_thread(fronts.change, door, change)


def _rule(apis: frozenset[str], way: Way, act: Act, seconds: float = 0.0) -> Callable[[int], Rule]:
    return lambda _: Rule(apis=apis, way=way, act=act, seconds=seconds)


def _refused(subject: int) -> Rule:
    error = _REFUSALS[subject % len(_REFUSALS)]
    return Rule(
        apis=_WRITE, way=Way.REQUEST, act=Act.REFUSE, refusal=state_write_refused(int(error))
    )


def _fenced(_: int) -> Rule:
    refusal = state_write_refused(int(ErrorCode.FENCED_STATE_EPOCH))
    return Rule(apis=_WRITE, way=Way.REQUEST, act=Act.REFUSE, refusal=refusal)


_FRAME_FAULTS = (
    FrameFault(
        name="fail-state-writes",
        sentence="Refuse state writes: COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR.",
        listener=INTERNAL,
        rule=_refused,
        seldom=3,
    ),
    FrameFault(
        name="fence-state-writes",
        sentence="Refuse state writes as fenced, so that the share-partition is reloaded.",
        listener=INTERNAL,
        rule=_fenced,
        seldom=20,
    ),
    FrameFault(
        name="lose-state-responses",
        sentence="Reset the connection instead of passing the response to a state write.",
        listener=INTERNAL,
        rule=_rule(_WRITE, Way.ANSWER, Act.RESET),
        seldom=10,
    ),
    FrameFault(
        name="delay-state-writes",
        sentence="Delay state writes for a second.",
        listener=INTERNAL,
        rule=_rule(_WRITE, Way.REQUEST, Act.DELAY, 1.0),
    ),
    FrameFault(
        name="duplicate-state-writes",
        sentence="Send state writes twice.",
        listener=INTERNAL,
        rule=_rule(_WRITE, Way.REQUEST, Act.DUPLICATE),
        seldom=3,
    ),
    FrameFault(
        name="lose-responses",
        sentence="Reset the connection instead of passing a response to a consumer.",
        listener=CLIENT,
        rule=_rule(_ACK, Way.ANSWER, Act.RESET),
        seldom=30,
    ),
    FrameFault(
        name="lose-requests",
        sentence="Reset the connection in place of a consumer's request.",
        listener=CLIENT,
        rule=_rule(_ACK, Way.REQUEST, Act.RESET),
        seldom=30,
    ),
    FrameFault(
        name="truncate-responses",
        sentence="End the connection in the middle of the response to a fetch.",
        listener=CLIENT,
        rule=_rule(_FETCH, Way.ANSWER, Act.TRUNCATE),
        seldom=30,
    ),
    FrameFault(
        name="delay-responses",
        sentence="Delay responses to consumers for two seconds.",
        listener=CLIENT,
        rule=_rule(_ACK, Way.ANSWER, Act.DELAY, 2.0),
        seldom=20,
    ),
    FrameFault(
        name="drop-heartbeats",
        sentence="Drop the members' heartbeats silently.",
        listener=CLIENT,
        rule=_rule(_BEAT, Way.REQUEST, Act.DROP),
        seldom=2,
    ),
)


def _kind(spec: FrameFault) -> Fault:
    return Fault(
        name=spec.name,
        sentence=spec.sentence,
        make=lambda world, subject: Frames(world, subject, spec),
        lasts=(4.0, 8.0),
        needs=frozenset({Capability.PROXIED, Capability.DECODING_PROXY}),
    )


FAULTS = tuple(_kind(spec) for spec in _FRAME_FAULTS)
