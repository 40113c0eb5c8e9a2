"""How the writes of a share-partition add up, compared with the model's durable state.

Written batches overlap, straddle the start offset and repeat. Apache's coordinator keeps for each
offset the entry with the highest delivery count and, between equal counts, the further advanced
state. KIP-932 does not say which of several entries is kept, and findings 027 and 028 come of that
choice: an offset is judged against the model only where every choice keeps the same entry.
"""

import itertools

from spec.model.durable import Coordinator
from suites.broker.kit import *

Written = dict[int, list[tuple[int, int]]]
"""What each offset was written as, (state, count), one after the other."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A share-partition after some writes: as Read shows it, as the model has it, as written."""

    start: int
    part: Struct
    expected: dict[int, tuple[int, int]]
    written: Written


async def _histories(store: Store, writes: int) -> AsyncIterator[_Seen]:
    """Write at random; tell now and then what is read and what was written."""
    rng = store.env.rng
    start = rng.randint(0, 40)
    key = await store.initialized(start=start)
    model = Coordinator(store.release)
    model.initialize(0, start)
    written: Written = {}
    for number in range(writes):
        # Write something random to the coordinator and to the model.
        goes_to = rng.choice([-1, start, start + rng.randint(1, 5)])
        batches = some_batches(rng, start)
        error = await key.write(*batches, start=goes_to)
        if error != "NONE":
            raise Undecided(f"a Write that should succeed answered {error}")
        model.write(state_epoch=0, leader_epoch=0, start=goes_to, batches=batches)
        for batch in batches:
            for offset, entry in per_offset([batch]).items():
                written.setdefault(offset, []).append(entry)
        start = max(goes_to, start)
        if number % 4 == 3 and model.state is not None:
            expected = per_offset(model.state.batches)
            part = await key.read()
            yield _Seen(start=model.state.start, part=part, expected=expected, written=written)


@check("PER-05", "PER-16", "PER-17", fast=True, crossed=KEYS)
@pytest.mark.parametrize("writes", [8, 16, 32])
async def test_random_writes(store: Store, judge: Judge, writes: int) -> None:
    async for now in _histories(store, writes):
        batches = batches_of(now.part)
        seen = per_offset(batches)
        judge["PER-05"].equal(now.start, now.part.start_offset, "start offset")
        below = [offset for offset in seen if offset < now.start]
        judge["PER-16"].equal([], below, f"offsets with a state below the start {now.start}")
        strange = {o: entry for o, entry in seen.items() if entry not in now.written.get(o, ())}
        judge["PER-17"].equal({}, strange, "states and counts that no Write gave the offset")
        twice = sum(batch.last - batch.first + 1 for batch in batches) - len(seen)
        judge["PER-17"].equal(0, twice, "offsets that are read more than once")
        judge["PER-05"].equal(
            ("NONE", 0), read_result(now.part)[:2], "error and state epoch of Read"
        )
        judge["PER-05"].equal(set(now.expected), set(seen), "offsets that are read")
        # Those never finished before, whose last entry has the highest count and furthest state.
        begun = (o for o, seen in now.written.items() if not any(state for state, _ in seen[:-1]))
        plain = {o: e for o in begun if (e := now.expected.get(o)) == now.written[o][-1]}
        shared = {offset: seen[offset] for offset in plain}
        judge["PER-05"].equal(plain, shared, "state and count of each offset")
        judge["PER-05"].saw(offsets=len(seen))


@check("PER-18", fast=True, crossed=KEYS)
@pytest.mark.parametrize("writes", [16, 32])
async def test_random_writes_are_few_batches(store: Store, judge: Judge, writes: int) -> None:
    async for now in _histories(store, writes):
        batches = sorted(batches_of(now.part))
        apart = [
            (a, b)
            for a, b in itertools.pairwise(batches)
            if b.first == a.last + 1 and a[2:] == b[2:]
        ]
        judge.equal([], apart, "batches, neighbours joined")


@check("PER-14", fast=True, crossed=KEYS)
async def test_start_offset_left_out(store: Store, judge: Judge) -> None:
    key = await store.initialized(start=7)
    await key.written(start=20)
    before = (await key.read()).start_offset
    batch = StateBatch(22, 25, ACKNOWLEDGED, 2)
    judge.equal("NONE", await key.write(batch, start=-1), "error of a Write with -1")

    expected = ("NONE", 0, before, (batch,))
    judge.equal(expected, read_result(await key.read()), "state after it")


async def _raised(store: Store, **counted: int) -> tuple[StateKey, int]:
    key, high = await store.initialized(start=0), store.env.rng.randint(10, 50)
    await key.written(start=high, **counted)
    if (await key.read()).start_offset != high:
        raise Undecided(f"a Write did not raise the start offset to {high}")
    return key, high


