"""The way to a broker is cut, slow, stalled or half-open: for its clients, or for other brokers.

What lies on the way of other brokers is replication, and the state that share-partition leaders
have their share coordinator store (KIP-932 §Share coordinator), their own included.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from chaos.faults.fault import Fault, Injection
from chaos.faults.roles import ROLES, Role
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.proxies.conditions import CLIENT, INTERNAL, SLOW, Door, Trouble

_DOES: Mapping[Trouble, str] = {
    Trouble.CUT: "Reset every connection of {}, and let none in.",
    Trouble.SLOW: "Hold up all that goes to and from {}.",
    Trouble.STALL: "Keep the connections of {} open and pass nothing.",
    Trouble.MUTE: "Drop all responses on half-open connections of {}, and reset those at the end.",
}


class Link(Injection):
    """One proxied listener of a broker is in trouble."""

    def __init__(
        self, world: World, subject: int, role: Role, listener: str, trouble: Trouble
    ) -> None:
        super().__init__(world, subject)
        self.role, self.listener, self.trouble = role, listener, trouble
        self.door: Door | None = None

    @property
    def blinds(self) -> bool:  # type: ignore[override]
        """Whether what passes later, or unseen, may be carried out."""
        return self.trouble in {Trouble.STALL, Trouble.MUTE}

    async def inject(self) -> str:
        """Let the trouble begin."""
        node = await self.role.who(self.world, self.subject)
        self.door = self.world.all_doors.door(node, self.listener)
        await asyncio.to_thread(self.world.all_doors.begin, self.door, self.trouble)
        return f"the {self.listener} listener of broker {node}, {self.role.title}"

    async def hit(self) -> str:
        """Connect through the proxy: that fails, or is slow."""
        assert self.door is not None
        began = time.monotonic()
        through = await self.world.answers_at(self.door.address)
        took = time.monotonic() - began
        if through and (self.trouble is not Trouble.SLOW or took < SLOW):
            return ""
        said = f"takes {took:.1f} s" if through else "is not answered"
        return f"{self.trouble.value}: a greeting at {self.door.address} {said}"

    async def heal(self) -> None:
        """Let the trouble end."""
        if self.door is not None:
            await asyncio.to_thread(self.world.all_doors.end, self.door, self.trouble)

    async def healed(self) -> str:
        """Connect through the proxy."""
        assert self.door is not None
        through = await self.world.answers_at(self.door.address)
        return f"a greeting passes {self.door.address}" if through else ""


def _kind(role: Role, listener: str, trouble: Trouble, name: str, title: str) -> Fault:
    return Fault(
        name=f"{trouble.value}-{name}",
        sentence=_DOES[trouble].format(title),
        make=lambda world, subject: Link(world, subject, role, listener, trouble),
        lasts=(4.0, 8.0),
        needs=frozenset({Capability.PROXIED}),
    )


_BY_NAME = {role.name: role for role in ROLES}
_WAYS = (
    (_BY_NAME["leader"], CLIENT, "client-link", "a partition leader's clients"),
    (_BY_NAME["share-coordinator"], INTERNAL, "share-coordinator", "a share coordinator's brokers"),
)

FAULTS = tuple(
    _kind(role, listener, trouble, name, title)
    for role, listener, name, title in _WAYS
    for trouble in Trouble
)
