"""How long until a cluster is ready: ours beside a bare start of the same release.

The bare start does what Kafka's quickstart does: it formats every directory with the release's
StorageTool, all at once, and starts the brokers with the flags of kafka-server-start.sh. Both are
ready by the same test. The two take turns, so that a busy machine is unfair to neither.

    python benchmarks/cluster_start.py --rounds 5
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.interface.names import KafkaName, parse_address
from fixtures.machine.java import broker_environment
from fixtures.machine.jvm import logging_config
from fixtures.machine.ports import free_ports
from fixtures.targets import TargetOptions
from fixtures.targets.blocking import run_blocking
from fixtures.targets.broker import START_TIMEOUT, Broker
from fixtures.targets.cluster import ClusterPlan
from fixtures.targets.config import Ports, cluster_properties, node_properties, render
from fixtures.targets.format import kafka_uuid
from fixtures.targets.kafka import KafkaTarget
from fixtures.targets.ready import wait_until_ready, warm_coordinators
from fixtures.targets.warden import Warden
from fixtures.wire.schema import Schemas

SCRIPT_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
GOALS = {1: 1.5, 3: 4.0}
"""Seconds that a start after the first should take, by brokers."""


def ours(target: KafkaTarget) -> float:
    """Return the seconds of a start as the suite does it."""
    begun = time.monotonic()
    target.start()
    seconds = time.monotonic() - begun
    target.stop()
    return seconds


def bare(plan: ClusterPlan) -> float:
    """Return the seconds of formatting and starting as the quickstart does it."""
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="shareproof-bare-") as directory:
        warden = Warden(token, Path(directory), keep=False)
        brokers = bare_brokers(plan, Path(directory), token)
        try:
            begun = time.monotonic()
            format_all(plan, brokers, token)
            for broker in brokers:
                broker.launch()
            run_blocking(until_ready(plan, brokers))
            return time.monotonic() - begun
        finally:
            for broker in brokers:
                broker.kill()
            warden.close()


def bare_brokers(plan: ClusterPlan, directory: Path, token: str) -> list[Broker]:
    """Write the properties of every broker and return handles on them, not yet started."""
    found = iter(free_ports(3 * plan.options.brokers))
    ports = [
        Ports(client=next(found), internal=next(found), controller=next(found))
        for _ in range(plan.options.brokers)
    ]
    schemas = Schemas.from_jar(plan.release.clients_jar)
    brokers = []
    for node_id in range(1, plan.options.brokers + 1):
        home = directory / f"broker-{node_id}"
        home.mkdir()
        properties = {
            **cluster_properties(plan.release.version, plan.options),
            **node_properties(node_id, ports, home / "data"),
            "controller.quorum.election.timeout.ms": "1000",  # Kafka's default
        }
        (home / "server.properties").write_text(render(properties))
        command = java(plan, home, token, "kafka.Kafka", str(home / "server.properties"))
        broker = Broker(
            node_id=node_id,
            ports=ports[node_id - 1],
            home=home,
            command=command,
            schemas=schemas,
        )
        brokers.append(broker)
    return brokers


def java(plan: ClusterPlan, home: Path, token: str, main: str, *arguments: str) -> list[str]:
    """Return a JVM's command line with the flags of Kafka's own scripts."""
    return [
        str(plan.java.path),
        *SCRIPT_FLAGS,
        f"-Dshareproof.run={token}",
        f"-Dshareproof.log={home / 'broker.log'}",
        f"-Dlog4j2.configurationFile={logging_config(plan.release)}",
        "-cp",
        plan.release.classpath,
        main,
        *arguments,
    ]


def format_all(plan: ClusterPlan, brokers: list[Broker], token: str) -> None:
    """Format all directories at once with the release's own tool."""
    cluster_id = kafka_uuid()
    running = []
    for broker in brokers:
        config = str(broker.home / "server.properties")
        arguments = ("format", "-t", cluster_id, "-c", config)
        command = java(plan, broker.home, token, "kafka.tools.StorageTool", *arguments)
        running.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, env=broker_environment())
        )
    for process in running:
        if process.wait(START_TIMEOUT):
            sys.exit("the StorageTool failed")


async def until_ready(plan: ClusterPlan, brokers: list[Broker]) -> None:
    """Wait as the suite waits."""

    def check() -> None:
        for broker in brokers:
            broker.check_alive()

    nodes = {broker.node_id: parse_address(broker.address) for broker in brokers}
    schemas = Schemas.from_jar(plan.release.clients_jar)
    await wait_until_ready(nodes, schemas, still_possible=check, timeout=START_TIMEOUT)
    await warm_coordinators(nodes[1], schemas, still_possible=check, timeout=START_TIMEOUT)


def compare(version: str, brokers: int, rounds: int) -> str:
    """Return one row of the table."""
    target = KafkaTarget(KafkaName(version=version), TargetOptions(brokers=brokers))
    plan = target.prepare()
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    contest: dict[str, Callable[[], float]] = {
        "ours": lambda: ours(target),
        "bare": lambda: bare(plan),
    }
    for turn in range(rounds):
        for name in sorted(contest, reverse=bool(turn % 2)):
            times[name].append(contest[name]())
    mine, theirs = statistics.median(times["ours"]), statistics.median(times["bare"])
    spread = f"{min(times['ours']):.2f}-{max(times['ours']):.2f}"
    return (
        f"{brokers:>7} {mine:>8.2f} {spread:>12} {GOALS[brokers]:>6.1f} "
        f"{theirs:>8.2f} {theirs / mine:>6.1f}x"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="Cluster start, ours beside a bare one.")
    parser.add_argument("--version", default="4.4.0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--brokers", type=int, nargs="+", default=[1, 3], choices=sorted(GOALS))
    wanted = parser.parse_args()
    print(f"Kafka {wanted.version}, seconds until ready, median of {wanted.rounds}")
    print(f"{'brokers':>7} {'ours':>8} {'min-max':>12} {'goal':>6} {'bare':>8} {'faster':>7}")
    for brokers in wanted.brokers:
        print(compare(wanted.version, brokers, wanted.rounds), flush=True)


if __name__ == "__main__":
    main()
