"""Listing groups: share groups among those of other kinds, by type and by state."""

from contextlib import asynccontextmanager

from suites.broker.kit import *


@dataclass(frozen=True, slots=True)
class Zoo:
    """One group of each kind, and a share group without members."""

    live: str
    empty: str
    consumer: str
    classic: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.live, self.empty, self.consumer, self.classic)


@asynccontextmanager
async def zoo(env: Env) -> AsyncIterator[Zoo]:
    """Make the groups, and let the consumer group's member leave at the end."""
    queue = await env.queue()
    animals = Zoo(*(env.cluster.fresh_name("g") for _ in range(4)))
    await env.member(animals.live, queue.topic)
    gone = await env.member(animals.empty, queue.topic)
    await good_beat(gone, member_epoch=-1)
    insider = await consumer_group(env, queue, animals.consumer)
    await classic_group(env, queue, animals.classic)
    try:
        yield animals
    finally:
        await consumer_beat(env, animals.consumer, insider, queue.topic.name, -1)


@check("ADM-06", fast=True)
async def test_by_type(env: Env, judge: Judge) -> None:
    async with zoo(env) as animals:
        shares = await listed(env, animals.names, types_filter=["share"])
        everything = await listed(env, animals.names)

    expected = dict.fromkeys((animals.live, animals.empty), "share")
    types = {group: found[0] for group, found in shares.items()}
    judge.equal(expected, types, "types of the groups listed as share groups")
    types = {group: everything[group][0] for group in expected if group in everything}
    judge.equal(expected, types, "types of the share groups listed without a filter")


@check("ADM-07", fast=True)
async def test_by_state(env: Env, judge: Judge) -> None:
    async with zoo(env) as animals:
        for names, expected in (
            (["Stable"], {animals.live}),
            (["sTaBLe"], {animals.live}),
            (["Empty"], {animals.empty}),
            (["EMPTY"], {animals.empty}),
            (["empty", "stable"], {animals.live, animals.empty}),
            (["dead"], set()),
        ):
            mine = (animals.live, animals.empty)
            found = await listed(env, mine, states_filter=names, types_filter=["Share"])
            judge.equal(expected, set(found), f"share groups in the states {names}")


@check("ADM-06", "ADM-07", meets=IN_LISTS)
@AT
async def test_one_unknown_filter(env: Env, judge: Judge, position: str) -> None:
    async with zoo(env) as animals:
        states = among(["Stable", "Dead", "Assigning"], "Sideways", position)
        by_state = await listed(env, animals.names, states_filter=states, types_filter=["share"])
        types = among(["share", "consumer", "streams"], "sideways", position)
        by_type = await listed(env, animals.names, types_filter=types)

    several = {animals.live, animals.empty, animals.consumer}
    judge["ADM-06"].equal(several, set(by_type), f"groups of the types {types}")
    judge["ADM-07"].equal({animals.live}, set(by_state), f"share groups in the states {states}")
