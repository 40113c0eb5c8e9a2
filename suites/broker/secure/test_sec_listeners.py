"""The same by every door: TLS, SASL, both, and a login that is renewed on the way."""

from fixtures.clients.acls import Operation, Resource
from fixtures.wire.connection import ConnectionLost
from suites.broker.kit import *
from suites.broker.secure.realm import *

NOBODY = "ANONYMOUS"  # What a broker calls those who do not log in.

WAYS = (
    (SECURED, "PLAIN"),
    (SECURED, "SCRAM-SHA-256"),
    (SECURED, "SCRAM-SHA-512"),
    (TLS, "SCRAM-SHA-256"),
    (TLS, "SCRAM-SHA-512"),
    (BARE_TLS, ""),
)

Story = list[tuple[str, Any]]


async def _consume(user: User, queue: Queue) -> Story:
    """Consume as a share consumer does, make mistakes too; return what was answered."""
    began, place, story = time.monotonic(), (queue.topic, 0), Story()
    session = await user.session(queue.group)

    async def heartbeat(epoch: int) -> None:
        response = await user.call(
            "ShareGroupHeartbeat",
            group_id=queue.group,
            member_id=session.member_id,
            member_epoch=epoch,
            subscribed_topic_names=[queue.topic.name],
        )
        story.append(("heartbeat", error_name(response.error_code)))

    async def fetch(count: int) -> None:
        records: dict[int, tuple[int, bytes | None]] = {}
        async for _ in attempts(WITHIN):
            response = await session.fetch(*(() if session.epoch else (place,)))
            for part in response.parts:
                values = {record.offset: record.value for record in part.acquired_records()}
                records |= {o: (n, values.get(o)) for o, n in part.counts.items()}
            if response.error or len(records) >= count:
                break
        else:
            told, at = f"no more came to {user.name} than {records}", min(user.cluster.brokers)
            raise await stopped(queue.env.cluster, at, told, session.fetch)
        story.append(("fetch", (error_name(response.error), records)))

    await heartbeat(0)
    await fetch(4)
    response = await session.acknowledge({place: (accept(0), release(1, 2), reject(3))})
    story.append(("acknowledge", [error_name(part.error) for part in response.parts]))
    await fetch(2)
    response = await session.acknowledge({place: (accept(0, 3),)})
    story.append(("acknowledge too much", [error_name(part.error) for part in response.parts]))
    story.append(("wrong epoch", error_name((await session.fetch(epoch=77)).error)))
    await heartbeat(77)
    groups = (await user.call("DeleteGroups", groups_names=[queue.group])).results
    story.append(("delete a group in use", error_name(groups[0].error_code)))
    await heartbeat(-1)
    in_time(began, queue.env.bounds.longest_lock)
    return story


@check("SEC-27")
@pytest.mark.parametrize(("listener", "mechanism"), WAYS, ids=["-".join(way) for way in WAYS])
async def test_every_listener_says_the_same(
    realm: Realm, judge: Judge, listener: str, mechanism: str
) -> None:
    here, there = await realm.queues(2, records=4, lock_ms=realm.env.bounds.longest_lock)
    if not mechanism:
        user = await realm.visitor(realm.entrance(listener), NOBODY)
    elif mechanism == "PLAIN":
        login = {"mechanism": mechanism, "user": PLAIN_USER, "password": PLAIN_PASSWORD}
        user = await realm.visitor(realm.entrance(listener, **login), PLAIN_USER)
    else:
        user = await realm.user(listener=listener, mechanism=mechanism)
    await may_use(user, there.group, [there.topic.name])
    await user.allow(Operation.DELETE, Resource.GROUP, there.group)
    root = User(name=NOBODY, cluster=realm.env.cluster, realm=realm)

    expected, actual = await _consume(root, here), await _consume(user, there)
    for (step, plain), (_, other) in zip(expected, actual, strict=True):
        judge.equal(plain, other, f"{step} over {listener} {mechanism}")


@check("SEC-28")
async def test_renewed_logins_keep_their_locks(realm: Realm, judge: Judge) -> None:
    queue = await realm.env.queue(6, lock_ms=30_000)
    await queue.consumer()
    user = await realm.user(listener=RENEWED)
    await may_use(user, queue.group, [queue.topic.name])
    idle = await user.cluster.dial(min(user.cluster.brokers))
    began = time.monotonic()
    session = await user.session(queue.group)
    place = (queue.topic, 0)
    found = await acquired(session, place, count=6)
    if len(found[place]) < 6:
        raise Undecided(f"only {found[place]} could be acquired")

    for until in (0.6, 1.2):
        async for _ in attempts(began + until * LOGIN_LASTS - time.monotonic()):
            response = await session.fetch(max_wait_ms=100)
            judge.equal("NONE", error_name(response.error), "a fetch on the connection")
            judge.equal([], response.offsets, "offsets acquired anew")
        if until < 1:
            lasts = await session.connection.authenticate(user.cluster.info.security)
            if not lasts:
                raise Undecided("logins at this listener never run out")
    try:
        await idle.call("ApiVersions", client_software_name="s", client_software_version="0")
    except ConnectionLost:
        pass
    else:
        raise Undecided("a login that nobody renewed still holds")
    response = await session.acknowledge({place: (accept(0, 5),)})
    errors = (error_name(response.error), *(error_name(part.error) for part in response.parts))
    judge.equal(("NONE", "NONE"), errors, "accepting what was taken before the renewal")
    judge.equal(6, await settled_below(queue), "what is stored as finished then")
