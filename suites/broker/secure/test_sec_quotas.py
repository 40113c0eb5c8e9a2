"""What everybody pays: quotas, and what waiting for one's turn does not change.

Since KIP-219 a broker answers at once, says how long it will not listen, and does not listen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from fixtures.clients.cluster import attempts
from fixtures.clients.member import Answer, Session, Where, accept
from fixtures.clients.users import BYTE_RATE, REQUEST_SHARE, set_quotas
from spec.verdict import Undecided
from suites.broker.secure.realm import Realm, User, may_use
from suites.broker.share import Queue
from suites.judge import Judge

pytestmark = pytest.mark.draft("never run against a broker")

SIZE = 10_000
"""Bytes in a record."""
RATE = 10_000.0
"""A byte-rate quota. Brokers look back over ten whole seconds, so ten times that is free."""
FREE = 10 * int(RATE)
LITTLE = 0.0001
"""A request quota that any few requests exceed, in percent of one thread."""
LONGEST_FOR_REQUESTS = 1000
"""Milliseconds: one window, and no request quota delays for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """A user with a session and a quota."""

    user: User
    queue: Queue
    session: Session

    @property
    def place(self) -> Where:
        """The one partition."""
        return (self.queue.topic, 0)

    async def fetch(self, count: int, **options: Any) -> Answer:
        """Fetch that many records."""
        named = () if self.session.epoch else (self.place,)
        return await self.session.fetch(*named, max_records=count, share_acquire_mode=1, **options)

    async def plain(self, records: int) -> int:
        """Fetch about that many records in the ordinary way; return the delay in milliseconds."""
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": records * SIZE}
        answer = await self.user.call(
            "Fetch",
            max_wait_ms=500,
            min_bytes=1,
            session_epoch=-1,
            topics=[{"topic_id": self.queue.topic.id, "partitions": [wanted]}],
        )
        return int(answer.throttle_time_ms)


async def _payer(
    realm: Realm, records: int, quotas: Mapping[str, float], *, lock_ms: int = 30_000
) -> Payer:
    queue = await realm.share.queue(
        [b"x" * SIZE for _ in range(records)], batches=records, lock_ms=lock_ms
    )
    await queue.consumer()
    user = await realm.user()
    await may_use(user, queue.group, [queue.topic.name])
    await set_quotas(realm.share.cluster, user.name, **quotas)
    return Payer(user=user, queue=queue, session=await user.session(queue.group))


def _delay(answer: Answer) -> int:
    return int(answer.raw.throttle_time_ms)


@pytest.mark.requirement("SEC-29")
@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "with fetches"])
async def test_bytes_count(realm: Realm, judge: Judge, mixed: bool) -> None:
    """SEC-29: Bytes of share fetches count against the byte rate, with those of ordinary ones."""
    payer = await _payer(realm, 30, {BYTE_RATE: RATE})
    first = await payer.plain(6) if mixed else _delay(await payer.fetch(6))
    judge.equal("SEC-29", 0, first, f"delay after 6 of {FREE // SIZE} records that are free")
    delays = []
    async for _ in attempts():
        answer = await payer.fetch(6)
        if answer.error:
            raise Undecided(f"a fetch that should succeed answered {answer.errors}")
        delays.append(_delay(answer))
        if delays[-1] or len(delays) > 4:
            break
    judge.holds("SEC-29", delays[-1] > 0, f"no delay after {6 + 6 * len(delays)} records: {delays}")


@pytest.mark.requirement("SEC-30")
@pytest.mark.parametrize("kind", ["fetch", "fetch with acknowledgements", "acknowledge"])
async def test_requests_count(realm: Realm, judge: Judge, kind: str) -> None:
    """SEC-30: Share requests count against the request quota, with and without acknowledgements."""
    payer = await _payer(realm, 3, {REQUEST_SHARE: LITTLE})
    delays = []
    for number in range(4):
        if kind == "acknowledge" and number:
            answer = await payer.session.acknowledge({payer.place: (accept(0),)})
        elif number and "with" in kind:
            answer = await payer.fetch(1, acks={payer.place: (accept(0),)}, max_wait_ms=0)
        else:
            answer = await payer.fetch(1, max_wait_ms=0)
        delays.append(_delay(answer))
        if number and delays[-1]:
            break
    judge.holds("SEC-30", delays[-1] > 0, f"delays of {len(delays)} requests: {delays}")
    most = max(delays)
    sentence = f"a request quota delayed for {most} ms"
    judge.holds("SEC-30", most <= LONGEST_FOR_REQUESTS, sentence)


@pytest.mark.requirement("SEC-30")
async def test_the_larger_delay_is_told(realm: Realm, judge: Judge) -> None:
    """SEC-30: Where the byte rate and the request quota are both exceeded, the larger counts."""
    payer = await _payer(realm, 30, {BYTE_RATE: RATE, REQUEST_SHARE: LITTLE})
    delays = [_delay(await payer.fetch(10)) for _ in range(4)]
    judge.holds("SEC-30", max(delays) > LONGEST_FOR_REQUESTS, f"delays {delays}")
