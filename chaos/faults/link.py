"""The way to a broker is cut, slow, stalled, deaf or reset: for its clients, or for other brokers.

What lies on the way of other brokers is replication, and the state that share-partition leaders
have their share coordinator store (KIP-932 §Share coordinator), their own included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from chaos.faults.fault import Fault, Kind
from chaos.faults.roles import ROLES, Role
from chaos.world import World
from fixtures.proxies.fronts import CLIENT, INTERNAL, Front, Weather

_SLOW = 0.4
"""Seconds that each frame of a slow link is held up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A kind of bad weather: how it begins, what shows it, how it ends.

    ``resets`` is whether the connections that it was about are of no use afterwards.
    """

    name: str
    does: str
    begin: Callable[[Weather], None]
    shown: Callable[[Weather], int]
    end: Callable[[Weather], None]
    resets: bool = False
    blinds: bool = False


def _set(name: str, value: object) -> Callable[[Weather], None]:
    return lambda weather: setattr(weather, name, value)


def _turned_away(weather: Weather) -> int:
    return weather.turned_away


def _held(weather: Weather) -> int:
    return weather.held


TROUBLES = (
    Trouble(
        name="cut",
        does="Reset every connection of {}, and let none in.",
        begin=_set("cut", True),
        shown=_turned_away,
        end=_set("cut", False),
    ),
    Trouble(
        name="slow",
        does="Hold up each frame from and to {}.",
        begin=_set("delay", _SLOW),
        shown=_held,
        end=_set("delay", 0.0),
    ),
    Trouble(
        name="stall",
        does="Keep the connections of {} open and pass nothing, and all of it later.",
        begin=lambda weather: weather.flowing.clear(),
        shown=_held,
        end=lambda weather: weather.flowing.set(),
        blinds=True,
    ),
    Trouble(
        name="mute",
        does="Lose all answers on half-open connections of {}, and reset those at the end.",
        begin=_set("mute", True),
        shown=_held,
        end=_set("mute", False),
        resets=True,
        blinds=True,
    ),
)


class Link(Fault):
    """One front has bad weather."""

    def __init__(
        self, world: World, subject: int, role: Role, listener: str, trouble: Trouble
    ) -> None:
        super().__init__(world, subject)
        self.role, self.listener, self.trouble = role, listener, trouble
        self.front: Front | None = None
        self.before = 0

    @property
    def blinds(self) -> bool:  # type: ignore[override]
        """Whether what passes later may be carried out later."""
        return self.trouble.blinds

    async def inject(self) -> str:
        """Change the weather."""
        node = await self.role.who(self.world, self.subject)
        self.front = self.world.front(node, self.listener)
        self.before = self.trouble.shown(self.front.weather)
        await self._change(self.trouble.begin)
        return f"the {self.listener} listener of broker {node}, {self.role.title}"

    async def hit(self) -> str:
        """See that it befell somebody."""
        assert self.front is not None
        befell = self.trouble.shown(self.front.weather) - self.before
        return f"{self.trouble.name}: {befell} connections or frames" if befell > 0 else ""

    async def heal(self) -> None:
        """Change the weather back."""
        if self.front is not None:
            await self._change(self.trouble.end)
            if self.trouble.resets:
                await asyncio.to_thread(self.world.all_fronts.reset, self.front)

    async def healed(self) -> str:
        """Greet the broker by way of the front."""
        assert self.front is not None
        through = await self.world.answers_at(self.front.address)
        return f"a greeting passes {self.front.address}" if through else ""

    async def _change(self, change: Callable[[Weather], None]) -> None:
        assert self.front is not None
        await asyncio.to_thread(self.world.all_fronts.change, self.front, change)


def _kind(role: Role, listener: str, trouble: Trouble, name: str, title: str) -> Kind:
    return Kind(
        name=f"{trouble.name}-{name}",
        sentence=trouble.does.format(title),
        make=lambda world, subject: Link(world, subject, role, listener, trouble),
        lasts=(4.0, 8.0),
        fronted=True,
    )


_BY_NAME = {role.name: role for role in ROLES}
_WAYS = (
    (_BY_NAME["leader"], CLIENT, "client-link", "a partition leader's clients"),
    (_BY_NAME["share-coordinator"], INTERNAL, "share-coordinator", "a share coordinator's brokers"),
)

KINDS = tuple(
    _kind(role, listener, trouble, name, title)
    for role, listener, name, title in _WAYS
    for trouble in TROUBLES
)
