"""A session over nine partitions of three topics: many are added, forgotten or unknown at once."""

from suites.broker.kit import *


async def _served(world: Grid, wanted: list[Where]) -> dict[Where, list[int]]:
    """Fetch until each wanted partition gave something; return what all gave by then and after."""
    found: dict[Where, list[int]] = {where: [] for where in world.places}
    rounds = 0
    async for _ in attempts(WITHIN):
        response = Consumer.sound(await world.session.fetch(max_wait_ms=100))
        for topic, index in world.places:
            part = response.part(topic.id, index)
            found[topic, index] += part.offsets if part else []
        rounds += all(found[where] for where in wanted)
        if rounds > 1:
            break
    return found


@check("SES-22", "SES-23", meets=IN_LISTS)
@AT
async def test_forgetting_many(share: Share, judge: Judge, position: str) -> None:
    world = await grid(share, partitions=4)
    await world.session.fetch(*world.places, epoch=OPEN, max_wait_ms=0)
    gone = [where for where in world.places if where[1] != 2]
    stay = [where for where in world.places if where[1] == 2]
    stranger = (nowhere(share, world.topics[0]), 0)
    await world.session.fetch(forget=among(gone, stranger, position), max_wait_ms=0, max_records=0)
    await world.produce(2)

    first = await _served(world, stay)
    expected = {where: [0, 1] if where in stay else [] for where in world.places}
    judge["SES-23"].equal(expected, first, "records served, three partitions of four forgotten")
    await world.session.fetch(*gone, max_wait_ms=0, max_records=0)
    second = await _served(world, gone)
    expected = {where: [] if where in stay else [0, 1] for where in world.places}
    judge["SES-22"].equal(expected, second, "records served, the forgotten named again")


@check("SES-23", meets=IN_LISTS)
@AT
async def test_forgetting_what_is_not_there(share: Share, judge: Judge, position: str) -> None:
    world = await grid(share)
    await world.session.fetch(*world.places, epoch=OPEN, max_wait_ms=0)
    *gone, stays = world.places
    topic = world.topics[{"first": 0, "middle": 1, "last": 2}[position]]
    asked = among(gone, (topic, 1000), position)
    await world.session.fetch(forget=asked, max_wait_ms=0, max_records=0)
    await world.produce(2)
    expected = {where: [0, 1] if where == stays else [] for where in world.places}
    judge.equal(expected, await _served(world, [stays]), "records served, one left")


@check("ACQ-10", "ACQ-12", "ACQ-13", meets=IN_LISTS)
@AT
async def test_one_unknown_among_many(share: Share, judge: Judge, position: str) -> None:
    world = await grid(share)
    places = world.places
    topic = world.topics[among(range(1, 9), 0, position).index(0) // 3]
    for index, where in enumerate(places):
        await world.share.admin.produce(where[0], index + 1, where[1])
    bad = {"ACQ-12": (nowhere(share, topic), 0), "ACQ-13": (topic, 1000)}
    named = among(among(places, bad["ACQ-13"], position), bad["ACQ-12"], position)
    errors: dict[str, set[str]] = {rule: set() for rule in bad}
    found: dict[Where, list[int]] = {where: [] for where in places}
    async for _ in attempts(WITHIN):
        response = await world.session.fetch(*named, max_wait_ms=100)
        judge["ACQ-12"].equal(0, response.error, "top-level error")
        named = []
        for rule, (topic, at) in bad.items():
            part = response.part(topic.id, at)
            errors[rule] |= {error_name(part.error)} if part else set()
        for topic, at in places:
            part = response.part(topic.id, at)
            found[topic, at] += part.offsets if part else []
        if sum(map(len, found.values())) >= sum(range(10)) and all(errors.values()):
            break
    judge["ACQ-12"].equal({"UNKNOWN_TOPIC_ID"}, errors["ACQ-12"], f"errors of it, {position}")
    unknown = {"UNKNOWN_TOPIC_OR_PARTITION"}
    judge["ACQ-13"].equal(unknown, errors["ACQ-13"], f"errors of it, {position}")
    expected = {where: list(range(index + 1)) for index, where in enumerate(places)}
    judge["ACQ-10"].equal(expected, found, "records of each partition")
