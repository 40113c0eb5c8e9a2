"""Share-partitions without state, summaries of what there is, and how state goes away."""

from suites.broker.kit import *

INVALID = "INVALID_REQUEST"
SOME = (StateBatch(12, 14, ACKNOWLEDGED, 1), StateBatch(17, 17, AVAILABLE, 3))


async def start_in_summary(key: StateKey) -> tuple[str, int]:
    part = await key.summary()
    return error_name(part.error_code), part.start_offset


@check("PER-04", fast=True, crossed=KEYS)
async def test_read_before_initialize(store: Store, judge: Judge) -> None:
    key = await store.key()
    trail, before = await key.trail(), await start_in_summary(key)

    for epoch in (0, 5):
        error = error_name((await key.read(leader_epoch=epoch)).error_code)
        judge.equal(INVALID, error, f"error of a Read with leader epoch {epoch}")
    judge.equal(before, await start_in_summary(key), "summary after the Read")
    judge.equal([], await trail.records(), "records written by a refused Read")


@check("PER-09", fast=True, crossed=KEYS)
async def test_write_before_initialize(store: Store, judge: Judge) -> None:
    key, never = await store.key(), await store.key()  # a Read may make state, which is PER-04's
    trail = await key.trail()

    judge.equal(INVALID, await key.write(*SOME, start=10), "error of the Write")
    judge.equal([], await trail.records(), "records written by a refused Write")
    judge.equal(read_result(await never.read()), read_result(await key.read()), "a Read after it")


@check("PER-21", fast=True, crossed=KEYS)
async def test_summary_changes_nothing(store: Store, judge: Judge) -> None:
    rng = store.env.rng
    state, leader = rng.randint(0, 99), rng.randint(1, 99)
    key = await store.initialized(state, 3)
    await key.read(leader_epoch=leader)
    await key.written(*SOME, state_epoch=state, leader_epoch=leader, start=10)
    if await key.write(state_epoch=state, leader_epoch=leader - 1) == "NONE":
        raise Undecided("a Read raised no leader epoch that Writes go by, see PER-07 and PER-10")
    before = read_result(await key.read(leader))
    trail = await key.trail()

    for _ in range(3):
        part = await key.summary(leader)
        seen = (part.error_code, part.state_epoch, part.leader_epoch, part.start_offset)
        judge.equal((0, before[1], leader, before[2]), seen, "error, epochs and start offset")
    await key.summary(leader + 1)  # which may be refused, and may not raise anything
    judge.equal(before, read_result(await key.read(leader)), "state after four summaries")
    judge.equal([], await trail.records(), "records written by summaries")


@check("PER-22", fast=True, crossed=KEYS)
async def test_summary_without_state(store: Store, judge: Judge) -> None:
    key = await store.key()

    judge.equal(("NONE", -1), await start_in_summary(key), "error and start offset")


@check("PER-23", fast=True, crossed=KEYS)
async def test_deleted_state_is_gone(store: Store, judge: Judge) -> None:
    key = await store.initialized(4, 10)
    await key.written(*SOME, state_epoch=4, start=10)
    await key.read(leader_epoch=9)
    trail = await key.trail()
    judge.equal("NONE", await key.delete(), "error of the Delete")

    never = read_result(await (await store.key()).read(leader_epoch=9))
    judge.equal(never, read_result(await key.read(leader_epoch=9)), "a Read after the Delete")
    records = await trail.records()
    last = records[-1].tombstone if records else None
    judge.equal(True, last, f"the last record of {STATE_TOPIC} being a tombstone")
    judge.equal("NONE", await key.initialize(0, 3), "error of a first Initialize again")
    judge.equal(("NONE", 0, 3, ()), read_result(await key.read()), "state begun anew")


@check("PER-24", fast=True, crossed=KEYS)
async def test_deleting_nothing(store: Store, judge: Judge) -> None:
    never, twice = await store.key(), await store.initialized()
    if await twice.delete() != "NONE":
        raise Undecided("there is state that cannot be deleted")
    trails = [await key.trail() for key in (never, twice)]

    for key in (never, twice):
        judge.equal("NONE", await key.delete(), "error of deleting nothing")
    for trail in trails:
        judge.equal([], await trail.records(), "records written by deleting nothing")


@check("PER-38", meets="second partition")
async def test_deleted_topic(store: Store, judge: Judge) -> None:
    topic = await store.env.admin.create_topic(3)
    keys = [*await store.on(topic), *await store.on(topic)]
    for key in keys:
        await key.begun(1, 10)
        await key.written(*SOME, state_epoch=1, start=10)
    trails = [await key.trail() for key in keys]
    await store.env.admin.delete_topics(topic.name)

    gone = 0
    async for _ in attempts():
        ends = [await trail.records() for trail in trails]
        gone = sum(bool(records) and records[-1].tombstone for records in ends)
        if gone == len(keys):
            break
    if gone < len(keys) and not await goes_on(store.env.cluster, topic.leaders[0]):
        raise Undecided("the broker delivers no record of another topic either")
    judge.equal(len(keys), gone, "keys of a deleted topic that end with a tombstone")
    anew = await store.env.admin.create_topic(3, name=topic.name)
    for key in [k for old in (keys[0], keys[3]) for k in await store.on(anew, old.group)]:
        judge.equal(("NONE", -1), await start_in_summary(key), "summary of the new topic")
