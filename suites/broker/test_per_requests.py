"""State RPCs that are empty, malformed, about nothing, or about several share-partitions."""

from collections import defaultdict

from suites.broker.kit import *

INVALID, UNKNOWN = "INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION"


@check("PER-25", fast=True)
@pytest.mark.parametrize("api", STATE_RPCS)
async def test_empty_requests(store: Store, judge: Judge, api: str) -> None:
    key = await store.initialized()
    connection = await store.env.cluster.to(await key.node())
    whole: dict[str, Any] = {
        "group_id": key.group,
        "topics": [
            {"topic_id": key.topic_id, "partitions": [{"partition": 0} | STATE_FIELDS[api]]}
        ],
    }
    forms: list[dict[str, Any]] = [
        {"group_id": ""},
        {"topics": []},
        {"topics": [{"topic_id": key.topic_id, "partitions": []}]},
    ]
    for empty in forms:
        response = await connection.call(api, **(whole | empty))
        found = [part for topic in response.results for part in topic.partitions]
        judge.equal([], found, f"results of {api} with {empty}")
    judge.equal("NONE", read_result(await key.read())[0], "a Read after all of them")


async def _refusal(key: StateKey, api: str) -> str:
    """Return the error of an RPC about a key that FindCoordinator would not look for."""
    topic, partition = await key.home()
    return error_name(
        (await key.ask(api, node=topic.leaders[partition], **STATE_FIELDS[api])).error_code
    )


@check("PER-26", fast=True)
@pytest.mark.parametrize("api", STATE_RPCS)
async def test_malformed_keys(store: Store, judge: Judge, api: str) -> None:
    key = await store.key()
    for partition in (-1, -(2**31)):
        error = await _refusal(StateKey(store.env, key.group, key.topic_id, partition), api)
        judge.equal(INVALID, error, f"error of {api} for partition {partition}")
    nowhere = StateKey(store.env, key.group, uuid.UUID(int=0), 0)
    what = f"error of {api} for the null topic id"
    allowed = {
        INVALID: "ReadShareGroupStateResponse ErrorCode: what is malformed is invalid",
        UNKNOWN: "ReadShareGroupStateResponse ErrorCode: no topic has the null id",
    }
    judge.one_of(allowed, await _refusal(nowhere, api), what)


@check("PER-27", fast=True)
@pytest.mark.parametrize("api", STATE_RPCS)
async def test_unknown_topics(store: Store, judge: Judge, api: str) -> None:
    key = await store.key()
    allowed = {UNKNOWN: "WriteShareGroupStateResponse ErrorCode: no such topic or partition"}
    if api in (READ, WRITE):
        allowed[INVALID] = "PER-04 about a share-partition that was never initialised"
    stranger = uuid.UUID(bytes=store.env.rng.randbytes(16))
    for topic_id, partition in ((stranger, 0), (key.topic_id, 1), (key.topic_id, 2**31 - 1)):
        part = await StateKey(store.env, key.group, topic_id, partition).ask(
            api, **STATE_FIELDS[api]
        )
        what = f"error of {api} for partition {partition} of 1, topic {topic_id}"
        judge.one_of(allowed, error_name(part.error_code), what)


@check("PER-28", fast=True)
@pytest.mark.parametrize("api", [READ, WRITE])
async def test_judged_one_by_one(store: Store, judge: Judge, api: str) -> None:
    homes: defaultdict[int, list[StateKey]] = defaultdict(list)
    for key in await store.keys(10):
        homes[await key.node()].append(key)
    keys = max(homes.values(), key=len)
    good = set(store.env.rng.sample(range(len(keys)), k=len(keys) // 2))
    for index in good:
        await keys[index].begun(start=1)

    wanted = [{"partition": key.partition} | STATE_FIELDS[api] for key in keys]
    topics = [{"topic_id": keys[0].topic_id, "partitions": wanted}]

    async def ask() -> dict[int, Struct] | None:
        connection = await store.env.cluster.to(await keys[0].node())
        response = await connection.call(api, group_id=keys[0].group, topics=topics)
        parts = {p.partition: p for result in response.results for p in result.partitions}
        moving = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return None if any(part.error_code in moving for part in parts.values()) else parts

    parts = await eventually(f"{api} answered by a coordinator that is ready", ask)
    seen = [error_name(parts[k.partition].error_code) if k.partition in parts else "" for k in keys]
    if NONE in (seen[index] for index in range(len(keys)) if index not in good):
        raise Undecided(f"{api} serves what was never initialised: {seen}")
    judge.equal(dict.fromkeys(good, NONE), {i: seen[i] for i in good}, f"{api}: the good ones")
    for index in good:
        start = (await keys[index].read()).start_offset
        judge.equal(3 if api == WRITE else 1, start, "start offset of a served one")
    judge.saw(served=len(good), refused=len(keys) - len(good))
