"""How fast our driver takes records, beside Kafka's own: ``python -m benchmarks.load --target T``.

One topic is filled once. Then, in turn and round by round, Kafka's ShareConsumerPerformance and our
driver, with and without its journals, take all of it with a fresh group and as many consumers as
each other. All are timed from when they are told to begin until the last record, joining included;
for Java that is what the tool itself says. What recording costs is told in CPU time too, which a
busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster, Topic, attempts
from fixtures.targets import open_target
from fixtures.targets.java import find_java
from fixtures.targets.maven import tools_release
from fixtures.wire.frame import Transcript
from fixtures.workload.crew import Crew
from fixtures.workload.plan import Consuming, Place, Producing, Work
from spec.history import log_numbers

PARTITIONS, CONSUMERS, BATCH = 6, 2, 500
TOOLS = "4.3.1"
LIMIT = 300.0


class Bench:
    """A topic full of records, and ways to empty it."""

    def __init__(self, cluster: Cluster, room: Path, records: int, size: int) -> None:
        self.cluster, self.room, self.records, self.size = cluster, room, records, size
        self.admin = Admin(cluster)
        self.runs = 0

    async def fill(self) -> Topic:
        """Make the topic."""
        topic = await self.admin.create_topic(PARTITIONS)
        self.places = tuple(
            Place(log=log, topic=topic.name, partition=index)
            for index, log in zip(range(PARTITIONS), log_numbers(), strict=False)
        )
        logs = tuple(place.log for place in self.places)
        producer = Producing(number=0, logs=logs, size=self.size, records=BATCH)
        crew = await Crew.start([self._work(1, producers=(producer,))])
        await crew.tell("produce")
        async for _ in attempts(LIMIT):
            if json.loads((await crew.ask("count"))[0])["produced"] >= self.records:
                break
        await crew.ask("stop")
        await crew.end()
        return topic

    async def ours(self, topic: Topic, *, record: bool) -> tuple[float, float]:
        """Return the records a second of our driver, and its CPU microseconds a record."""
        group = await self._group()
        crew = await Crew.start(
            self._work(
                number,
                group=group,
                record=record,
                members=(
                    Consuming(number=number, name=f"m{number}", group=group, topics=(topic.name,)),
                ),
            )
            for number in range(1, CONSUMERS + 1)
        )
        idle = sum(json.loads(line)["cpu"] for line in await crew.ask("count"))
        began = time.monotonic()
        await crew.tell("consume")
        while time.monotonic() < began + LIMIT:
            counts = [json.loads(line) for line in await crew.ask("count")]
            if sum(count["delivered"] for count in counts) >= self.records:
                break
            await asyncio.sleep(0.1)
        ended = max(count["last"] for count in counts) / 1e9
        spent = sum(count["cpu"] for count in await crew.end()) - idle
        return self.records / (ended - began), spent / self.records * 1e6

    async def java(self, topic: Topic) -> float:
        """Return the records a second that Kafka's own tool says."""
        group, release = await self._group(), tools_release(TOOLS)
        command = [str(find_java().path), "-Xmx512m", "-cp", release.classpath]
        command += ["org.apache.kafka.tools.ShareConsumerPerformance", "--hide-header"]
        command += ["--bootstrap-server", ",".join(self.cluster.info.bootstrap)]
        command += ["--topic", topic.name, "--group", group, "--threads", str(CONSUMERS)]
        command += ["--num-records", str(self.records), "--timeout", "60000"]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, check=True, timeout=LIMIT
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
        record: bool = True,
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
            queues=tuple((group, place.log, n) for n, place in enumerate(self.places)),
            producers=producers,
            members=members,
            record=record,
        )


async def measure(options: argparse.Namespace, room: Path) -> None:
    """Take turns and print what each round and the medians say."""
    target = open_target(options.target, brokers=3)
    target.start()
    try:
        async with Cluster(target.info, transcript=Transcript(keep=0)) as cluster:
            bench = Bench(cluster, room, int(options.records), options.size)
            topic = await bench.fill()
            rounds: list[tuple[float, ...]] = []
            for _ in range(options.rounds):
                java = await bench.java(topic) if options.java else 1.0
                recorded, cpu = await bench.ours(topic, record=True)
                bare, bare_cpu = await bench.ours(topic, record=False)
                rounds.append((java, recorded, bare, cpu, bare_cpu))
                print(
                    f"java {java:,.0f}/s, ours {recorded:,.0f}/s with {cpu:.2f} us of CPU each, "
                    f"unrecorded {bare:,.0f}/s with {bare_cpu:.2f} us",
                    flush=True,
                )
            print(
                f"ours / java: {median(r[1] / r[0] for r in rounds):.2f}; cost of recording: "
                f"{100 * (1 - median(r[1] / r[2] for r in rounds)):.1f} % of the throughput, "
                f"{100 * (median(r[3] / r[4] for r in rounds) - 1):.1f} % of the client's CPU time"
            )
    finally:
        target.stop()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="kafka:4.4.0")
    parser.add_argument("--records", type=float, default=1e6)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--java", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shareproof-bench-") as room:
        asyncio.run(measure(options, Path(room)))


if __name__ == "__main__":
    main()
