"""Links to brokers are reset, slow, stalled or half-open, and single frames on them go wrong.

What passes the link of other brokers is replication, and the state that share-partition leaders
have their share coordinator store (KIP-932 §Share coordinator), their own included.

To add a fault of frames, every nth request or response of an API at every broker, add a row to
``_FRAME_FAULTS``; what rules can do stands in :class:`fixtures.proxies.exchange.Action`.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial

from chaos.faults.fault import LEADER, SHARE_COORDINATOR, Injection, Role, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.proxies.broker_proxies import (
    CLIENT,
    INTERNAL,
    LATENCY,
    Condition,
    Direction,
    FrameRule,
    ProxiedListener,
    state_write_refused,
)
from fixtures.proxies.exchange import Action
from fixtures.proxies.proxy import ProxyListener
from fixtures.wire.errors import ErrorCode

_DOES: Mapping[Condition, str] = {
    Condition.RESET: "Reset every connection of {}, and refuse new ones.",
    Condition.LATENCY: "Delay every frame to and from {}.",
    Condition.STALL: "Keep the connections of {} open and pass nothing.",
    Condition.HALF_OPEN: "Drop all responses to {}, and reset the connections at the end.",
}


class LinkInjection(Injection):
    def __init__(
        self, world: World, subject: int, role: Role, name: str, condition: Condition
    ) -> None:
        super().__init__(world, subject)
        self.role, self.name, self.condition = role, name, condition
        self.listener: ProxiedListener | None = None
        self.node = -1

    @property
    def late_broker(self) -> int:
        """The broker whose clients' requests are held up; a half-open link passes them at once."""
        late = self.condition is Condition.STALL and self.name == CLIENT
        return self.node if late else -1

    async def inject(self) -> str:
        self.node = await self.role.who(self.world, self.subject)
        proxies = self.world.broker_proxies
        self.listener = proxies.listener(self.node, self.name)
        await asyncio.to_thread(proxies.begin, self.listener, self.condition)
        return f"the {self.name} listener of broker {self.node}, {self.role.title}"

    async def hit(self) -> str:
        assert self.listener is not None
        began = time.monotonic()
        through = await self.world.answers_at(self.listener.address)
        took = time.monotonic() - began
        if through and (self.condition is not Condition.LATENCY or took < LATENCY):
            return ""
        effect = f"takes {took:.1f} s" if through else "gets no response"
        return f"{self.condition.value}: ApiVersions at {self.listener.address} {effect}"

    async def heal(self) -> None:
        if self.listener is not None:
            end = self.world.broker_proxies.end
            await asyncio.to_thread(end, self.listener, self.condition)

    async def healed(self) -> str:
        assert self.listener is not None
        through = await self.world.answers_at(self.listener.address)
        return f"ApiVersions passes {self.listener.address}" if through else ""


_LINKS = (
    (LEADER, CLIENT, "client-link", "a partition leader's clients"),
    (SHARE_COORDINATOR, INTERNAL, "share-coordinator", "a share coordinator's brokers"),
)

for _role, _listener, _name, _title in _LINKS:
    for _condition in Condition:
        fault(
            f"{_condition.value}-{_name}",
            _DOES[_condition].format(_title),
            Capability.PROXIED,
            lasts=(4.0, 8.0),
            takes={Resource.CLIENT_LINK if _listener == CLIENT else Resource.BROKER_LINK},
            relies_on={Resource.BROKER},
        )(partial(LinkInjection, role=_role, name=_listener, condition=_condition))


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
