"""What everybody pays: quotas, and what waiting for one's turn does not change.

Since KIP-219 a broker answers at once, says how long it will not listen, and does not listen.
"""

from fixtures.clients.users import BYTE_RATE, REQUEST_SHARE
from suites.broker.kit import *
from suites.broker.secure.realm import Realm, User, may_use

SIZE = 10_000  # Bytes in a record.
RATE = 10_000.0
"""A byte-rate quota. Brokers look back over ten whole seconds, so ten times that is free."""
FREE = 10 * int(RATE)
HEAVY = 13  # Records that together exceed what is free by three seconds' worth of it.
LOCK_MS = 1000
PATIENCE = 20.0  # Seconds that a request may take whose sender has to wait first.
LONGEST_FOR_REQUESTS = 1000  # Milliseconds: one window, and no request quota delays for longer.


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    user: User
    queue: Queue
    session: Session

    @property
    def place(self) -> Where:
        return (self.queue.topic, 0)

    async def fetch(self, count: int, **options: Any) -> Response:
        """Fetch that many records; each is a batch of its own, so that no batch brings more."""
        named = () if self.session.epoch else (self.place,)
        return await self.session.fetch(*named, max_records=count, **options)

    async def until_delayed(self) -> tuple[int, list[int]]:
        """Fetch as much as there is until that costs a delay; return it and the offsets held.

        A broker gives no more at once than is free, so one request is never enough.
        """
        held: list[int] = []
        async for _ in attempts():
            response = await self.fetch(HEAVY, timeout=PATIENCE)
            if response.error:
                raise Undecided(f"a fetch that should succeed answered {response.errors}")
            held += response.offsets
            if waited := delay(response):
                return waited, held
        raise Undecided(f"no delay after {len(held)} records")

    async def plain(self, records: int) -> int:
        """Fetch about that many records in the ordinary way; return the delay in milliseconds."""
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": records * SIZE}
        response = await self.user.call(
            "Fetch",
            max_wait_ms=500,
            min_bytes=1,
            session_epoch=-1,
            topics=[{"topic_id": self.queue.topic.id, "partitions": [wanted]}],
        )
        return int(response.throttle_time_ms)


async def _payer(
    realm: Realm, records: int, quotas: Mapping[str, float], lock_ms: int = 30_000, parts: int = 1
) -> Payer:
    values = [b"x" * SIZE] * records
    queue = await realm.env.queue(values, batches=records, lock_ms=lock_ms, partitions=parts)
    await queue.consumer()
    user = await realm.user()
    await may_use(user, queue.group, [queue.topic.name])
    await realm.hold_to(user, quotas)
    return Payer(user=user, queue=queue, session=await user.session(queue.group))


@check("SEC-29")
@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "with fetches"])
async def test_bytes_count(realm: Realm, judge: Judge, mixed: bool) -> None:
    payer = await _payer(realm, 30, {BYTE_RATE: RATE})
    since = time.monotonic()
    # Neither kind of fetch takes more than is free; together they do.
    if mixed and await payer.plain(6):
        raise Undecided(f"a delay after 6 of {FREE // SIZE} records that are free")
    goal, delays, held = 9 if mixed else 30, [0], 0
    async for _ in attempts():
        response = await payer.fetch(3)
        if response.error:
            raise Undecided(f"a fetch that should succeed answered {response.errors}")
        delays.append(delay(response))
        held += len(response.offsets)
        if delays[-1] or held >= goal:
            break
    _judge_delay(judge, since, delays[-1], 1, f"no delay after {held} records: {delays}")


def _judge_delay(judge: Judge, since: float, told: int, least: int, what: str) -> None:
    if told < least and time.monotonic() - since > FREE / RATE:
        raise Undecided("the harness was so slow that its first bytes count no more")
    judge.holds(told >= least, what)


@check("SEC-30")
@pytest.mark.parametrize("kind", ["fetch", "fetch with acknowledgements", "acknowledge"])
async def test_requests_count(realm: Realm, judge: Judge, kind: str) -> None:
    payer = await _payer(realm, 3, {REQUEST_SHARE: LITTLE})
    delays = []
    for number in range(4):
        if kind == "acknowledge" and number:
            response = await payer.session.acknowledge({payer.place: (accept(0),)})
        elif number and "with" in kind:
            response = await payer.fetch(1, acks={payer.place: (accept(0),)}, max_wait_ms=0)
        else:
            response = await payer.fetch(1, max_wait_ms=0)
        delays.append(delay(response))
        if number and delays[-1]:
            break
    judge.holds(delays[-1] > 0, f"delays of {len(delays)} requests: {delays}")


@check("SEC-33")
async def test_the_larger_delay_is_told(realm: Realm, judge: Judge) -> None:
    payer = await _payer(realm, 2 * HEAVY, {BYTE_RATE: RATE})
    since = time.monotonic()
    await payer.fetch(HEAVY)
    await realm.hold_to(payer.user, {REQUEST_SHARE: LITTLE})
    delays: list[int] = []
    for _ in range(4):
        delays.append(delay(await payer.fetch(HEAVY, timeout=PATIENCE)))
        if delays[-1] > LONGEST_FOR_REQUESTS:
            break
    _judge_delay(judge, since, max(delays), LONGEST_FOR_REQUESTS + 1, f"delays {delays}")


@check("SEC-31", feature="record-limit")
async def test_locks_run_while_answers_are_delayed(realm: Realm, judge: Judge) -> None:
    if (lock := realm.env.bounds.lock(LOCK_MS)) > LOCK_MS:
        raise OutOfReach(f"no quota delays for as long as a lock of {lock} ms")
    payer = await _payer(realm, 2 * HEAVY, {BYTE_RATE: RATE}, LOCK_MS, parts=2)
    waited, _ = await payer.until_delayed()
    over = time.monotonic() + waited / 1000
    # An equal lock, taken only now, is over long before the delay.
    await outlast(payer.queue, LOCK_MS)
    if (left := over - time.monotonic()) < BYSTANDING:
        raise Undecided(f"{left:.1f} s of a delay of {waited} ms were left when locks were over")
    other = await payer.queue.consumer(join=False)
    seen = await watch(other, range(2 * HEAVY), left)
    missing = sorted(set(range(2 * HEAVY)) - seen.keys())
    what = f"records still locked for one who has to wait {waited} ms, lock {LOCK_MS} ms"
    judge.equal([], missing, what)


@check("SEC-32", feature="record-limit")
async def test_acknowledgements_of_who_has_to_wait(realm: Realm, judge: Judge) -> None:
    payer = await _payer(realm, 2 * HEAVY, {BYTE_RATE: RATE})
    _, held = await payer.until_delayed()
    if len(held) < 3:
        raise Undecided(f"only {held} came before the delay")
    done, given = held[:-1], held[-1]
    acks = {payer.place: (*(accept(offset) for offset in done), release(given))}
    response = await payer.fetch(HEAVY, acks=acks, max_wait_ms=0, timeout=PATIENCE)
    if not delay(response):
        raise Undecided("the request with acknowledgements was not delayed")
    part = response.part(payer.queue.topic.id, 0)
    told = part and error_name(part.ack_error)
    judge.equal("NONE", told, f"result of acknowledgements delayed {delay(response)} ms")
    judge.equal(given, await settled_below(payer.queue), "what is stored as finished")
    batches = (await read_state(payer.queue)).state_batches
    states = [b.delivery_state for b in batches if b.first_offset <= given <= b.last_offset]
    judge.equal([AVAILABLE], states, "stored state of what was given back")
