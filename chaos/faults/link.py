"""The link to a broker is reset, slow, stalled or half-open: for its clients, or other brokers.

What passes the link of other brokers is replication, and the state that share-partition leaders
have their share coordinator store (KIP-932 §Share coordinator), their own included.
"""

import asyncio
import time
from collections.abc import Mapping
from functools import partial

from chaos.faults.fault import LEADER, SHARE_COORDINATOR, Injection, Role, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.proxies.broker_proxies import CLIENT, INTERNAL, LATENCY, Condition, ProxiedListener

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
