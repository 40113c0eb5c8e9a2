"""Locks under races, failures and the end of a session."""

from suites.broker.kit import *


@check("LCK-18", fast=True, crossed=(BESIDE, BEHIND))
async def test_closed_session_frees_interleaved_records(env: Env, judge: Judge) -> None:
    first = env.rng.randint(1, 5)
    last = env.rng.randint(first, first + 4)
    queue = await env.queue(last + 6, lock_ms=env.bounds.longest_lock)
    leaver, stayer, other = [await queue.consumer(join=number == 0) for number in range(3)]
    held = await leaver.acquire(last + 6)
    await leaver.acked(release(first, last))
    between = await stayer.acquire(last - first + 1)
    begun = time.monotonic()
    await leaver.session.close(by_fetch=env.rng.choice([True, False]))

    freed = sorted(set(held.offsets) - set(between.offsets))
    seen = await watch(other, freed, SLACK)

    took = time.monotonic() - begun
    told = f"offsets freed {took:.1f} s after the close"  # what is held besides is ACQ-20's
    judge.equal(freed, sorted(seen.keys() & set(freed)), told)
    judge.saw(freed=len(freed))


@check("LCK-18", crossed=(BESIDE, BEHIND))
async def test_dropped_connection_frees_interleaved_records(env: Env, judge: Judge) -> None:
    queue = await env.queue(12, lock_ms=env.bounds.longest_lock)
    leaver, stayer, other = [await queue.consumer(join=number == 0) for number in range(3)]
    await leaver.acquire(12)
    await leaver.acked(release(2, 3), release(7))
    between = await stayer.acquire(3)
    leaver.session.connection.abort()

    freed = sorted(set(range(12)) - set(between.offsets))
    seen = await watch(other, freed, SLACK)

    if not seen:
        raise OutOfReach("the end of a connection ends no session here (SES-36)")
    judge.equal(freed, sorted(seen.keys() & set(freed)), "offsets freed by the drop")


@check("LCK-16", crossed=(BESIDE, BEHIND))
async def test_acknowledgement_races_with_the_end_of_the_lock(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    count = await in_window(env, 1506) - 6  # some may be held below
    queue, holder, other = await env.with_pair(count, lock_ms=lock)
    await holder.acquire(count, max_records=count)
    await linger(other, (lock - 400) / 1000)

    errors: dict[int, int] = {}
    for offset in range(count):
        errors[offset] = (await holder.ack(accept(offset))).ack_error
        if len([error for error in errors.values() if error]) == 3:
            break
    sentinel = await queue.produce(1)
    accepted = {offset for offset, error in errors.items() if not error}
    wanted = [*sorted(set(range(count)) - accepted), sentinel]
    seen = await watch(other, wanted, SLACK, max_records=2000)

    lasting(*errors.values())
    allowed = {0, int(ErrorCode.INVALID_RECORD_STATE)}
    judge.equal(set(), set(errors.values()) - allowed, "other errors around the end")
    refused = errors.keys() - accepted
    judge.equal([], sorted(accepted & seen.keys()), "accepted and delivered again")
    judge.equal([], sorted(refused - seen.keys()), "refused and never delivered again")
    if not accepted or not refused:
        raise Undecided(f"no race: {len(accepted)} accepted, {len(refused)} refused")
    judge.saw(accepted=len(accepted), refused=len(refused))


@check("LCK-17", crossed=AMONG)
async def test_expiry_does_not_need_the_share_coordinator(env: Env, judge: Judge) -> None:
    lock = env.bounds.lock(1500)
    queue, holder, other = await env.with_pair(5, lock_ms=lock)
    began = time.monotonic()
    await holder.acquire(5)
    other.sound(await other.fetch(max_wait_ms=0))  # joins where it has to, which begins a new state
    # Delete the share-partition's durable state, so that its leader's writes are refused.
    if await StateKey(env, queue.group, queue.topic.id).delete() != "NONE":
        raise Undecided("DeleteShareGroupState is not served to clients here")
    if not (await holder.ack(accept(4))).ack_error:
        raise Undecided("the state was written although the share coordinator had deleted it")
    in_time(began, lock)

    seen = await ending(env, other, range(4), lock)

    # What becomes of the record whose ACCEPT was refused is COO-14's.
    judge.equal([*range(4)], sorted(seen.keys() - {4}), "offsets that came after the lock's end")


@check("LCK-18", crossed=(BESIDE, RELOADED))
async def test_sessions_that_close_together_free_all(env: Env, judge: Judge) -> None:
    queue = await env.queue(30, batches=3, lock_ms=env.bounds.longest_lock)
    members = [await queue.consumer(join=number == 0) for number in range(4)]
    first = members[0]
    await first.acquire(30)
    given = sorted(env.rng.sample(range(30), 12))
    await first.acked(*(release(offset) for offset in given))
    for member in members[1:]:
        await member.fetch(max_records=4)
    await asyncio.gather(*(member.close() for member in members))

    seen = await watch(await queue.consumer(join=False), range(30), SLACK)

    judge.equal(list(range(30)), sorted(seen), "offsets that came back after the closes")
