"""Acknowledging nine partitions of three topics in one request, one of them wrongly."""

from suites.broker.kit import *

RECORDS = 9
BY = pytest.mark.parametrize("by_fetch", [False, True], ids=["acknowledge", "fetch"])
GOOD = (release(3), accept(4), release(5), reject(6), release(7))
"""Leaves three ranges that come again. 0 and 8 stay with their holder."""


async def _sent(matrix: Grid, acks: dict[Where, tuple[Ack, ...]], *, by_fetch: bool) -> Response:
    if by_fetch:
        return await matrix.session.fetch(acks=acks, max_wait_ms=0, max_records=0)
    return await matrix.session.acknowledge(acks)


def _results(response: Response, places: list[Where]) -> list[str]:
    if response.error:
        return [error_name(response.error)] * len(places)
    parts = (response.part(topic.id, index) for topic, index in places)
    return [error_name(part.error) if part and part.error else result(part) for part in parts]


@check("ACK-38", "ACK-48", "ACK-49", meets=IN_LISTS)
@BY
@AT
async def test_one_bad_partition(env: Env, judge: Judge, position: str, *, by_fetch: bool) -> None:
    matrix = await grid(env)
    await matrix.produce(RECORDS)
    await matrix.acquire(matrix.session, RECORDS)
    places = matrix.places
    middle = among(range(1, 9), 0, position).index(0)
    topic = matrix.topics[middle // 3]
    for rule, error, bad, offset in (
        ("ACK-48", "UNKNOWN_TOPIC_ID", (nowhere(env, topic), 0), 1),
        ("ACK-49", "UNKNOWN_TOPIC_OR_PARTITION", (topic, 1000), 2),
    ):
        acks: dict[Where, tuple[Ack, ...]] = dict.fromkeys(
            among(places, bad, position), (accept(offset),)
        )
        response = await _sent(matrix, acks, by_fetch=by_fetch)
        judge[rule].equal([error], _results(response, [bad]), f"result of the {position} one")
        judge["ACK-38"].equal(["NONE"] * 9, _results(response, places), f"results beside {error}")
        if by_fetch:
            await matrix.session.fetch(forget=[bad], max_wait_ms=0, max_records=0)

    refused = places[middle]
    acks = {where: (accept(1), *GOOD) if where == refused else GOOD for where in places}
    response = await _sent(matrix, acks, by_fetch=by_fetch)
    if _results(response, [refused]) == ["NONE"]:
        raise Undecided(f"{acks[refused]} were not refused")
    places.remove(refused)  # whether nothing of it is done is ACK-37's
    judge["ACK-38"].equal(["NONE"] * 8, _results(response, places), "results beside a refusal")
    await matrix.produce(1)
    seen: dict[Where, dict[int, int]] = {where: {} for where in places}
    for response in await matrix.acquire(matrix.session, 1, until=RECORDS):
        for topic, index in places:
            part = response.part(topic.id, index)
            seen[topic, index] |= part.counts if part else {}
    for where, came in seen.items():
        what = f"records that come then of partition {places.index(where)}"
        judge["ACK-38"].delivered({3: 2, 5: 2, 7: 2, RECORDS: 1}, came, what)
    rest: dict[Where, tuple[Ack, ...]] = dict.fromkeys(places, (accept(0), accept(8)))
    told = _results(await matrix.session.acknowledge(rest), places)
    judge["ACK-38"].equal(["NONE"] * 8, told, "accepting what is still held")


@check("ACK-37", meets=IN_LISTS)
@AT
async def test_one_bad_type(env: Env, judge: Judge, position: str) -> None:
    _, consumer = await env.with_holder(12)
    for good in ((1, 2, 3), (2, 1, 0, 3, 2, 1)):
        batch = each(2, among(good, 77, position))
        told = {result(await consumer.ack(batch))}
        told.add(result_in(await consumer.fetch(batch, max_wait_ms=0), consumer))
        if "NONE" in told:
            raise Undecided("type 77 is accepted, which ACK-11 to ACK-13 forbid")
    await judge_held(judge, consumer, range(1, 12), "lists with a bad type")


@check("ACK-37", meets=IN_LISTS)
@AT
async def test_one_bad_batch(env: Env, judge: Judge, position: str) -> None:
    _, consumer = await env.with_holder(12)
    at = {"first": 2, "middle": 6, "last": 10}[position]
    await consumer.acked(accept(at))
    good = [release(offset) for offset in range(2, 11) if offset != at]
    for bad in (accept(at), Ack(at, at, (77,))):
        batches = among(good, bad, position)
        told = result(await consumer.ack(*batches))
        judge_refusal(judge, told, f"ShareAcknowledge, {bad} standing {position},")
        told = result_in(await consumer.fetch(*batches, max_wait_ms=0), consumer)
        judge_refusal(judge, told, f"ShareFetch, {bad} standing {position},")
    rest = [offset for offset in range(1, 12) if offset != at]
    await judge_held(judge, consumer, rest, "batches with a bad one")
