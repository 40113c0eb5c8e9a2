"""AlterShareGroupOffsets: what one request does to many partitions, and what it must not do.

What a single alteration means for the deliveries of its partition is with the start offset's rules
(``test_off_alter.py``).
"""

from suites.broker.kit import *


async def _used(env: Env, **options: object) -> Queue:
    """Return a queue with a history in partition 0, and nobody in the group."""
    queue = await env.queue(**options)  # type: ignore[arg-type]
    await use(queue)
    return queue


def _done(judge: Judge, answered: Answered, what: str) -> None:
    judge.equal({NONE}, refusals(answered), f"errors of {what}")


@check("ADM-16", "ADM-18", fast=True, crossed=AMONG)
async def test_one_request_for_many(env: Env, judge: Judge) -> None:
    queue = await _used(env, partitions=2)
    other = await env.admin.create_topic()
    await use(queue, partition=1)
    await use(queue, other)
    name, beside = queue.topic.name, Queue(env=env, topic=other, group=queue.group)
    untouched = {"same topic": await stored(queue, 1), "other topic": await stored(beside)}
    nowhere = env.cluster.fresh_name("t")

    several = {(name, 0): env.rng.randint(0, 10), (name, 9): 0, (nowhere, 0): 0}
    mixed = await alter_offsets(env, queue.group, several, strangers=True)

    codes = {(name, 0): NONE, (name, 9): NO_TOPIC, (nowhere, 0): NO_TOPIC}
    judge["ADM-18"].equal((NONE, codes), mixed, "errors of a request with unknown partitions")
    after = {"same topic": await stored(queue, 1), "other topic": await stored(beside)}
    judge["ADM-16"].equal(untouched, after, "stored state of partitions that were not named")


@check("ADM-23", fast=True, crossed=AMONG)
@pytest.mark.parametrize("loaded", [False, True], ids=["nobody looks", "a leader loads between"])
async def test_the_last_one_holds(env: Env, judge: Judge, *, loaded: bool) -> None:
    # A leader that has loaded the state of the first must not write over the second. It loads
    # for a session of a member that has left: fetching needs no membership.
    queue, consumer = await _paused(env, locked=False)
    epochs = [(await stored(queue))[0]]
    for to in (2, 0):
        answered = await alter_offsets(env, queue.group, {(queue.topic.name, 0): to})
        _done(judge, answered, f"altering to {to}")
        epochs.append((await stored(queue))[0])
        if loaded and to:
            async for _ in attempts():
                counts = (await consumer.fetch()).only.counts
                if sorted(counts) == [*range(to, 10)] and set(counts.values()) == {1}:
                    break
                if counts:
                    await consumer.ack(accept(max(counts)))
            else:
                raise Undecided("the leader never noticed the first alteration")
    if loaded:
        # Refused or not, this write is of a state that was discarded.
        await consumer.ack(accept(2, 9))
        judge.equal((0, []), (await stored(queue))[1:], "stored after an old write")
    else:
        rising = epochs[0] < epochs[1] < epochs[2]
        judge.holds(rising, f"state epochs before and after two alterations: {epochs}")
        judge.equal(0, await queue.spso(0), "start offset that is shown")


@check("ADM-17", fast=True, crossed=AMONG)
@pytest.mark.parametrize("reset", [None, "earliest"])
async def test_alter_makes_the_group(env: Env, judge: Judge, reset: str | None) -> None:
    queue = await env.queue(10, partitions=2, batches=5, reset=reset, untouched=True)
    await queue.produce(10, 1, batches=5)
    group, to = queue.group, {index: env.rng.randint(1, 9) for index in (0, 1)}

    answered = await alter_offsets(env, group, {(queue.topic.name, i): to[i] for i in to})

    _done(judge, answered, "altering the offsets of a group that does not exist")
    made = await listed(env, [group])
    judge.equal({group: ("share", "Empty")}, made, "the group that was made")
    for index, start in to.items():
        counts = await given_anew(queue, index, join=not index)
        judge.delivered(dict.fromkeys(range(start, 11), 1), counts, f"delivered from {start} on")


@check("ADM-19", crossed=AMONG)
async def test_beyond_the_end(env: Env, judge: Judge) -> None:
    # Twenty records one by one: the sentinel that nothing below came is what lies above.
    queue = await _used(env)
    ahead = 10 + env.rng.randint(1, 15)
    answered = await alter_offsets(env, queue.group, {(queue.topic.name, 0): ahead})
    _done(judge, answered, f"altering to {ahead}, beyond the end")
    judge.equal(ahead, await queue.spso(ahead), "start offset that is shown")

    consumer = await queue.consumer()
    early = consumer.sound(await consumer.fetch(max_wait_ms=100))
    await queue.produce(20, batches=20)
    catch = await consumer.drain(until=29)

    judge.equal([], early.offsets, "delivered while the log was shorter")
    judge.equal(list(range(ahead, 30)), catch.offsets, f"delivered from {ahead} on")


@check("ADM-21", fast=True, crossed=AMONG)
async def test_back_to_unset(env: Env, judge: Judge) -> None:
    queue = await _used(env)
    if (await poll(queue.offsets, lambda seen: seen.start != UNSET)).start == UNSET:
        raise Undecided("no start offset is shown before")

    answered = await alter_offsets(env, queue.group, {(queue.topic.name, 0): UNSET})

    _done(judge, answered, "altering to -1")
    judge.equal(UNSET, await queue.spso(UNSET), "start offset that is shown")


