"""All or nothing: acknowledgements of one partition stand or fall together, partitions alone."""

from suites.broker.kit import *

WRONG_STATE = "INVALID_RECORD_STATE"
COUNT = 30
ROUNDS = 40


@check("ACK-37", fast=True)
async def test_one_bad_offset_refuses_all(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    bad = env.rng.randint(5, 24)
    await consumer.acked(accept(bad))
    below, above = accept(1, bad - 1), release(bad + 1, COUNT - 1)
    lists: dict[str, tuple[Ack, ...]] = {
        "the bad offset in the middle": (below, accept(bad), above),
        "at the end": (below, accept(bad)),
        "at the start": (release(bad), above),
        "inside one batch": (reject(1, COUNT - 1),),
        "among single types": (each(bad - 3, (1, 2, 3, 1, 2, 0)),),
        "among single batches": tuple(singly(range(1, COUNT), AckType.RELEASE)),
    }
    for where, batches in lists.items():
        judge_refusal(judge, await consumer.ack(*batches), f"ShareAcknowledge with it {where}")
        response = await consumer.fetch(*batches, max_wait_ms=0)
        judge_refusal(judge, result_in(response, consumer), f"ShareFetch, {where},")
    for batches in ((below, accept(bad + 1, COUNT + 5)), (below, Ack(bad + 1, bad + 1, (9,)))):
        told = result(await consumer.ack(*batches))
        judge_refusal(judge, told, f"ShareAcknowledge with {batches[1]} behind good ones")
    rest = [offset for offset in range(1, COUNT) if offset != bad]
    await judge_held(judge, consumer, rest, "refusals for one bad offset")


@check("ACK-40", fast=True, crossed=AMONG)
@pytest.mark.parametrize("batches", [1, COUNT])
async def test_range_across_another_members_record(env: Env, judge: Judge, batches: int) -> None:
    queue, ours = await env.with_holder(COUNT, batches=batches)
    theirs = await queue.consumer(join=False)
    first = env.rng.randint(3, 20)
    his = range(first, first + env.rng.randint(1, 5))
    await ours.acked(release(his[0], his[-1]))
    await theirs.acquire(len(his))
    for kind in (AckType.ACCEPT, AckType.RELEASE, AckType.REJECT, AckType.GAP):
        for low, high in ((1, COUNT - 1), (1, his[0]), (his[-1], COUNT - 1)):
            for who, name in ((ours, "the holder of most"), (theirs, "the other")):
                told = result(await who.ack(Ack(low, high, (kind,))))
                judge_refusal(judge, told, f"{kind.name} {low}..{high} by {name}")
    mine = [offset for offset in range(1, COUNT) if offset not in his]
    await judge_held(judge, ours, mine, "ranges across another member's records")
    await judge_held(judge, theirs, his, "ranges across its records")


@check("ACK-38", fast=True)
async def test_partitions_are_independent(env: Env, judge: Judge) -> None:
    several = await spread(env, 5, records=6)
    await several.acknowledge(*([accept(5)] for _ in range(5)))
    kinds: list[tuple[list[Ack], dict[int, int]]] = [
        ([accept(0, 2), release(3), reject(4)], {3: 2}),
        ([each(0, (2, 1, 0, 3, 2))], {0: 2, 4: 2}),
        ([release(0, 4), accept(5)], {}),
        ([release(0, 3), Ack(4, 4, (77,))], {}),
        ([release(1, 2), reject(5)], {}),
    ]
    env.rng.shuffle(kinds)
    results = await several.acknowledge(*(acks for acks, _ in kinds))
    if any(told == "NONE" for told, (_, left) in zip(results, kinds, strict=True) if not left):
        raise Undecided(f"what has to be refused was not: {results}")
    for index, (acks, expected) in enumerate(kinds):
        if expected:  # whether nothing of the others is done is ACK-37's
            judge.equal("NONE", results[index], f"result of {acks}, beside others")
            left = await several.left(index)
            judge.delivered(expected, left, f"available after {acks}, beside others")


@check("ACK-39", crossed=AMONG)
async def test_refusals_say_why(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(6)
    await consumer.acked(accept(2))
    for batch in (accept(1, 2), accept(8, 9)):
        part = await consumer.ack(batch)
        response = await consumer.fetch(batch, max_wait_ms=0)
        error = result(part)
        if "NONE" in (error, result_in(response, consumer)):
            raise Undecided(f"{batch} is not refused")
        judge.holds(part.ack_message, f"{error} of ShareAcknowledge came without a message")
        said = response.message or response.only.ack_message
        judge.holds(said, f"{error} of ShareFetch came without a message")


@check("ACK-41", crossed=AMONG)
async def test_refused_release_is_never_seen(env: Env, judge: Judge) -> None:
    began, lock = time.monotonic(), env.bounds.longest_lock
    queue, consumer = await env.with_holder(COUNT, lock_ms=lock)
    watcher = await queue.consumer(join=False)
    seen: list[int] = []
    fetches = 0
    done = asyncio.Event()

    async def watch() -> None:
        nonlocal fetches
        while not done.is_set():
            seen.extend(watcher.sound(await watcher.fetch(max_wait_ms=20)).offsets)
            fetches += 1

    await consumer.acked(accept(COUNT - 1))
    watching = asyncio.create_task(watch())
    try:
        for _ in range(ROUNDS):
            part = await consumer.ack(*singly(range(1, COUNT), AckType.RELEASE))
            if result(part) in {"NONE", LEFT_OUT}:
                raise Undecided("releasing all with a settled record is not refused")
    finally:
        done.set()
        await watching
    in_time(began, lock)
    judge.equal([], sorted(set(seen)), "records that a concurrent fetch acquired")
    judge.saw(refused=ROUNDS, fetches=fetches)
    await judge_held(judge, consumer, range(1, COUNT - 1), "the refused releases")


@check("ACK-42", crossed=AMONG)
async def test_start_offset_moves_by_requests(env: Env, judge: Judge) -> None:
    rounds, size = 20, await in_window(env, 300) // 20
    queue, consumer = await env.with_consumer(rounds * size)
    await consumer.acquire(rounds * size)
    starts: set[int] = set()
    done = asyncio.Event()

    async def watch() -> None:
        while not done.is_set():
            starts.add((await queue.offsets()).start)

    watching = asyncio.create_task(watch())
    try:
        for first in range(0, rounds * size, size):
            kinds = [env.rng.choice((accept, reject, gap)) for _ in range(size)]
            await consumer.acked(*(kind(o) for o, kind in enumerate(kinds, first)))
            starts.add((await queue.offsets()).start)
    finally:
        done.set()
        await watching
    if len(starts) < rounds // 2:
        raise Undecided(f"of {rounds} start offsets only {sorted(starts)} were seen")
    # -1 is no start offset: nothing was written yet, or the coordinator could not be asked.
    between = sorted(start for start in starts if start >= 0 and start % size)
    judge.equal([], between, f"start offsets seen within requests of {size} records")
    judge.saw(start_offsets=len(starts))


@check("ACK-43", fast=True, crossed=(BESIDE, BEHIND))
async def test_one_of_many_members_wins(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(8)
    rivals = [await queue.consumer(join=False) for _ in range(15)]
    await gather_all(rival.fetch(max_wait_ms=0) for rival in rivals)
    everybody = [*rivals, consumer]
    for offset in range(1, 8):
        env.rng.shuffle(everybody)
        parts = await gather_all(who.ack(accept(offset)) for who in everybody)
        _judge_one(judge, offset, map(result, parts))


@check("ACK-43")
async def test_one_of_many_attempts_wins(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(8)
    session = consumer.session
    final = [AckType.ACCEPT, AckType.REJECT, AckType.GAP]
    for offset in range(1, 8):
        kinds = env.rng.choices(final, k=16)
        epochs = range(session.epoch, session.epoch + 16)
        responses = await gather_all(
            session.acknowledge({consumer.where: [Ack(offset, offset, (kind,))]}, epoch=epoch)
            for kind, epoch in zip(kinds, epochs, strict=True)
        )
        _judge_one(judge, offset, (result_in(response, consumer) for response in responses))


def _judge_one(judge: Judge, offset: int, results: Iterable[str]) -> None:
    told = Counter(results)  # which error the others get, and who is the one, is ACK-31's
    if not told["NONE"] and told.keys() != {WRONG_STATE}:
        raise Undecided(f"the one acknowledgement of offset {offset} may have failed: {told}")
    judge.equal(1, told["NONE"], f"acknowledgements of offset {offset} told NONE, of {told}")


async def replace_state(queue: Queue, consumer: Consumer) -> None:
    """Have the durable state replaced behind the leader's back, starting again at offset 0.

    AlterShareGroupOffsets does it for an empty group, which a live session does not disturb. 4.1
    leaves out topics that no member subscribes to (KAFKA-19662), so the coordinator is told itself.
    """
    await consumer.member.leave()
    response = await queue.env.admin.alter_offset(queue.group, queue.topic, 0)
    if response.error_code or any(p.error_code for t in response.responses for p in t.partitions):
        raise Undecided(f"AlterShareGroupOffsets was refused: {response}")
    if response.responses:
        return
    error = await StateKey(queue.env, queue.group, queue.topic.id).initialize(1000)
    if error != "NONE":
        raise Undecided(f"InitializeShareGroupState was refused: {error}")


@check("ACK-44", crossed=AMONG)
async def test_acknowledgement_that_is_not_durable(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(8)
    await consumer.acked(accept(0, 1))
    await replace_state(queue, consumer)
    part = await consumer.ack(accept(2, 4), reject(5))
    judge_refusal(judge, raw_result(part), "the acknowledgement after the state was replaced")
    stranger = await queue.consumer(join=False)
    catch = await stranger.acquire(8)
    # The new state begins at 0 again and knows nothing of what was settled before it.
    judge.equal(list(range(8)), catch.offsets, "records delivered from the new state")
