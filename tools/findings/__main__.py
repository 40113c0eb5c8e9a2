"""Reproduce a finding about brokers: ``python -m tools.findings 051 --target kafka:4.4.0``.

Each program starts a release, prints what is sent and answered, and knows nothing of the checks'
judge. Exit code 0: the defect was not seen. 1: it was. 2: wrong usage. 3: the cluster did not
start. ``--list`` prints the programs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fixtures.interface.names import KafkaName, parse_target
from fixtures.machine.maven import kafka_release
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault
from tools.findings import unanswered_refusal
from tools.findings.program import DIRECT, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One scenario of a module of this package, and the cluster that it needs."""

    finding: str
    module: str
    scenario: str = ""
    release: str = "4.4.0"
    brokers: int = 1
    proxies: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.finding}-{self.scenario}" if self.scenario else self.finding


_SESSIONS = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "500",
}

PROGRAMS = (
    Program(finding="027", module="late_state_writes", scenario="dropped", brokers=3, proxies=True),
    Program(
        finding="028", module="late_state_writes", scenario="released", brokers=3, proxies=True
    ),
    Program(finding="029", module="late_state_writes", scenario="stale", brokers=3, proxies=True),
    Program(
        finding="042",
        module="moving_coordinator",
        release="4.1.2",
        brokers=3,
        properties={"metadata.max.idle.interval.ms": "0"},
    ),
    Program(
        finding="043",
        module="first_load",
        scenario="reset",
        release="4.1.2",
        brokers=3,
        proxies=True,
    ),
    Program(
        finding="043",
        module="first_load",
        scenario="killed",
        release="4.1.2",
        brokers=3,
        proxies=True,
    ),
    Program(finding="044", module="session_and_heartbeat", release="4.2.1", properties=_SESSIONS),
    Program(
        finding="045",
        module="snapshot_spacing",
        release="4.1.2",
        properties={"share.coordinator.snapshot.update.records.per.snapshot": "3"},
    ),
    Program(finding="046", module="topic_going", scenario="held", proxies=True),
    Program(finding="046", module="topic_going", scenario="race", brokers=3),
    Program(finding="047", module="known_topic", scenario="altered"),
    Program(finding="047", module="known_topic", scenario="refused"),
    Program(finding="047", module="initialised_again", scenario="partial", brokers=3, proxies=True),
    Program(finding="047", module="initialised_again", scenario="unanswered", proxies=True),
    Program(finding="048", module="late_administration", scenario="altered", proxies=True),
    Program(finding="049", module="late_administration", scenario="deleted", proxies=True),
    Program(finding="049", module="late_administration", scenario="group", proxies=True),
    Program(finding="050", module="topic_not_forgotten"),
    Program(finding="051", module="written_together", proxies=True),
    Program(finding="052", module="unstored_start", scenario="leader", brokers=3),
    Program(finding="052", module="unstored_start", scenario="idle"),
    Program(finding="052", module="unstored_start", scenario="earliest", brokers=3),
    Program(finding="053", module="initialised_again", scenario="altered", brokers=3, proxies=True),
    Program(finding="054", module="deleted_lag"),
    Program(
        finding="070",
        module="unanswered_refusal",
        properties=unanswered_refusal.PROPERTIES,
        listeners={unanswered_refusal.LISTENER: "SASL_PLAINTEXT"},
    ),
)


def play(program: Program, name: str) -> bool:
    """Start the cluster, play the program on it, and return whether the defect was seen.

    Raises:
        UsageFault: the target is not a Kafka release.
        EnvironmentFault: it did not start.
    """
    target_name = parse_target(name)
    if not isinstance(target_name, KafkaName):
        raise UsageFault(f"--target {name}: give a release, such as kafka:4.4.0.")
    with contextlib.ExitStack() as stack:
        proxies = None
        if program.proxies:
            jar = kafka_release(target_name.version).clients_jar
            proxies = stack.enter_context(FrameProxies(Schemas.from_jar(jar)))
        target = open_target(
            name,
            TargetOptions(
                brokers=program.brokers,
                properties=program.properties,
                listeners={**program.listeners, **({DIRECT: "PLAINTEXT"} if proxies else {})},
                advertise=proxies.advertise if proxies else None,
            ),
        )
        stack.callback(target.stop)
        target.start()
        run = Run(target=target, scenario=program.scenario, proxies=proxies)
        module = importlib.import_module(f"tools.findings.{program.module}")
        return bool(asyncio.run(module.play(run)))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.findings", description=__doc__)
    parser.add_argument("program", nargs="?", help="a finding, such as 051, or 052-leader")
    parser.add_argument("--target", help="kafka:VERSION; a release that has the defect if left out")
    parser.add_argument("--list", action="store_true", help="print the programs")
    asked = parser.parse_args(arguments)
    if asked.list or not asked.program:
        for one in PROGRAMS:
            print(f"{one.name:<16} kafka:{one.release}  {one.brokers} broker(s)  {one.module}")
        return 0 if asked.list else 2
    found = [one for one in PROGRAMS if asked.program in {one.name, one.finding}]
    if not found:
        parser.error(f"{asked.program}: no such program; --list prints them")
    try:
        seen = play(found[0], asked.target or f"kafka:{found[0].release}")
    except UsageFault as fault:
        parser.error(str(fault))
    except EnvironmentFault as fault:
        print(f"tools.findings: {fault}", file=sys.stderr)
        return 3
    print("the defect was seen" if seen else "the defect was not seen")
    return int(seen)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
