"""How fast our driver takes records, beside Kafka's own: ``python -m benchmarks.load --target T``.

One topic is filled once. Then, round by round, Kafka's ShareConsumerPerformance and our driver,
with its journals, take all of it with a fresh group and as many consumers as each other. Both are
timed from when they are told to begin until the last record, joining included; for Java that is
what the tool itself says.

What recording costs is seen while a group takes the topic once more: it is switched off and on and
on and off twice a second, so that whatever else the machine does disturbs both sides alike.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster, Topic, attempts
from fixtures.machine.java import find_java
from fixtures.machine.maven import tools_release
from fixtures.targets import TargetOptions, open_target, started
from fixtures.wire.frame import Transcript
from fixtures.workload.plan import Consuming, Place, Producing, Work
from fixtures.workload.pool import WorkerPool
from spec.history import log_numbers

PARTITIONS, CONSUMERS, BATCH = 6, 2, 500
TOOLS = "4.3.1"
LIMIT = 600.0
SLICE = 0.5


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    records: int = 0
    cpu: float = 0.0
    seconds: float = 0.0

    def __sub__(self, before: Slice) -> Slice:
        return Slice(
            self.records - before.records, self.cpu - before.cpu, self.seconds - before.seconds
        )

    def __add__(self, other: Slice) -> Slice:
        return Slice(
            self.records + other.records, self.cpu + other.cpu, self.seconds + other.seconds
        )


async def _look(pool: WorkerPool) -> Slice:
    counts = [json.loads(line) for line in await pool.ask("count")]
    return Slice(
        sum(count["delivered"] for count in counts),
        sum(count["cpu"] for count in counts),
        time.monotonic(),
    )


class Bench:
    """A topic full of records, and ways to empty it."""

    def __init__(self, cluster: Cluster, room: Path, records: int, size: int) -> None:
        self.cluster, self.room, self.records, self.size = cluster, room, records, size
        self.admin = Admin(cluster)
        self.runs = 0

    async def fill(self) -> Topic:
        topic = await self.admin.create_topic(PARTITIONS)
        self.places = tuple(
            Place(log=log, topic=topic.name, partition=index)
            for index, log in zip(range(PARTITIONS), log_numbers(), strict=False)
        )
        logs = tuple(place.log for place in self.places)
        producer = Producing(number=0, logs=logs, size=self.size, records=BATCH)
        pool = await WorkerPool.start([self._work(1, producers=(producer,))])
        await pool.tell("produce")
        async for _ in attempts(LIMIT):
            if json.loads((await pool.ask("count"))[0])["produced"] >= self.records:
                break
        await pool.ask("stop")
        await pool.end()
        return topic

    async def _pool(self, topic: Topic) -> WorkerPool:
        group = await self._group()
        return await WorkerPool.start(
            self._work(
                number,
                group=group,
                members=(
                    Consuming(number=number, name=f"m{number}", group=group, topics=(topic.name,)),
                ),
            )
            for number in range(1, CONSUMERS + 1)
        )

    async def ours(self, topic: Topic) -> float:
        """Return the records a second of our driver."""
        pool = await self._pool(topic)
        began = time.monotonic()
        await pool.tell("consume")
        while time.monotonic() < began + LIMIT:
            counts = [json.loads(line) for line in await pool.ask("count")]
            if sum(count["delivered"] for count in counts) >= self.records:
                break
            await asyncio.sleep(0.1)
        ended: float = max(count["last"] for count in counts) / 1e9
        await pool.end()
        return self.records / (ended - began)

    async def recording(self, topic: Topic) -> list[tuple[Slice, Slice]]:
        pool = await self._pool(topic)
        await pool.tell("consume")
        async for _ in attempts(LIMIT):
            if (await _look(pool)).records:
                break
        pairs: list[tuple[Slice, Slice]] = []
        for turn in itertools.count():
            halves: dict[bool, Slice] = {}
            for record in (True, False) if turn % 2 else (False, True):
                await pool.tell(f"record {'on' if record else 'off'}")
                before = await _look(pool)
                await asyncio.sleep(SLICE)
                halves[record] = await _look(pool) - before
            if (await _look(pool)).records >= self.records:
                break
            if turn:  # The first pair warms up.
                pairs.append((halves[True], halves[False]))
        await pool.end()
        return pairs

    async def java(self, topic: Topic) -> float:
        """Return the records a second that Kafka's own tool says."""
        group, release = await self._group(), tools_release(TOOLS)
        command = [str(find_java().path), "-Xmx512m", "-cp", release.classpath]
        command += ["org.apache.kafka.tools.ShareConsumerPerformance", "--hide-header"]
        command += ["--bootstrap-server", ",".join(self.cluster.info.bootstrap)]
        command += ["--topic", topic.name, "--group", group, "--threads", str(CONSUMERS)]
        command += ["--num-records", str(self.records), "--timeout", str(int(LIMIT * 1000))]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, check=False, timeout=LIMIT
        )
        if done.returncode:
            raise SystemExit(
                f"ShareConsumerPerformance failed: {done.stdout[-500:]}{done.stderr[-1000:]}"
            )
        last = [line for line in done.stdout.splitlines() if line.count(",") >= 5][-1]
        return float(last.split(",")[4])

    async def _group(self) -> str:
        group = self.cluster.fresh_name("bench")
        await self.admin.group_config(group, {"share.auto.offset.reset": "earliest"})
        return group

    def _work(
        self,
        process: int,
        *,
        group: str = "",
        producers: tuple[Producing, ...] = (),
        members: tuple[Consuming, ...] = (),
    ) -> Work:
        self.runs += 1
        return Work(
            process=process,
            cluster=self.cluster.info.to_json(),
            history=str(self.room / str(self.runs)),
            seed=1,
            places=self.places,
            share_partitions=tuple((group, place.log, n) for n, place in enumerate(self.places)),
            producers=producers,
            members=members,
        )


