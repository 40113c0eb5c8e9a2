"""What a fault is: a way to break something, to see that it broke, to heal it, and to see that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaos.world import World


class Fault(ABC):
    """One fault, from before it strikes until it is healed.

    The two probes are asked again and again; each returns what it saw, in words, or nothing yet.
    Whatever goes wrong, :meth:`heal` is called once :meth:`inject` was, and must bear that.
    """

    blinds: ClassVar[bool] = False
    """Whether fetches may acquire something meanwhile that nobody sees, or only later."""

    def __init__(self, world: World, subject: int) -> None:
        """Choose nothing yet: who plays which part is found out by :meth:`inject`."""
        self.world = world
        self.subject = subject

    @abstractmethod
    async def inject(self) -> str:
        """Break it; return what was broken, in words."""

    @abstractmethod
    async def hit(self) -> str:
        """Return the proof that it broke, or nothing as long as there is none."""

    @abstractmethod
    async def heal(self) -> None:
        """Mend it."""

    @abstractmethod
    async def healed(self) -> str:
        """Return the proof that it is mended, or nothing as long as there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault.

    Attributes:
        name: What schedules and reports call it.
        sentence: What it does.
        make: Makes one of it.
        lasts: Seconds from which to which it usually lasts.
        brokers: How many brokers it takes.
        lonely: Whether it takes a broker away.
        hooks: What must be possible with a broker that is not ours.
        doors: Whether something must stand in front of the brokers.
        frames: Whether the brokers must stand behind our own fronts, which know frames.
        contained: Whether the brokers must run in containers.
        keyed: Whether the load's topic must be compacted, and its records have keys.
        ours: Whether the brokers must be processes that we start on this machine.
        grows: Whether it adds a partition to the load's topic.
        unasked: Whether it may be drawn where nobody names it.
        clocks: Whether brokers and clients must be started with clocks that can be moved.
    """

    name: str
    sentence: str
    make: Callable[[World, int], Fault]
    lasts: tuple[float, float] = (3.0, 6.0)
    brokers: int = 1
    lonely: bool = False
    hooks: tuple[str, ...] = ()
    doors: bool = False
    frames: bool = False
    contained: bool = False
    keyed: bool = False
    ours: bool = False
    grows: bool = False
    unasked: bool = True
    clocks: bool = False


def by_name(kinds: Iterable[Kind]) -> dict[str, Kind]:
    """Return kinds by their names, which must differ."""
    found: dict[str, Kind] = {}
    for kind in kinds:
        if kind.name in found:
            raise ValueError(f"two kinds of fault are called {kind.name}")
        found[kind.name] = kind
    return found