@check("PER-15", fast=True, crossed=KEYS)
async def test_start_offset_goes_back(store: Store, judge: Judge) -> None:
    key, high = await _raised(store)
    await key.write(StateBatch(high, high, AVAILABLE, 1), start=high - 3)

    what = f"start offset after {high} and then {high - 3}"
    judge.equal(high, (await key.summary()).start_offset, f"{what}, of the summary")
    judge.equal(high, (await key.read()).start_offset, f"{what}, of Read")


@check("PER-15", feature="complete-count", fast=True, crossed=KEYS)
async def test_complete_count_goes_back(store: Store, judge: Judge) -> None:
    key, high = await _raised(store, complete=4)
    await key.write(StateBatch(high, high, AVAILABLE, 1), start=high - 3, complete=9)

    part = await key.summary()
    stored = (part.start_offset, part.delivery_complete_count)
    what = f"start offset and complete count after {high} and then {high - 3}"
    judge.equal((high, 4), stored, what)


@check("PER-16", fast=True, crossed=KEYS)
async def test_start_offset_cuts(store: Store, judge: Judge) -> None:
    rng = store.env.rng
    key = await store.initialized(start=0)
    low, high = StateBatch(0, 9, ACKNOWLEDGED, 1), StateBatch(40, 49, ARCHIVED, 2)
    middle = StateBatch(20, 29, AVAILABLE, 3)
    await key.written(low, middle, high, start=0)
    cut = rng.randint(21, 29)
    await key.written(start=cut)

    expected = ("NONE", 0, cut, (middle._replace(first=cut), high))
    judge.equal(expected, read_result(await key.read()), f"state after the start offset {cut}")


@check("PER-18", fast=True, crossed=KEYS)
async def test_single_offsets_become_one_batch(store: Store, judge: Judge) -> None:
    key = await store.initialized(start=0)
    offsets = list(range(store.env.rng.randint(10, 30)))
    store.env.rng.shuffle(offsets)
    for offset in offsets:
        await key.written(StateBatch(offset, offset, ACKNOWLEDGED, 1))

    expected = (StateBatch(0, len(offsets) - 1, ACKNOWLEDGED, 1),)
    judge.equal(expected, batches_of(await key.read()), "batches of a uniform range")


async def _timed(key: StateKey, batches: list[StateBatch]) -> tuple[str, float]:
    """Return the error of a Write and the seconds it took, our own encoding included."""
    began = time.monotonic()
    return await key.write(*batches), time.monotonic() - began


@check("PER-05", "PER-19", meets="second partition")
async def test_alternating_batches(store: Store, judge: Judge) -> None:
    _, key, _ = await store.keys(3)
    await key.begun()
    # As many as the largest in-flight window that a group can be given.
    broker = await store.env.admin.broker_configs()
    names = ("group.share.max.partition.max.record.locks", "group.share.partition.max.record.locks")
    count = next(int(broker[name]) for name in names if name in broker)
    node = await key.node()
    configs = await store.env.admin.configs(BROKER_RESOURCE, str(node), node=node)
    limit = int(configs["share.coordinator.write.timeout.ms"]) / 1000
    first = [StateBatch(o, o, AVAILABLE, 1 + o % 2) for o in range(count)]
    second = [StateBatch(o, o, (ARCHIVED, ACKNOWLEDGED)[o % 2], 3) for o in range(count)]
    for batches in (first, second):
        error, took = await _timed(key, batches)
        judge["PER-19"].equal("NONE", error, f"error of a Write of {count} batches")
        if took >= limit:
            uniform = [StateBatch(o, o, ACKNOWLEDGED, 1) for o in range(count)]
            _, control = await _timed(await store.initialized(start=0), uniform)
            if control >= limit / 10:
                raise Undecided(f"also {count} batches in one state took {control:.1f} s")
        judge["PER-19"].holds(took < limit, f"a Write of {count} batches took {took:.1f} s")

    judge["PER-05"].equal(tuple(second), joined(await key.read()), "batches after both")
    judge["PER-19"].saw(batches=count)


@check("PER-20", feature="complete-count", fast=True, crossed=KEYS)
async def test_complete_count(store: Store, judge: Judge) -> None:
    rng = store.env.rng
    key = await store.initialized(start=0)
    start = count = 0
    for step in (rng.randint(1, 9), 0, rng.randint(1, 9), 0):
        # From one start offset on the count only grows: a lower one is of an older write.
        start, count = start + step, rng.randint(1, 250) + (0 if step else count)
        await key.written(start=start, complete=count)
        part = await key.summary()
        seen = (error_name(part.error_code), part.start_offset, part.delivery_complete_count)
        judge.equal(("NONE", start, count), seen, "error, start and complete count")
