"""State epochs and leader epochs: who may still read and write a share-partition's state.

An Initialize begins a new state epoch, a Read with a higher leader epoch begins that leader's time;
whoever comes with an older one is fenced (KIP-932 §Managing durable share-partition state).
"""

from suites.broker.kit import *

SOME = (StateBatch(12, 14, ACKNOWLEDGED, 1), StateBatch(17, 17, AVAILABLE, 3))
"""State batches above the start offset 10."""

FENCED_LEADER, FENCED_STATE = "FENCED_LEADER_EPOCH", "FENCED_STATE_EPOCH"


async def led(store: Store, epoch: int) -> StateKey:
    key = await store.initialized(start=10)
    await key.written(*SOME, start=10)
    part = await key.read(leader_epoch=epoch)
    if part.error_code or await key.write(leader_epoch=epoch - 1) != FENCED_LEADER:
        raise Undecided("the leader epoch could not be raised")
    return key


@check("PER-01", fast=True, crossed=KEYS)
@pytest.mark.parametrize("start", [-1, 0, 5_000_000_000])
async def test_initialized_is_read(store: Store, judge: Judge, start: int) -> None:
    key = await store.key()
    epoch = store.env.rng.randint(0, 1000)
    judge.equal("NONE", await key.initialize(epoch, start), "error of the first Initialize")

    expected = ("NONE", epoch, start, ())
    judge.equal(expected, read_result(await key.read()), "error, epoch, start and batches")


@check("PER-02", fast=True, crossed=KEYS)
async def test_initialize_with_older_epoch(store: Store, judge: Judge) -> None:
    epoch = store.env.rng.randint(1, 1000)
    key = await store.initialized(epoch, 10)
    await key.written(*SOME, state_epoch=epoch, start=10)
    trail = await key.trail()

    for older in (0, epoch - 1):
        error = await key.initialize(older, 99)
        judge.equal(FENCED_STATE, error, f"error of epoch {older} after {epoch}")
    judge.equal(("NONE", epoch, 10, SOME), read_result(await key.read()), "state after the refusal")
    judge.equal([], await trail.records(), "records written by a refused Initialize")


@check("PER-03", fast=True, crossed=KEYS)
async def test_initialize_replaces(store: Store, judge: Judge) -> None:
    key = await store.initialized(1, 10)
    await key.written(StateBatch(10, 20, ARCHIVED, 9), state_epoch=1, start=10)
    trail = await key.trail()
    start = store.env.rng.randint(0, 15)
    judge.equal("NONE", await key.initialize(2, start), "error of a newer epoch")

    expected = ("NONE", 2, start, ())
    judge.equal(expected, read_result(await key.read()), "state after a newer Initialize")
    kept = replayed(await trail.records(), store.release)
    judge.equal((), kept and kept.batches, "state batches in the records it wrote")
    fresh = StateBatch(start, start + 20, AVAILABLE, 1)
    await key.written(fresh, state_epoch=2)
    judge.equal((fresh,), joined(await key.read()), "batches written after it")


@check("PER-06", fast=True, crossed=KEYS)
async def test_read_by_older_leader(store: Store, judge: Judge) -> None:
    epoch = store.env.rng.randint(1, 1000)
    key = await led(store, epoch)

    for older in (0, epoch - 1):
        part = await key.read(leader_epoch=older)
        what = f"error of a Read with {older} after {epoch}"
        judge.equal(FENCED_LEADER, error_name(part.error_code), what)


