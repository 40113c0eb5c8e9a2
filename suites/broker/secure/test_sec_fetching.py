"""Who may fetch and acknowledge, and what a refusal leaves as it was."""

from fixtures.clients.acls import Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.matrix import NO_GROUP, NO_TOPIC
from suites.broker.secure.realm import Realm, may_use

GROUP, TOPIC = Resource.GROUP, Resource.TOPIC


@check("SEC-07")
async def test_fetching_needs_read_on_the_group(realm: Realm, judge: Judge) -> None:
    queue, user = await realm.env.queue(5), await realm.user()
    other = await queue.consumer()
    await user.allow(Operation.ALL, TOPIC, queue.topic.name)
    await user.allow(Operation.DESCRIBE, GROUP, queue.group)
    session = await user.session(queue.group)
    response = await session.fetch((queue.topic, 0))
    judge.equal(NO_GROUP, error_name(response.error), "fetching without READ on the group")
    judge.equal([], response.offsets, "offsets acquired by the refused fetch")

    await user.allow(Operation.READ, GROUP, queue.group)
    error = (await session.fetch(epoch=1)).error  # which one depends on whether strangers may
    judge.holds(error, "a session that was refused goes on")
    counts = (await other.acquire(5)).counts
    judge.delivered(dict.fromkeys(range(5), 1), counts, "what a permitted member gets")


@check("SEC-08")
async def test_fetching_needs_read_on_the_topic(realm: Realm, judge: Judge) -> None:
    (open_, hidden), user = await realm.queues(2), await realm.user()
    group = open_.group
    member = await realm.env.member(group, open_.topic, hidden.topic)
    for queue in (open_, hidden):
        await queue.produce(3)
    await may_use(user, group, [open_.topic.name])
    await user.allow(Operation.DESCRIBE, TOPIC, hidden.topic.name)

    session = await user.session(group)
    wanted, at = ((hidden.topic, 0), (open_.topic, 0)), min(realm.env.cluster.brokers)
    served: dict[int, int] = {}
    async for _ in attempts():
        response = await session.fetch(*(() if session.epoch else wanted))
        judge.equal("NONE", error_name(response.error), "the fetch as a whole")
        refused = response.part(hidden.topic.id, 0)
        if refused is not None or session.epoch == 1:
            seen = refused and (error_name(refused.error), refused.offsets)
            judge.equal((NO_TOPIC, []), seen, "the forbidden topic")
        served |= getattr(response.part(open_.topic.id, 0), "counts", {})
        if len(served) >= 3:
            break
    else:
        await demand_bystander(realm.env.cluster, at, f"no more came than {served}")
    judge.equal(dict.fromkeys(range(3), 1), served, "the permitted topic")

    other = Consumer(member, await member.session(at), (hidden.topic, 0))
    left = (await other.acquire(3)).offsets
    judge.equal([0, 1, 2], left, "what was left of the forbidden topic")


@check("SEC-34", feature="dead-letters")
async def test_letters_need_no_permission_of_the_member(realm: Realm, judge: Judge) -> None:
    env, user = realm.env, await realm.user()
    box = await boxed(env, 5, lock_ms=env.bounds.longest_lock)
    queue, hidden = box.queue, box.topic.name
    await env.member(queue.group, queue.topic)
    await may_use(user, queue.group, [queue.topic.name])
    every = user.entry(Operation.ALL, TOPIC, hidden, deny=True)
    await user.grant(every)
    found = (await user.call("Metadata", topics=[{"name": hidden}])).topics[0]
    if error_name(found.error_code) != NO_TOPIC:
        raise Undecided(f"the dead-letter topic is open: {error_name(found.error_code)}")

    session, where = await user.session(queue.group), (queue.topic, 0)
    held = await acquired(session, where, count=5)
    response = await session.acknowledge({where: [reject(o) for o in held[where]]})
    if result(response.only) != NONE or len(held[where]) != 5:
        raise Undecided(f"rejecting {held[where]} got {result(response.only)}")
    letters = letter_offsets(await box.arrived(range(5)))
    judge.equal([*range(5)], letters, "rejected by who may not write letters, and written")


@check("SEC-14")
async def test_strangers_may_be_served(realm: Realm, judge: Judge) -> None:
    queue, user = await realm.env.queue(3), await realm.user()
    await queue.consumer()
    await may_use(user, queue.group, [queue.topic.name])
    session = await user.session(queue.group)
    session.joins_late, where = False, (queue.topic, 0)
    allowed = {
        "NONE": "KIP-932 §Heartbeat and session: fetching does not depend on membership",
        "UNKNOWN_MEMBER_ID": "documentation of the protocol's error codes: no member has this id",
    }
    counts: dict[int, int] = {}
    async for _ in attempts():
        response = await session.fetch(*(() if session.epoch else (where,)))
        judge.one_of(allowed, error_name(response.error), "a fetch by a stranger")
        counts |= {offset: n for part in response.parts for offset, n in part.counts.items()}
        if response.error or len(counts) >= 3:
            break
    else:
        raise Undecided(f"no more came to a stranger than {counts}")
    if response.error:
        return
    judge.delivered(dict.fromkeys(range(3), 1), counts, "what a stranger is served")
    response = await session.acknowledge({where: (accept(0, 2),)})
    judge.one_of(allowed, error_name(response.error), "an acknowledgement by a stranger")
    if not response.error:
        judge.equal(3, await settled_below(queue), "what is stored as finished then")
