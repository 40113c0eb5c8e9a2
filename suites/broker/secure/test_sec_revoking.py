"""Permissions that come and go under a consumer that is at work."""

import math

from fixtures.clients.acls import Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.matrix import LET_IN, NO_GROUP, NO_TOPIC, ROWS, scene, walk
from suites.broker.secure.realm import Realm, User, may_use

GROUP, TOPIC = Resource.GROUP, Resource.TOPIC
LOCK_MS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A user who holds three records of each topic of a group."""

    user: User
    session: Session
    queues: tuple[Queue, ...]
    lock_ms: int
    since: float

    @property
    def group(self) -> str:
        return self.session.group

    @property
    def places(self) -> tuple[Where, ...]:
        return tuple((queue.topic, 0) for queue in self.queues)


async def _holder(realm: Realm, topics: int) -> Holder:
    lock_ms = realm.env.bounds.lock(LOCK_MS)
    queues = await realm.queues(topics, records=3, lock_ms=lock_ms)
    group = queues[0].group
    await realm.env.member(group, *(queue.topic for queue in queues))
    user = await realm.user()
    await may_use(user, group, [queue.topic.name for queue in queues])
    session = await user.session(group)
    places = [(queue.topic, 0) for queue in queues]
    since = time.monotonic()
    found = await acquired(session, *places, count=3 * topics)
    if sum(map(len, found.values())) != 3 * topics:
        raise Undecided(f"only {found} could be acquired")
    return Holder(user=user, session=session, queues=tuple(queues), lock_ms=lock_ms, since=since)


async def _heir(holder: Holder) -> tuple[list[int], float]:
    """Return what somebody with all rights gets of a topic, and how long after the acquisition."""
    heir = await replace(holder.queues[0], group=holder.group).consumer(join=False)
    seen = await watch(heir, range(3), WITHIN + holder.lock_ms / 1000)
    return sorted(seen), min((s.at for s in seen.values()), default=math.inf) - holder.since


@check("SEC-09", "SEC-11")
async def test_group_lost_while_records_are_locked(realm: Realm, judge: Judge) -> None:
    holder = await _holder(realm, 1)
    user, (place,) = holder.user, holder.places
    await user.revoke(user.entry(Operation.READ, GROUP, holder.group))

    response = await holder.session.acknowledge({place: (accept(0, 1),)})
    error = error_name(response.error or response.only.ack_error)
    judge["SEC-09"].equal(NO_GROUP, error, "accepting after READ on the group was taken away")
    judge["SEC-11"].equal(NO_GROUP, error, "accepting after READ on the group was taken away")
    came, after = await _heir(holder)
    if 2 in came:  # which nobody accepted: that locks end is the other rule's
        judge["SEC-09"].equal([0, 1, 2], came, "what a permitted member then gets")
    judge["SEC-11"].equal([0, 1, 2], came, "what a permitted member then gets")
    _in_due_time(judge["SEC-11"], holder, after)


@check("SEC-10", "SEC-11")
@pytest.mark.parametrize("by_fetch", [False, True], ids=["acknowledge", "fetch"])
async def test_topic_lost_while_records_are_locked(
    realm: Realm, judge: Judge, by_fetch: bool
) -> None:
    holder = await _holder(realm, 2)
    user, (lost, kept) = holder.user, holder.places
    await user.revoke(user.entry(Operation.READ, TOPIC, lost[0].name))

    acks = {place: (accept(0, 2),) for place in holder.places}
    if by_fetch:
        response = await holder.session.fetch(acks=acks, max_wait_ms=0)
    else:
        response = await holder.session.acknowledge(acks)
    judge["SEC-10"].equal("NONE", error_name(response.error), "the response as a whole")
    found = {
        place[0].name: part and error_name(part.ack_error or part.error)
        for place in holder.places
        for part in [response.part(place[0].id, 0)]
    }
    expected = {lost[0].name: NO_TOPIC, kept[0].name: "NONE"}
    if found[kept[0].name] != "NONE":
        in_time(holder.since, holder.lock_ms)
    judge["SEC-10"].equal(expected, found, "results, READ on the first topic taken away")
    judge["SEC-11"].equal(NO_TOPIC, found[lost[0].name], "result for the lost topic")

    came, after = await _heir(holder)
    judge["SEC-10"].equal([0, 1, 2], came, "records of the lost topic")
    judge["SEC-11"].equal([0, 1, 2], came, "records of the lost topic")
    _in_due_time(judge["SEC-11"], holder, after)
    settled = await settled_below(replace(holder.queues[1], group=holder.group))
    judge["SEC-10"].equal(3, settled, "what is stored as finished of the topic that was kept")


def _in_due_time(judge: Judge, holder: Holder, after: float) -> None:
    early = after < holder.lock_ms / 1000
    sentence = f"locks of {holder.lock_ms} ms ran out after {after:.2f} s"
    judge.holds(not early, sentence, step="locks last as long as they should")


@check("SEC-13")
async def test_permissions_take_effect_at_once(realm: Realm, judge: Judge) -> None:
    user = await realm.user()
    place = await scene(realm.env, user)
    refused = await walk(place)
    if refused != {row.api: (row.refusal,) for row in ROWS}:
        raise Undecided(f"a user without any entry meets {refused}")

    await user.allow(Operation.ALL, TOPIC, *(topic.name for topic in place.topics))
    await user.allow(Operation.ALL, GROUP, place.group)
    granted = {api: set(seen) for api, seen in (await walk(place)).items()}
    judge.equal({row.api: {LET_IN} for row in ROWS}, granted, "the same, permitted")
