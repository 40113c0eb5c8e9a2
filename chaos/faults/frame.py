"""Single frames go wrong: every nth request or response of an API, at every broker.

To add such a fault, add a row to ``_FRAME_FAULTS``; what rules can do stands in
:class:`fixtures.proxies.exchange.Action`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.proxies.broker_proxies import (
    CLIENT,
    INTERNAL,
    Direction,
    FrameRule,
    state_write_refused,
)
from fixtures.proxies.exchange import Action
from fixtures.proxies.proxy import ProxyListener
from fixtures.wire.errors import ErrorCode

_FETCH, _ACK = frozenset({"ShareFetch"}), frozenset({"ShareAcknowledge", "ShareFetch"})
_WRITE = frozenset({"WriteShareGroupState"})
_HEARTBEAT = frozenset({"ShareGroupHeartbeat"})
_REFUSALS = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFault:
    """A fault that is a rule for frames; one frame in at most ``every`` is taken."""

    name: str
    sentence: str
    listener: str
    rule: Callable[[int], FrameRule]
    every: int = 5


class FrameInjection(Injection):
    """A rule for the frames of all brokers; ``subject`` chooses how many frames it lets pass."""

    def __init__(self, world: World, subject: int, spec: FrameFault) -> None:
        super().__init__(world, subject)
        self.spec = spec
        self.rule = spec.rule(subject)
        self.rule.nth = 1 + subject % spec.every

    async def inject(self) -> str:
        for listener in self._listeners():
            await asyncio.to_thread(self.world.frame_proxies.add_rule, listener, self.rule)
        apis = "/".join(sorted(self.rule.apis))
        return f"every {self.rule.nth}. {self.rule.direction.value} of {apis}"

    async def hit(self) -> str:
        return f"{self.rule.done} of {self.rule.seen} frames" if self.rule.done else ""

    async def heal(self) -> None:
        for listener in self._listeners():
            await asyncio.to_thread(self.world.frame_proxies.remove_rule, listener, self.rule)

    async def healed(self) -> str:
        return f"{self.rule.done} frames in all" if self.rule.done else "no rule any more"

    def _listeners(self) -> list[ProxyListener]:
        proxies = self.world.frame_proxies
        return [proxies.listener(node, self.spec.listener) for node in self.world.nodes]


def _rule(
    apis: frozenset[str], direction: Direction, action: Action | None, delay: float = 0.0
) -> Callable[[int], FrameRule]:
    return lambda _: FrameRule(apis=apis, direction=direction, action=action, delay=delay)


def _refuse(error: ErrorCode) -> FrameRule:
    return FrameRule(
        apis=_WRITE,
        direction=Direction.REQUEST,
        action=Action.RESPOND,
        refusal=state_write_refused(int(error)),
    )


_FRAME_FAULTS = (
    FrameFault(
        name="fail-state-writes",
        sentence="Refuse state writes: COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR.",
        listener=INTERNAL,
        rule=lambda subject: _refuse(_REFUSALS[subject % len(_REFUSALS)]),
        every=3,
    ),
    FrameFault(
        name="lose-state-responses",
        sentence="Reset the connection instead of passing the response to a state write.",
        listener=INTERNAL,
        rule=_rule(_WRITE, Direction.RESPONSE, Action.RESET),
        every=10,
    ),
    FrameFault(
        name="delay-state-writes",
        sentence="Delay state writes for a second.",
        listener=INTERNAL,
        rule=_rule(_WRITE, Direction.REQUEST, None, 1.0),
    ),
    FrameFault(
        name="duplicate-state-writes",
        sentence="Send state writes twice.",
        listener=INTERNAL,
        rule=_rule(_WRITE, Direction.REQUEST, Action.DUPLICATE),
        every=3,
    ),
    FrameFault(
        name="lose-responses",
        sentence="Reset the connection instead of passing a response to a consumer.",
        listener=CLIENT,
        rule=_rule(_ACK, Direction.RESPONSE, Action.RESET),
        every=30,
    ),
    FrameFault(
        name="lose-requests",
        sentence="Reset the connection instead of passing a consumer's request.",
        listener=CLIENT,
        rule=_rule(_ACK, Direction.REQUEST, Action.RESET),
        every=30,
    ),
    FrameFault(
        name="truncate-responses",
        sentence="Reset the connection in the middle of a fetch response.",
        listener=CLIENT,
        rule=_rule(_FETCH, Direction.RESPONSE, Action.TRUNCATE),
        every=30,
    ),
    FrameFault(
        name="delay-responses",
        sentence="Delay responses to consumers for two seconds.",
        listener=CLIENT,
        rule=_rule(_ACK, Direction.RESPONSE, None, 2.0),
        every=20,
    ),
    FrameFault(
        name="drop-heartbeats",
        sentence="Drop the members' heartbeats silently.",
        listener=CLIENT,
        rule=_rule(_HEARTBEAT, Direction.REQUEST, Action.DROP),
        every=2,
    ),
)

for _one in _FRAME_FAULTS:
    fault(
        _one.name,
        _one.sentence,
        *(Capability.PROXIED, Capability.DECODING_PROXY),
        lasts=(4.0, 8.0),
        takes={Resource.STATE_WRITES} if _one.listener == INTERNAL else (),
        relies_on={Resource.BROKER_LINK if _one.listener == INTERNAL else Resource.CLIENT_LINK},
    )(partial(FrameInjection, spec=_one))