@check("ADM-22", crossed=AMONG)
@pytest.mark.parametrize("offset", [-2, -5, -(2**63)])
async def test_other_negative_offsets(env: Env, judge: Judge, offset: int) -> None:
    queue = await _used(env)

    errors = refusals(await alter_offsets(env, queue.group, {(queue.topic.name, 0): offset}))
    allowed = {
        frozenset({"INVALID_REQUEST"}): "AlterShareGroupOffsetsResponse ErrorCode: it is invalid",
        frozenset({NONE}): "KIP-932 §Log retention: the log start bounds it from below",
    }
    judge.one_of(allowed, frozenset(errors), f"errors of altering to {offset}")
    if errors == {NONE}:
        judge.equal(list(range(11)), sorted(await given_anew(queue)), f"delivered after {offset}")


async def _paused(env: Env, *, locked: bool) -> tuple[Queue, Consumer]:
    """Return a consumer that the group has lost, but not its leader: session and locks are open."""
    queue, consumer = await env.with_holder(10, batches=10, lock_ms=env.bounds.longest_lock)
    await consumer.acked(accept(0, 3), *([] if locked else [release(4, 9)]))
    await consumer.member.leave()
    return queue, consumer


@check("ADM-24", fast=True, crossed=AMONG)
@pytest.mark.parametrize("locked", [False, True], ids=["released", "locked"])
async def test_the_leader_forgets(env: Env, judge: Judge, *, locked: bool) -> None:
    # The session that asks is the one that was open all the time: fetching needs no membership.
    queue, consumer = await _paused(env, locked=locked)
    start = env.rng.randint(0, 3)

    answered = await alter_offsets(env, queue.group, {(queue.topic.name, 0): start})
    _done(judge, answered, f"altering to {start}")
    _, caught = await up_to_new(queue, consumer)
    counts = caught.counts

    expected = dict.fromkeys(range(start, 11), 1)
    judge.delivered(expected, counts, f"delivered to the old session from {start} on")


ROUNDS, TOGETHER = 24, 6


async def _raced(env: Env, topic: Topic) -> tuple[str, dict[int, int], dict[int, int]]:
    """Let a join and an alteration of two partitions meet.

    Returns the alteration's error, the offsets it wanted, and the first offset that the new member
    was then given of each partition. The group resets to earliest: 0 is an alteration that is lost.
    """
    queue = Queue(env=env, topic=topic, group=env.cluster.fresh_name("g"))
    await env.admin.group_config(queue.group, {"share.auto.offset.reset": "earliest"})
    wanted = {index: env.rng.randint(1, 9) for index in topic.partitions}
    member = await env.member(queue.group)
    joining = beat(member, member_epoch=0, subscribed_topic_names=[topic.name])
    altering = alter_offsets(env, queue.group, {(topic.name, i): to for i, to in wanted.items()})
    racers = [joining, altering] if env.rng.random() < 0.5 else [altering, joining]
    answered = next(r for r in await asyncio.gather(*racers) if isinstance(r, tuple))
    if refusals(answered) != {NONE}:
        return ",".join(sorted(refusals(answered))), wanted, {}
    await member.join(topic)
    firsts: dict[int, int] = {}
    for index in wanted:
        session = await member.new_session(topic.leaders[index])
        consumer = Consumer(member, session, (topic, index))
        firsts[index] = min((await consumer.acquire(1)).offsets)
        await session.connection.close()
    return NONE, wanted, firsts


@check("ADM-25", meets=IDLE, timeout=90)
async def test_races_with_a_join(env: Env, judge: Judge) -> None:
    topic = await env.admin.create_topic(2)
    for index in topic.partitions:
        await env.admin.produce(topic, 10, index, batches=10)
    for _ in range(ROUNDS // TOGETHER):
        rounds = await asyncio.gather(*(_raced(env, topic) for _ in range(TOGETHER)))
        for error, wanted, firsts in rounds:
            judge.one_of(RACED, error, "error of an alteration in a race")
            if error == NONE:
                judge.equal(wanted, firsts, "first offsets after an accepted alteration")
            judge.saw(**{"accepted" if error == NONE else "refused": 1})


@check("ADM-26", fast=True, crossed=AMONG)
@pytest.mark.parametrize("kind", ["classic", "consumer"])
async def test_not_on_other_kinds(env: Env, judge: Judge, kind: str) -> None:
    await _judge_kind(env, judge, kind)
    if kind == "consumer":
        with contextlib.suppress(OutOfReach):  # streams groups are later, and may be switched off
            await _judge_kind(env, judge, "streams")


async def _judge_kind(env: Env, judge: Judge, kind: str) -> None:
    queue = await env.queue(10)
    group, name = queue.group, queue.topic.name
    if kind == "classic":
        await classic_group(env, queue, group, offset=7)
    else:
        streams = kind == "streams"
        join, beats = (streams_group, streams_beat) if streams else (consumer_group, consumer_beat)
        await beats(env, group, await join(env, queue, group), name, -1)
        if error := await commit_offset(env, queue, group, 7):
            raise Undecided(f"OffsetCommit of an empty {kind} group got {error_name(error)}")

    shown = (await described_offsets(env, {group: {name: [0]}}))[group]
    altered = await alter_offsets(env, group, {(name, 0): 3})
    deleted = await delete_offsets(env, group, name)

    for what, answered in (("altering", altered), ("deleting", deleted)):
        refused = not refusals(answered) & {NONE, UNANSWERED, "UNKNOWN_SERVER_ERROR"}
        judge.holds(refused, f"{what} share offsets of a {kind} group got {answered}")
    seen = set(starts(shown).values())
    judge.holds(seen <= {UNSET}, f"start offsets {seen} are shown of a {kind} group")
    judge.equal([kind], await kind_of(env, group), "kind of the group afterwards")
    offsets = await committed_offsets(env, group)
    judge.equal({(name, 0): 7}, offsets, "committed offsets afterwards")
