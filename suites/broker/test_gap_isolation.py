"""share.isolation.level: who sees what of transactions, however they end, if they end."""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("isolation-level")


@check("GAP-06", "GAP-09", fast=True, crossed=AMONG)
@pytest.mark.parametrize("config", [{}, UNCOMMITTED], ids=["default", "explicit"])
async def test_uncommitted_sees_all(env: Env, judge: Judge, config: dict[str, str]) -> None:
    queue = await env.queue(group_config=config)
    outcomes = await jumble(queue)
    async with TransactionalProducer.open(env.cluster) as producer:
        unfinished = await producer.append(queue.topic, 2)
        last = await queue.produce(1)
        catch = await (await queue.consumer()).drain(until=last)

    seen, expected = offered(catch.responses), outcomes.data | {unfinished, unfinished + 1, last}
    judge["GAP-09"].equal(set(), outcomes.plain - seen, "plain records never delivered")
    judge["GAP-06"].equal([], sorted(expected - seen), "records never delivered")


@check("GAP-07", "GAP-08", "GAP-09", fast=True, crossed=AMONG)
async def test_each_by_its_own_outcome(env: Env, judge: Judge) -> None:
    queue = await env.queue(group_config=COMMITTED)
    outcomes = await jumble(queue)
    caught = await (await queue.consumer()).drain(until=max(outcomes.plain))

    wrong = outcomes.aborted & set(caught.offsets)
    judge["GAP-07"].equal(set(), wrong, "records of aborted transactions that were acquired")
    judge["GAP-07"].saw(aborted=len(outcomes.aborted))
    seen = offered(caught.responses)
    judge["GAP-08"].equal(set(), outcomes.committed - seen, "committed records never delivered")
    judge["GAP-09"].equal(set(), outcomes.plain - seen, "plain records never delivered")


@check("GAP-15", crossed=AMONG)
async def test_interleaved(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=1, group_config=COMMITTED)
    ledger = TransactionLedger(queue)
    async with producers(queue) as (one, two):
        for _ in range(env.rng.randint(2, 4)):
            await ledger.part(one)
            await ledger.part(two)
        await (ledger.commit(one) if env.rng.random() < 0.5 else ledger.commit(two))
    outcomes = await ledger.close()
    last = await queue.produce(1)
    caught = await (await queue.consumer()).drain(until=last)

    seen = offered(caught.responses) - outcomes.markers - {0, last}
    judge.equal(sorted(outcomes.committed), sorted(seen), "records of transactions delivered")
    judge.saw(committed=len(outcomes.committed))


@check("GAP-07", crossed=AMONG)
async def test_interleaved_and_all_aborted(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=1, group_config=COMMITTED)
    ledger = TransactionLedger(queue)
    async with producers(queue) as (one, two):
        for _ in range(env.rng.randint(2, 4)):
            await ledger.part(one)
            await ledger.part(two)
        await ledger.plain()
        await ledger.abort(one)
        await ledger.part(two)
        await ledger.abort(two)
    outcomes = await ledger.close()
    last = await queue.produce(1)
    caught = await (await queue.consumer()).drain(until=last)

    wrong = sorted(outcomes.aborted & set(caught.offsets))
    judge.equal([], wrong, "records of two aborted transactions that were acquired")
    judge.saw(aborted=len(outcomes.aborted))


@check("GAP-41")
async def test_log_start_inside_an_aborted_batch(env: Env, judge: Judge) -> None:
    queue, former = await env.with_holder(3, group_config=COMMITTED)
    await former.acked(accept(0, 2))
    async with TransactionalProducer.open(env.cluster) as producer:
        first = await producer.append(queue.topic, 12)
        last = await queue.produce(4) + 3
        await env.admin.delete_records(queue.topic, first + env.rng.randint(1, 11))
        await producer.abort()
    await former.depart()

    consumer = await queue.consumer(join=False)
    responses: list[Response] = []
    async for _ in attempts(WITHIN):
        responses.append(await consumer.fetch())
        wrong = {*responses[-1].errors} - RETRIABLE
        if wrong or any(last in part.counts for part in responses[-1].parts):
            break
    else:
        raise await consumer.stopped(f"offset {last} never came")
    errors = [error_name(code) for code in sorted(wrong)]
    judge.equal([], errors, "errors of a fetch where the log begins in an aborted batch")
    counts = {o: n for one in responses for part in one.parts for o, n in part.counts.items()}
    data = {offset: counts[offset] for offset in sorted(offered(responses))}
    judge.equal(dict.fromkeys(range(last - 3, last + 1), 1), data, "records, with delivery counts")


