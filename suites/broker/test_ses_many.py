"""A session over nine partitions of three topics: many are added, forgotten or unknown at once."""

from suites.broker.kit import *


async def _served(matrix: Grid, wanted: list[Where], *before: Response) -> dict[Where, list[int]]:
    """Fetch until each wanted partition gave two records; return what all gave, then and after."""
    came = list(before)
    found: dict[Where, list[int]] = {}
    rounds = 0
    async for _ in attempts(WITHIN):
        came.append(Consumer.sound(await matrix.session.fetch(max_wait_ms=100)))
        found = {at: [o for one in came for o in offsets_in(one, at)] for at in matrix.places}
        rounds += all(len(found[where]) > 1 for where in wanted)
        if rounds > 1:
            return found
    if not await goes_on(matrix.env.cluster, matrix.topics[0].leaders[0]):
        raise Undecided(f"only {found} came, and the record of a bystander did not")
    return found


@check("SES-22", "SES-23", meets=IN_LISTS)
@AT
async def test_forgetting_many(env: Env, judge: Judge, position: str) -> None:
    matrix = await grid(env, partitions=4)
    await matrix.session.fetch(*matrix.places, epoch=OPEN, max_wait_ms=0)
    gone = [where for where in matrix.places if where[1] != 2]
    stay = [where for where in matrix.places if where[1] == 2]
    stranger = (nowhere(env, matrix.topics[0]), 0)
    await matrix.produce(2)

    forgetting = await matrix.session.fetch(forget=among(gone, stranger, position))
    first = await _served(matrix, stay, forgetting)
    expected = {where: [0, 1] if where in stay else [] for where in matrix.places}
    judge["SES-23"].equal(expected, first, "records served, three partitions of four forgotten")
    await matrix.session.fetch(*gone, max_wait_ms=0, max_records=0)
    second = await _served(matrix, gone)
    expected = {where: [] if where in stay else [0, 1] for where in matrix.places}
    judge["SES-22"].equal(expected, second, "records served, the forgotten named again")


@check("SES-23", meets=IN_LISTS)
@AT
async def test_forgetting_what_is_not_there(env: Env, judge: Judge, position: str) -> None:
    matrix = await grid(env)
    await matrix.session.fetch(*matrix.places, epoch=OPEN, max_wait_ms=0)
    *gone, stays = matrix.places
    topic = matrix.topics[{"first": 0, "middle": 1, "last": 2}[position]]
    asked = among(gone, (topic, 1000), position)
    await matrix.session.fetch(forget=asked, max_wait_ms=0, max_records=0)
    await matrix.produce(2)
    expected = {where: [0, 1] if where == stays else [] for where in matrix.places}
    judge.equal(expected, await _served(matrix, [stays]), "records served, one left")


@check("ACQ-10", "ACQ-12", "SES-28", meets=IN_LISTS)
@AT
async def test_one_unknown_among_many(env: Env, judge: Judge, position: str) -> None:
    matrix = await grid(env)
    places = matrix.places
    topic = matrix.topics[among(range(1, 9), 0, position).index(0) // 3]
    for index, where in enumerate(places):
        await matrix.env.admin.produce(where[0], index + 1, where[1])
    bad = {"ACQ-12": (nowhere(env, topic), 0), "SES-28": (topic, 1000)}
    named = among(among(places, bad["SES-28"], position), bad["ACQ-12"], position)
    errors: dict[str, set[str]] = {rule: set() for rule in bad}
    found: dict[Where, set[int]] = {where: set() for where in places}
    async for _ in attempts(WITHIN):
        response = await matrix.session.fetch(*named, max_wait_ms=100)
        judge["ACQ-12"].equal(0, response.error, "top-level error")
        named = []
        for rule, (topic, at) in bad.items():
            part = response.part(topic.id, at)
            errors[rule] |= {error_name(part.error)} if part else set()
        for topic, at in places:
            part = response.part(topic.id, at)
            found[topic, at] |= {*part.offsets} if part else set()
        if sum(map(len, found.values())) >= sum(range(10)) and all(errors.values()):
            break
    else:
        if not await goes_on(env.cluster, places[0][0].leaders[0]):
            raise Undecided(f"only {errors} and {found} came, and no record of a bystander")
    judge["ACQ-12"].equal({"UNKNOWN_TOPIC_ID"}, errors["ACQ-12"], f"errors of it, {position}")
    unknown = {"UNKNOWN_TOPIC_OR_PARTITION"}
    judge["SES-28"].equal(unknown, errors["SES-28"], f"errors of it, {position}")
    expected = {where: set(range(index + 1)) for index, where in enumerate(places)}
    judge["ACQ-10"].equal(expected, found, "records of each partition")
