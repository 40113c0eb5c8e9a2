"""What a fault is, and its injection: break, prove that it hit, heal, prove that it healed.

Many faults target the broker that has some role now. A share-partition has a leader, a share
coordinator that keeps its state, and its group a coordinator for the members (KIP-932 §Share group
membership, §Share coordinator).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability


class Injection(ABC):
    """One injection of a fault, from before it strikes until it is healed.

    The two probes are asked again and again; each returns what it saw, in words, or nothing yet.
    Whatever goes wrong, :meth:`heal` is called once :meth:`inject` was, and must bear that.
    """

    def __init__(self, world: World, subject: int) -> None:
        """Choose nothing yet: :meth:`inject` finds out which broker has which role."""
        self.world = world
        self.subject = subject

    @property
    def late_broker(self) -> int:
        """The broker that may carry out requests late, when clients have given up; -1 for none."""
        return -1

    @property
    def locks(self) -> tuple[str, int]:
        """A group whose locks may last so many ms, whatever responses say; no group for none."""
        return "", 0

    @abstractmethod
    async def inject(self) -> str:
        """Break it; return what was broken, in words."""

    @abstractmethod
    async def hit(self) -> str:
        """Return the proof that it broke, or nothing as long as there is none."""

    @abstractmethod
    async def heal(self) -> None:
        """Heal it."""

    @abstractmethod
    async def healed(self) -> str:
        """Return the proof that it is healed, or nothing as long as there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    name: str  # What schedules and reports call it.
    sentence: str  # What it does.
    make: Callable[[World, int], Injection]  # Makes an injection of it, of the target with a number
    lasts: tuple[float, float]  # Seconds from which to which it usually lasts.
    needs: frozenset[Capability]  # What the run must offer.
    takes: frozenset[Resource] = frozenset()  # What it breaks or changes.
    # What must be whole for it to strike, to be seen, and to be healed.
    relies_on: frozenset[Resource] = frozenset()

    @property
    def exclusive(self) -> bool:
        """Whether it takes a broker away, so that no other such fault may overlap."""
        return Resource.BROKER in self.takes


FAULTS: dict[str, Fault] = {}  # Every fault by its name, as :func:`fault` registered them.

Make = TypeVar("Make", bound=Callable[[World, int], Injection])


def fault(
    name: str,
    sentence: str,
    *needs: Capability,
    lasts: tuple[float, float] = (3.0, 6.0),
    takes: Iterable[Resource] = (),
    relies_on: Iterable[Resource] = (),
) -> Callable[[Make], Make]:
    """Register what makes injections as a fault; ValueError where there is one of this name."""

    def register(make: Make) -> Make:
        if name in FAULTS:
            raise ValueError(f"two faults are called {name}")
        FAULTS[name] = Fault(
            name=name,
            sentence=sentence,
            make=make,
            lasts=lasts,
            needs=frozenset(needs),
            takes=frozenset(takes),
            relies_on=frozenset(relies_on),
        )
        return make

    return register


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role; ``who`` finds the broker that has it now."""

    name: str
    title: str
    who: Callable[[World, int], Awaitable[int]]


LEADER = Role(
    name="leader",
    title="the leader of a partition",
    who=lambda world, subject: world.leader(world.course.topic.name, world.partition(subject)),
)
SHARE_COORDINATOR = Role(
    name="share-coordinator", title="a share coordinator", who=World.share_coordinator
)
GROUP_COORDINATOR = Role(
    name="group-coordinator",
    title="a group coordinator",
    who=lambda world, subject: world.cluster.coordinator(world.group(subject)),
)
CONTROLLER = Role(
    name="controller",
    title="the active controller",
    who=lambda world, _: world.cluster.active_controller(),
)

MakeForRole = TypeVar("MakeForRole", bound=Callable[..., Injection])


def for_each_role(
    verb: str, does: str, *needs: Capability, lasts: tuple[float, float], takes: Iterable[Resource]
) -> Callable[[MakeForRole], MakeForRole]:
    """Register injections as a fault for each role; ``{}`` in ``does`` is the role."""

    def register(make: MakeForRole) -> MakeForRole:
        for role in (LEADER, SHARE_COORDINATOR, GROUP_COORDINATOR, CONTROLLER):
            name, sentence = f"{verb}-{role.name}", does.format(role.title)
            named = fault(name, sentence, *needs, lasts=lasts, takes=takes)
            named(partial(make, role=role))
        return make

    return register