async def measure(options: argparse.Namespace, room: Path) -> None:
    """Take turns and print what each round and the medians say."""
    with started(open_target(options.target, TargetOptions(brokers=options.brokers))) as target:
        async with Cluster(target.info, transcript=Transcript(keep=0)) as cluster:
            bench = Bench(cluster, room, int(options.records), options.size)
            topic = await bench.fill()
            rounds: list[tuple[float, float]] = []
            for _ in range(options.rounds):
                java = await bench.java(topic)
                rounds.append((java, await bench.ours(topic)))
                print(f"java {java:,.0f}/s, ours {rounds[-1][1]:,.0f}/s", flush=True)
            if rounds:
                ratios = sorted(ours / java for java, ours in rounds)
                print(f"ours / java: {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
            _tell_cost([pair for _ in range(options.runs) for pair in await bench.recording(topic)])


def _tell_cost(pairs: Sequence[tuple[Slice, Slice]]) -> None:
    on, off = (sum(slices, Slice()) for slices in zip(*pairs, strict=True))
    for name, side in (("recorded", on), ("not recorded", off)):
        rate, cost = side.records / side.seconds, side.cpu / side.records * 1e6
        print(f"{name}: {side.records:,} records, {rate:,.0f}/s, {cost:.2f} us of CPU each")
    told = [(a, b) for a, b in pairs if a.records and b.records]
    speed = _spread([1 - (a.records / a.seconds) / (b.records / b.seconds) for a, b in told])
    work = _spread([(a.cpu / a.records) / (b.cpu / b.records) - 1 for a, b in told])
    print(
        f"recording costs {speed} of the throughput, {work} of the client's CPU time, in "
        f"{len(told)} pairs of slices: median, and the middle half"
    )


def _spread(shares: Sequence[float]) -> str:
    low, middle, high = quantiles(shares, n=4)
    return f"{100 * middle:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="kafka:4.4.0")
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--records", type=float, default=1e6)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3, help="to see what recording costs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shareproof-bench-") as room:
        asyncio.run(measure(options, Path(room)))


if __name__ == "__main__":
    main()
