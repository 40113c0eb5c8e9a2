"""State RPCs about nine share-partitions of three topics, and one that is not there."""

from collections import defaultdict

from suites.broker.kit import *

BATCHES = (
    StateBatch(5, 6, ACKNOWLEDGED, 1),
    StateBatch(8, 8, AVAILABLE, 2),
    StateBatch(10, 12, ARCHIVED, 1),
)
START = 4


async def _neighbours(store: Store) -> list[list[StateKey]]:
    """Return keys that one coordinator serves: three of each of three topics of one group."""
    group = store.env.cluster.fresh_name("g")
    for _ in range(4):
        topics: list[dict[int, list[StateKey]]] = []
        for _ in range(MANY):
            homes: dict[int, list[StateKey]] = defaultdict(list)
            for key in await store.keys(4 * MANY, group):
                homes[await key.node()].append(key)
            topics.append(homes)
        for node in topics[0]:
            if all(len(homes[node]) >= MANY for homes in topics):
                return [homes[node][:MANY] for homes in topics]
    raise Undecided("no coordinator serves three partitions of each of three topics")


def _fields(api: str, *, counted: bool) -> dict[str, object]:
    """Return what a request says of each partition; ``counted``: Write has a complete count."""
    fields: dict[str, dict[str, object]] = {
        INITIALIZE: {"state_epoch": 0, "start_offset": 1},
        WRITE: {
            "state_epoch": 0,
            "leader_epoch": 0,
            "start_offset": START,
            "state_batches": wire_batches(BATCHES),
            **({"delivery_complete_count": 5} if counted else {}),
        },
    }
    return fields.get(api, {} if api == DELETE else {"leader_epoch": 0})


def _shown(api: str, part: Struct) -> object:
    """Return what one partition's result has to be for what was written before."""
    if api == READ:
        return part.start_offset, [*map(tuple, joined(part))]
    return part.start_offset if api == SUMMARY else None


@check("PER-05", "PER-27", "PER-28", meets=IN_LISTS)
@AT
async def test_one_bad_partition(store: Store, judge: Judge, position: str) -> None:
    keys = await _neighbours(store)
    node = await keys[0][0].node()
    connection = await store.env.cluster.to(node)
    counted = store.env.cluster.supports(WRITE, 1)
    expected = {READ: (START, [tuple(b) for b in BATCHES]), SUMMARY: START}
    for api in (INITIALIZE, WRITE, READ, SUMMARY, DELETE):
        fields = _fields(api, counted=counted)
        topics = [
            {
                "topic_id": some[0].topic_id,
                "partitions": among(
                    [{"partition": key.partition} | fields for key in some],
                    {"partition": 1000} | fields,
                    position,
                ),
            }
            for some in keys
        ]
        response = await connection.call(api, group_id=keys[0][0].group, topics=topics)
        parts = {(t.topic_id, p.partition): p for t in response.results for p in t.partitions}
        good = [parts.get((key.topic_id, key.partition)) for some in keys for key in some]
        told = [error_name(part.error_code) if part else "left out" for part in good]
        judge["PER-28"].equal(["NONE"] * MANY**2, told, f"{api}: errors of the good ones")
        bad = [parts.get((some[0].topic_id, 1000)) for some in keys]
        judge["PER-27"].holds(
            all(p and p.error_code for p in bad), f"{api} served what is not there"
        )
        if api in expected:
            seen = [_shown(api, part) for part in good if part]
            rule = "PER-05" if api == READ else "PER-28"
            judge[rule].equal([expected[api]] * MANY**2, seen, f"{api}: what each was answered")
    judge["PER-28"].saw(served=MANY**2 * len(STATE_RPCS))


@check("PER-27", "PER-28", meets=IN_LISTS)
@AT
async def test_one_unknown_topic(store: Store, judge: Judge, position: str) -> None:
    keys = await _neighbours(store)
    env = store.env
    connection = await env.cluster.to(await keys[0][0].node())
    counted = env.cluster.supports(WRITE, 1)
    nowhere = uuid.UUID(bytes=env.rng.randbytes(16))
    for api in (INITIALIZE, WRITE, READ, SUMMARY, DELETE):
        fields = _fields(api, counted=counted)
        good = [
            {
                "topic_id": some[0].topic_id,
                "partitions": [{"partition": key.partition} | fields for key in some],
            }
            for some in keys
        ]
        bad = {"topic_id": nowhere, "partitions": [{"partition": 0} | fields]}
        asked = among(good, bad, position)
        response = await connection.call(api, group_id=keys[0][0].group, topics=asked)
        parts = {(t.topic_id, p.partition): p for t in response.results for p in t.partitions}
        codes = {place: error_name(part.error_code) for place, part in parts.items()}
        told = [codes.get((k.topic_id, k.partition), "left out") for some in keys for k in some]
        judge["PER-28"].equal(["NONE"] * MANY**2, told, f"{api}: errors of the good ones")
        refused = codes.get((nowhere, 0), "NONE")
        judge["PER-27"].holds(refused != "NONE", f"{api} served a topic that is not there")