@check("PER-07", "PER-10", fast=True, crossed=KEYS)
async def test_write_by_older_leader(store: Store, judge: Judge) -> None:
    epoch = store.env.rng.randint(1, 1000)
    key = await store.initialized(start=10)
    await key.written(*SOME, start=10)
    part = await key.read(leader_epoch=epoch)
    judge["PER-07"].equal("NONE", error_name(part.error_code), "error of a higher leader epoch")
    trail = await key.trail()

    late = StateBatch(12, 30, ARCHIVED, 9)
    error = await key.write(late, leader_epoch=epoch - 1, start=20)
    raised = (await key.summary(epoch)).leader_epoch == epoch  # then it is PER-10 that is broken
    told = f"the former leader's Write was answered {error}, and the epoch was not raised"
    judge["PER-07"].holds(raised or error == FENCED_LEADER, told)
    judge["PER-10"].equal(FENCED_LEADER, error, "error of the former leader's Write")
    newest = epoch + store.env.rng.randint(1, 5)
    await key.read(leader_epoch=newest)
    before = await trail.records()
    for older in (0, epoch, newest - 1):
        error = await key.write(late, leader_epoch=older, start=20)
        judge["PER-10"].equal(FENCED_LEADER, error, f"error of a Write with {older} after {newest}")
    seen = read_result(await key.read(leader_epoch=newest))
    judge["PER-10"].equal(read_result(part), seen, "state after refused Writes")
    written = (await trail.records())[len(before) :]
    judge["PER-10"].equal([], written, "records written by refused Writes")


@check("PER-08", fast=True, crossed=KEYS)
async def test_read_without_leader_epoch(store: Store, judge: Judge) -> None:
    key = await led(store, 5)

    error = error_name((await key.read(leader_epoch=-1)).error_code)
    allowed = {
        "NONE": "PER-08 as Apache's issue KAFKA-20694 has it: a Read without an epoch is served",
        "INVALID_REQUEST": "ReadShareGroupStateResponse ErrorCode: INVALID_REQUEST is supported",
    }
    judge.one_of(allowed, error, "error of a Read with -1 after 5")


@check("PER-11", fast=True, crossed=KEYS)
async def test_write_of_older_state(store: Store, judge: Judge) -> None:
    epoch = store.env.rng.randint(1, 1000)
    key = await store.initialized(epoch - 1, 10)
    await key.begun(epoch, 10)
    if (before := read_result(await key.read()))[1] != epoch:
        raise Undecided(f"Initialize with state epoch {epoch} left {before}, see PER-03")
    trail = await key.trail()

    for older in (0, epoch - 1):
        error = await key.write(*SOME, state_epoch=older, start=20)
        judge.equal(FENCED_STATE, error, f"error of a Write with {older} after {epoch}")
    judge.equal(before, read_result(await key.read()), "state after refused Writes")
    judge.equal([], await trail.records(), "records written by refused Writes")


@check("PER-12", fast=True, crossed=KEYS)
@pytest.mark.parametrize("ahead", ["leader_epoch", "state_epoch"])
async def test_write_raises_no_epoch(store: Store, judge: Judge, ahead: str) -> None:
    key = await store.initialized(3, 10)
    await key.read(leader_epoch=3)
    epochs = {"leader_epoch": 3, "state_epoch": 3}
    before = await key.summary(3)
    await key.write(*SOME, **(epochs | {ahead: 9}))

    part = await key.summary(3)
    stored, kept = ((each.state_epoch, each.leader_epoch) for each in (part, before))
    judge.equal(kept, stored, f"state and leader epoch after a Write with {ahead} 9")
    seen = await key.read(leader_epoch=3)
    judge.equal(("NONE", 3), read_result(seen)[:2], "Read with the epoch that was there")
    error = await key.write(StateBatch(30, 30, AVAILABLE, 1), **epochs)
    judge.equal("NONE", error, "error of a Write with the epochs that were there")


NEGATIVE: list[tuple[str, dict[str, Any]]] = [
    (READ, {"leader_epoch": -(2**31)}),
    (WRITE, {"leader_epoch": -1, "state_epoch": 0, "start_offset": 11}),
    (WRITE, {"leader_epoch": 0, "state_epoch": -1, "start_offset": 11}),
    (WRITE, {"leader_epoch": -7, "state_epoch": -7, "start_offset": 11}),
    (INITIALIZE, {"state_epoch": -1, "start_offset": 11}),
    (INITIALIZE, {"state_epoch": -9, "start_offset": 11}),
]


@check("PER-13", fast=True, crossed=KEYS)
async def test_negative_epochs(store: Store, judge: Judge) -> None:
    key = await store.initialized(start=10)
    for api, fields in NEGATIVE:
        error = error_name((await key.ask(api, **fields)).error_code)
        judge.equal("INVALID_REQUEST", error, f"error of {api} with {fields}")
    judge.equal(("NONE", 0, 10, ()), read_result(await key.read()), "state after all of them")
