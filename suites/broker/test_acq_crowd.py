"""A crowd of members on one share-partition: nobody shares an offset, the window holds."""

from suites.broker.kit import *

LIMIT = 100
"""In-flight limit where the window is watched: the lowest allowed by default (KIP-1240)."""


@dataclass(slots=True)
class Crowd:
    """What is known to be held: from the moment a fetch was answered until an ack is sent.

    Both ends lie inside the broker's own lock, so that whatever overlaps here overlaps there. With
    its holder is kept when a record was asked for, as its lock began later.
    """

    env: Env
    total: int
    appetite: int = 25
    held: dict[int, tuple[str, float]] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)
    double: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    deliveries: int = 0
    fetches: int = 0
    most: int = 0
    deadline: float = field(default_factory=lambda: time.monotonic() + 60)

    async def run(self, queue: Queue, members: int) -> None:
        """Let members fetch, release and accept until every record was accepted."""
        first = await queue.consumer()
        others = [await queue.consumer(join=False) for _ in range(members - 1)]
        await asyncio.gather(*(self._consume(member) for member in (first, *others)))
        if self.refused and not self.double:
            raise Undecided(f"acknowledging what is held was refused: {self.refused[:3]}")
        if len(self.accepted) < self.total and not self.double:
            raise Undecided(f"{len(self.accepted)} of {self.total} records were accepted in 60 s")

    async def _consume(self, member: Consumer) -> None:
        rng = self.env.rng
        # One record with two holders says enough.
        while (
            len(self.accepted) < self.total and not self.double and time.monotonic() < self.deadline
        ):
            asked = time.monotonic()
            told = await member.fetch(max_records=rng.randint(1, self.appetite), max_wait_ms=200)
            self.fetches += 1
            counts = member.sound(told).only.counts
            in_time(min((since for _, since in self.held.values()), default=asked), told.lock_ms)
            self.deliveries += len(counts)
            for offset in counts:
                if offset in self.held or offset in self.accepted:
                    owner, _ = self.held.get(offset, ("nobody: it was accepted", 0))
                    self.double.append(f"{offset} went to {member.member_id} while held by {owner}")
                self.held[offset] = member.member_id, asked
            self.most = max(self.most, len(self.held))
            if self.double:
                return
            # It holds them for a moment, in which others fetch.
            before = self.fetches
            async for _ in attempts(rng.random() * 0.02, pause=0.001):
                if self.fetches > before + 1:
                    break
            if counts:
                await self._settle(member, counts)

    async def _settle(self, member: Consumer, counts: dict[int, int]) -> None:
        """Settle each offset, releasing it at most twice, so that none runs out of deliveries."""
        kept = {o for o, count in counts.items() if count > 2 or self.env.rng.random() < 0.6}
        for offset in counts:
            del self.held[offset]
        acks: list[Ack] = [accept(o) if o in kept else release(o) for o in sorted(counts)]
        part = await member.ack(*acks)
        if part.ack_error:
            # Somebody else has them, or had them: whoever was given them twice tells.
            self.refused.append(f"{member.member_id}: {error_name(part.ack_error)}")
            return
        self.accepted |= kept


@check("ACQ-23", crossed=AMONG)
async def test_no_offset_has_two_holders(env: Env, judge: Judge) -> None:
    total = 240
    queue = await env.queue(records=total, batches=env.rng.choice([8, 24, 60]))
    crowd = Crowd(env, total)

    await crowd.run(queue, members=6)

    judge.holds(not crowd.double, "offsets with two holders", witness=crowd.double[:3])
    judge.saw(deliveries=crowd.deliveries)


@check("ACQ-57", feature="group-lock-limit", crossed=AMONG)
async def test_crowd_stays_inside_the_window(env: Env, judge: Judge) -> None:
    total = 3 * LIMIT
    config = {"share.partition.max.record.locks": str(LIMIT)}
    queue = await env.queue(records=total, batches=total, group_config=config)
    # Together they want several times what the window holds.
    crowd = Crowd(env, total, appetite=80)

    await crowd.run(queue, members=8)

    judge.holds(crowd.most <= LIMIT, f"{crowd.most} records held, the limit is {LIMIT}")
    judge.saw(deliveries=crowd.deliveries, most_held=crowd.most)