@check("GAP-20", crossed=AMONG)
async def test_two_views(env: Env, judge: Judge) -> None:
    queue = await env.queue(group_config=COMMITTED)
    other = await env.sibling(queue)
    outcomes = await jumble(queue)
    last = max(outcomes.plain)
    strict, lax = await queue.consumer(), await other.consumer()
    some, every = await asyncio.gather(strict.drain(until=last), lax.drain(until=last))

    seen = sorted(outcomes.data & offered(some.responses))
    judge.equal(sorted(outcomes.visible), seen, "records of the committed view")
    seen = sorted(outcomes.data & offered(every.responses))
    judge.equal(sorted(outcomes.data), seen, "records of the uncommitted view")


@check("GAP-10", "GAP-11", crossed=AMONG)
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_open_transaction(env: Env, judge: Judge, commit: bool) -> None:
    queue = await env.queue(records=3, group_config=COMMITTED)
    async with TransactionalProducer.open(env.cluster) as producer:
        begun = await producer.append(queue.topic, 2)
        behind = await queue.produce(3) + 2
        consumer = await queue.consumer()
        held_back = await consumer.acquire(3)
        empty = consumer.sound(await consumer.fetch(max_wait_ms=int(NOT_FOR * 1000)))
        early = [o for o in (*held_back.offsets, *empty.offsets) if o >= begun]
        judge["GAP-10"].equal([], early, "offsets acquired beyond the last stable one")

        waiting = asyncio.ensure_future(consumer.drain(until=behind, max_wait_ms=5000))
        await (producer.commit() if commit else producer.abort())
    caught = await waiting
    expected = set(range(begun if commit else begun + 2, behind + 1))
    missing = sorted(expected - offered(caught.responses))
    judge["GAP-11"].equal([], missing, "held back, and not delivered after its end")


@check("GAP-12", crossed=AMONG)
async def test_hanging_transaction(env: Env, judge: Judge) -> None:
    leader = env.rng.choice(sorted(env.cluster.brokers))
    queue = await env.queue(assignments=[[leader]] * 2, group_config=COMMITTED)
    blocked, busy = (queue.topic, 0), (queue.topic, 1)
    async with TransactionalProducer.open(env.cluster) as producer:
        await producer.append(queue.topic, 1)
        await queue.produce(5)
        session = await (await queue.consumer()).member.session(leader)
        seen: dict[int, set[int]] = {0: set(), 1: set()}
        named: tuple[Where, ...] = (blocked, busy)
        for round_ in range(3):
            last = await queue.produce(env.rng.randint(1, 4), 1)
            async for _ in attempts():
                response = Consumer.sound(await session.fetch(*named))
                named = ()
                for part in response.parts:
                    seen[part.partition] |= set(part.offsets)
                if last in seen[1]:
                    break
            if last not in seen[1]:
                sentence = f"the other partition stopped in round {round_}"
                raise await stopped(env.cluster, leader, sentence, session.fetch)
        judge.equal(set(), seen[0], "acquired behind the open transaction")


@check("GAP-13", crossed=AMONG)
@pytest.mark.parametrize("place", ["start", "middle", "end"])
async def test_aborted_settle_themselves(env: Env, judge: Judge, place: str) -> None:
    queue = await env.queue(group_config=COMMITTED)
    size = env.rng.randint(1, 5)
    if place != "start":
        await queue.produce(3)
    dead = await aborted(queue, size)
    if place != "end":
        await queue.produce(3)
    extra = await queue.produce(1) if place == "end" else dead.stop + 3
    consumer = await queue.consumer()
    catch = await consumer.drain(until=extra)
    if wrong := set(dead) & set(catch.offsets):
        raise Undecided(f"aborted offsets {wrong} were acquired, so that they can be acknowledged")
    await consumer.acked(*acknowledge(catch, offered(catch.responses)))

    await rewritten(consumer, await queue.produce(1))
    judge.equal(extra + 1, await queue.spso(extra + 1), "start offset")
    judge.saw(aborted=size)


@check("GAP-14", feature="lag", crossed=AMONG)
async def test_aborted_are_no_lag(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=1, group_config=COMMITTED)
    dead = await aborted(queue, env.rng.randint(2, 6))
    last = await queue.produce(1)
    consumer = await queue.consumer()
    catch = await consumer.drain(until=last)
    del catch.counts[0]
    await consumer.acked(*acknowledge(catch, offered(catch.responses)))

    # The marker may count, too: that it does not, once it is passed, is LAG-11's.
    lag = (await poll(queue.offsets, lambda seen: 1 <= seen.lag <= 2)).lag
    judge.holds(1 <= lag <= 2, f"the lag is {lag} with one record unfinished, and one marker")
    judge.saw(aborted=len(dead))
