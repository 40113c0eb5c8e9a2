"""Single frames go wrong: every nth request or response of an API, at every broker.

To add such a fault, add a row to ``_FRAME_FAULTS``; what rules can do stands in
:class:`fixtures.proxies.exchange.Action`.
"""

import asyncio
from collections.abc import Callable
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


class FrameInjection(Injection):
    """A rule for the frames of all brokers; ``subject`` chooses how many frames it lets pass."""

    def __init__(
        self, world: World, subject: int, name: str, every: int, rule: Callable[[int], FrameRule]
    ) -> None:
        super().__init__(world, subject)
        self.name, self.rule = name, rule(subject)
        self.rule.nth = 1 + subject % every

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
        return [proxies.listener(node, self.name) for node in self.world.nodes]


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


# fmt: off
# Of the frames that a fault is about, one in at most so many is taken.
_FRAME_FAULTS: tuple[tuple[str, str, int, Callable[[int], FrameRule], str], ...] = (
    ("fail-state-writes", INTERNAL, 3,
     lambda subject: _refuse(_REFUSALS[subject % len(_REFUSALS)]),
     "Refuse state writes: COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR."),
    ("lose-state-responses", INTERNAL, 10, _rule(_WRITE, Direction.RESPONSE, Action.RESET),
     "Reset the connection instead of passing the response to a state write."),
    ("delay-state-writes", INTERNAL, 5, _rule(_WRITE, Direction.REQUEST, None, 1.0),
     "Delay state writes for a second."),
    ("duplicate-state-writes", INTERNAL, 3, _rule(_WRITE, Direction.REQUEST, Action.DUPLICATE),
     "Send state writes twice."),
    ("lose-responses", CLIENT, 30, _rule(_ACK, Direction.RESPONSE, Action.RESET),
     "Reset the connection instead of passing a response to a consumer."),
    ("lose-requests", CLIENT, 30, _rule(_ACK, Direction.REQUEST, Action.RESET),
     "Reset the connection instead of passing a consumer's request."),
    ("truncate-responses", CLIENT, 30, _rule(_FETCH, Direction.RESPONSE, Action.TRUNCATE),
     "Reset the connection in the middle of a fetch response."),
    ("delay-responses", CLIENT, 20, _rule(_ACK, Direction.RESPONSE, None, 2.0),
     "Delay responses to consumers for two seconds."),
    ("drop-heartbeats", CLIENT, 2, _rule(_HEARTBEAT, Direction.REQUEST, Action.DROP),
     "Drop the members' heartbeats silently."),
)
# fmt: on

for _fault, _listener, _every, _make, _sentence in _FRAME_FAULTS:
    fault(
        _fault,
        _sentence,
        *(Capability.PROXIED, Capability.DECODING_PROXY),
        lasts=(4.0, 8.0),
        takes={Resource.STATE_WRITES} if _listener == INTERNAL else (),
        relies_on={Resource.BROKER_LINK if _listener == INTERNAL else Resource.CLIENT_LINK},
    )(partial(FrameInjection, name=_listener, every=_every, rule=_make))
