"""A random walk of two members over one partition, beside a small model of delivery counts."""

from suites.broker.kit import *

STEPS = 80


@dataclass(slots=True)
class Ledger:
    """How often each record was delivered, who holds it, and which are at the limit for good."""

    limit: int
    deliveries: dict[int, int] = field(default_factory=dict)
    holders: dict[int, int] = field(default_factory=dict)
    exhausted: set[int] = field(default_factory=set)

    def deliver(self, offset: int, member: int) -> int:
        """Note a delivery and return the count that it has to carry."""
        self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
        self.holders[offset] = member
        return self.deliveries[offset]

    def held_by(self, member: int) -> list[int]:
        return sorted(offset for offset, holder in self.holders.items() if holder == member)


async def _fetch(consumer: Consumer, member: int, ledger: Ledger, judge: Judge, size: int) -> None:
    """Fetch once and judge every delivery by the ledger."""
    response = consumer.sound(await consumer.fetch(max_records=size, max_wait_ms=20))
    for offset, count in sorted(response.only.counts.items()):
        expected = ledger.deliver(offset, member)
        within = count <= ledger.limit
        judge["DLV-19"].holds(within, f"offset {offset} has count {count}, limit {ledger.limit}")
        judge["DLV-20"].equal(expected, count, f"delivery count of offset {offset}")


@check("DLV-19", "DLV-20", crossed=AMONG)
async def test_counts_over_a_random_walk(env: Env, judge: Judge) -> None:
    limit = await delivery_limit(env)
    total = env.rng.randint(6, 16)
    batches = env.rng.randint(1, 3)
    queue = await env.queue(total, batches=batches, lock_ms=env.bounds.longest_lock)
    members = [await queue.consumer(), await queue.consumer(join=False)]
    ledger = Ledger(limit)

    for _ in range(STEPS):
        number = env.rng.randrange(2)
        held = ledger.held_by(number)
        if held and env.rng.random() < 0.6:
            acks: list[Ack] = []
            for offset in sorted(env.rng.sample(held, env.rng.randint(1, len(held)))):
                how = env.rng.choices((release, accept, reject), weights=(10, 1, 1))[0]
                acks.append(how(offset))
                del ledger.holders[offset]
                if how is release and ledger.deliveries[offset] >= limit:
                    ledger.exhausted.add(offset)
            await members[number].acked(*acks)
        else:
            await _fetch(members[number], number, ledger, judge, env.rng.randint(1, total))

    for number, member in enumerate(members):
        if held := ledger.held_by(number):
            await member.acked(*(accept(offset) for offset in held))
    _, rest = await up_to_new(queue, members[0])
    again = sorted(ledger.exhausted & rest.counts.keys())
    judge["DLV-19"].equal([], again, f"released {limit} times, the limit, and delivered again")
    judge["DLV-20"].saw(deliveries=sum(ledger.deliveries.values()))
    judge["DLV-19"].saw(at_the_limit=sum(n == limit for n in ledger.deliveries.values()))
