"""How fast the model is on one core: ``python -m benchmarks.model``.

A transition is one record going from one state to another. What a share-partition sees decides how
many of them an operation carries, so the judge and the leader are timed for batches of 1, 10 and
100 records, and for requests that overlap.
"""

import argparse
import time
from collections.abc import Callable

from spec.model.durable import StateBatch, combine
from spec.model.leader import Leader
from spec.model.operations import Acknowledge, Batch, Fetch
from spec.model.partition import SharePartition
from spec.model.table import Event, State, step

ROUNDS = 800  # Few, so that a measurement is over before a busy machine has something else to do


def timed(work: Callable[[], int]) -> float:
    begun = time.process_time()
    done = work()
    return done / (time.process_time() - begun)


def table() -> int:
    for _ in range(ROUNDS):
        step(Event.ACQUIRE, State.AVAILABLE)
        step(Event.RELEASE, State.ACQUIRED)
        step(Event.RELEASE, State.ACQUIRED, last=True)
        step(Event.ACCEPT, State.ACQUIRED)
    return 4 * ROUNDS


def judge(size: int) -> int:
    partition = SharePartition(0)
    rounds = ROUNDS // 4
    for number in range(rounds):
        first, last, now = number * size, number * size + size - 1, float(number)
        partition.acquired(now, "ann", [(first, last, 1)])
        partition.acknowledged(now + 0.1, "ann", [(first, last, (2,))])
        partition.acquired(now + 0.2, "bob", [(first, last, 2)])
        partition.acknowledged(now + 0.3, "bob", [(first, last, (1,))])
    return 4 * rounds * size


def overlapping(size: int) -> int:
    partition = SharePartition(0)
    rounds = ROUNDS // 4
    pending = partition.begin_fetch(0, Fetch(member="bob"))
    for number in range(rounds):
        first, last, now = number * size, number * size + size - 1, float(number)
        following = partition.begin_fetch(now, Fetch(member="ann"))
        partition.fetched(pending, now + 0.1, [(first, last, 1)])
        ack = Acknowledge(member=pending.member, batches=(Batch(first, last, (1,)),))
        pending_ack = partition.begin_acknowledge(now + 0.2, ack)
        partition.answered(pending_ack, now + 0.3, 0)
        pending = following
    return 2 * rounds * size


def lead(size: int) -> int:
    leader = Leader()
    rounds = ROUNDS // 10
    for number in range(rounds):
        first, last = leader.produce(size)
        leader.acquire(number, "ann")
        leader.acknowledge(number, "ann", [Batch(first, last, (1,))])
    return 2 * rounds * size


def combining() -> int:
    batches = [StateBatch(offset, offset, 2 * (offset % 2), 1) for offset in range(2_000)]
    for _ in range(4):
        combine(batches, batches, 0)
    return 4 * 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=40, help="repetitions, the best one counts")
    repeat = parser.parse_args().repeat
    works: dict[str, Callable[[], int]] = {
        "table look-ups": table,
        "judge, batches of 1": lambda: judge(1),
        "judge, batches of 10": lambda: judge(10),
        "judge, batches of 100": lambda: judge(100),
        "judge, overlapping, batches of 1": lambda: overlapping(1),
        "judge, overlapping, batches of 10": lambda: overlapping(10),
        "leader, batches of 10": lambda: lead(10),
        "leader, batches of 100": lambda: lead(100),
        "state batches combined": combining,
    }
    for name, work in works.items():
        best = max(timed(work) for _ in range(repeat))
        print(f"{name:36} {best:12,.0f} /s")


if __name__ == "__main__":
    main()
