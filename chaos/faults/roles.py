"""The roles of brokers, so that a fault can target the broker that has one now.

A share-partition has a leader, a share coordinator that keeps its state, and its group a
coordinator for the members (KIP-932 §Share group membership, §Share coordinator).
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role; ``who`` finds the broker that has it now."""

    name: str
    title: str
    who: Callable[[World, int], Awaitable[int]]


async def _leader(world: World, subject: int) -> int:
    return await world.leader(world.course.topic.name, world.partition(subject))


async def _state_keeper(world: World, subject: int) -> int:
    return await world.state_keeper(subject)


async def _group_coordinator(world: World, subject: int) -> int:
    return await world.cluster.coordinator(world.group(subject))


async def _controller(world: World, _subject: int) -> int:
    return await world.controller()


ROLES = (
    Role(name="leader", title="the leader of a partition", who=_leader),
    Role(name="share-coordinator", title="a share coordinator", who=_state_keeper),
    Role(name="group-coordinator", title="a group coordinator", who=_group_coordinator),
    Role(name="controller", title="the active controller", who=_controller),
)

Make = TypeVar("Make", bound=Callable[..., Injection])


def for_each_role(
    verb: str,
    does: str,
    *needs: Capability,
    lasts: tuple[float, float],
    takes: Iterable[Resource],
) -> Callable[[Make], Make]:
    """Register a class of injections as a fault for each role of a broker.

    ``does`` says what it does to ``{}``.
    """

    def register(make: Make) -> Make:
        for role in ROLES:
            name, sentence = f"{verb}-{role.name}", does.format(role.title)
            named = fault(name, sentence, *needs, lasts=lasts, takes=takes)
            named(partial(make, role=role))
        return make

    return register
