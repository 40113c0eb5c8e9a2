"""Who serves a ShareFetch, and whom: leaders, members, share-partitions that are not ready."""

from suites.broker.kit import *


def _another(env: Env, leader: int) -> int:
    """Return a broker that does not lead; a cluster of one has none."""
    others = sorted(set(env.cluster.brokers) - {leader})
    if not others:
        raise OutOfReach("the cluster has one broker; the rule takes a second one")
    return env.rng.choice(others)


@check("ACQ-01", fast=True, crossed=AMONG)
async def test_only_the_leader_serves(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(records=5)
    leader = queue.topic.leaders[0]
    wrong = await consumer.member.session(_another(env, leader))

    response = await wrong.fetch(consumer.where)
    part = response.only
    got = await consumer.acquire(5)

    judge.equal(0, response.error, "error of the other broker's whole response")
    judge.one_of(NOT_HERE, error_name(part.error), "its error for the partition")
    judge.equal([], part.offsets, "offsets acquired from the other broker")
    judge.delivered(dict.fromkeys(range(5), 1), got.counts, "counts at the leader afterwards")


@check("ACQ-02", fast=True, crossed=AMONG)
async def test_former_leader_names_the_next(env: Env, judge: Judge) -> None:
    former, leader = two_brokers(env)
    queue, consumer = await env.with_holder(1, assignments=[[former, leader]])
    await env.admin.move_leader(queue.topic, leader)
    told = await poll(
        lambda: consumer.fetch(max_wait_ms=0), lambda seen: seen.only.leader[0] == leader
    )
    if told.only.error != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise Undecided(f"the former leader answered errors {told.errors}")
    known = await consumer.session.connection.call("Metadata", topics=[{"name": queue.topic.name}])
    epoch = known.topics[0].partitions[0].leader_epoch
    judge.equal((leader, epoch), told.only.leader, "leader and epoch in CurrentLeader")
    named = told.endpoints.get(leader)
    judge.equal(env.cluster.brokers[leader], named, "the leader's NodeEndpoint")


@check("ACQ-03", crossed=AMONG)
async def test_leader_move_ends_the_wait(env: Env, judge: Judge) -> None:
    nodes = env.rng.sample(sorted(env.cluster.brokers), k=len(env.cluster.brokers))[:2]
    _another(env, nodes[0])
    queue, consumer = await env.with_holder(1, assignments=[nodes])
    waiting = asyncio.create_task(consumer.fetch(max_wait_ms=40_000, timeout=60))
    await asyncio.wait([waiting], timeout=0.5)
    if waiting.done():
        raise Undecided(f"the fetch did not wait: {waiting.result()}")

    await env.admin.move_leader(queue.topic, nodes[1])
    done, _ = await asyncio.wait([waiting], timeout=WITHIN)
    waiting.cancel()
    if not done and not await goes_on(env.cluster, nodes[0]):
        raise Undecided("the fetch still waited, and no record of a bystander came")

    judge.holds(done, f"the fetch still waited {WITHIN:g} s after its leader had moved")
    # A broker that stopped leading may say so at once or end the fetch with nothing and say so to
    # the next one; both send the client to the new leader without delay (KAFKA-19567).
    errors = waiting.result().errors
    allowed = {
        (): "order: the fetch may end before its broker has heard that it leads no more",
        (ErrorCode.NOT_LEADER_OR_FOLLOWER,): "ShareFetchResponse ErrorCode: not the leader",
        (ErrorCode.FENCED_LEADER_EPOCH,): "ShareFetchResponse CurrentLeader: comes with this error",
    }
    judge.one_of(allowed, errors, "errors of the fetch that waited")
    judge.equal([], waiting.result().offsets, "offsets acquired from the former leader")


@check("ACQ-04", fast=True, crossed=AMONG)
async def test_stranger_may_fetch(env: Env, judge: Judge) -> None:
    queue, member = await env.with_consumer(records=6, batches=6)
    await member.acquire(3, max_records=3)
    stranger = await queue.consumer(join=False)
    stranger.session.joins_late = False

    opened = await stranger.fetch()
    judge.equal((), opened.errors, "errors of the stranger's fetch")
    seen = opened.offsets
    if missing := 3 - len(seen):
        seen += (await stranger.acquire(missing)).offsets
    judge.equal([3, 4, 5], seen, "offsets that the stranger acquired")


@check("ACQ-15", crossed=BESIDE)
async def test_fetch_before_anyone_joined(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=4, untouched=True)
    early = await queue.consumer(join=False)
    early.session.joins_late = False

    before = await early.fetch()
    if before.error == ErrorCode.UNKNOWN_MEMBER_ID:
        raise OutOfReach("nobody can fetch who has not joined")
    judge.equal([], before.offsets, "offsets acquired before anyone subscribed")

    await queue.consumer()
    opened = await poll(early.fetch, lambda told: not told.errors)
    counts = opened.only.counts
    if missing := 4 - len(counts):
        counts |= (await early.acquire(missing)).counts
    judge.delivered(dict.fromkeys(range(4), 1), counts, "counts after a member subscribed")


@check("ACQ-16", crossed=BESIDE)
async def test_first_fetches_at_once(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=30, batches=6, lock_ms=env.bounds.longest_lock)
    await env.member(queue.group, queue.topic)
    members = [await queue.consumer(join=False) for _ in range(6)]

    calls = [member.fetch(max_records=5, max_wait_ms=5000) for member in members]
    responses = await asyncio.gather(*calls)

    errors = [code for response in responses for code in response.errors]
    if PASSING & {*errors}:
        raise Undecided(f"the share coordinator was not ready: {errors}")
    judge.equal([], errors, "errors of the first fetches")
    counts = [pair for response in responses for pair in response.only.counts.items()]
    once = sorted({(offset, 1) for offset, _ in counts})
    judge.equal(once, sorted(counts), "offsets and counts of the first fetches")
    # A fetch need not bring as many as it may: what is left comes to one of them.
    if (left := 30 - len(counts)) > 0:
        counts += (await members[0].acquire(left)).counts.items()
    judge.equal([(n, 1) for n in range(30)], sorted(counts), "offsets and counts")
    judge.saw(by_the_first_fetches=30 - left)
