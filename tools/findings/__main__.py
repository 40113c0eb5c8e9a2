"""Reproduce a finding about brokers: ``python -m tools.findings 051 --target kafka:4.4.0``.

Each program starts a release, prints what is sent and answered, and knows nothing of the checks'
judge. Exit code 0: the defect was not seen. 1: it was. 2: wrong usage. 3: the cluster did not
start. ``--list`` prints the programs.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from fixtures.interface.names import KafkaName, parse_target
from fixtures.machine.maven import kafka_release
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault
from tools.findings import avoided, coordinators, offsets, requests
from tools.findings.program import DIRECT, Run


@dataclass(frozen=True, slots=True)
class Program:
    """One scenario of a module of this package, and the cluster that it needs."""

    name: str  # The finding's number, and the scenario's name where the module has several.
    play: Callable[[Run], Coroutine[Any, Any, bool]]
    _: KW_ONLY
    release: str = "4.4.0"
    brokers: int = 1
    proxies: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, str] = field(default_factory=dict)

    @property
    def finding(self) -> str:
        return self.name.partition("-")[0]

    @property
    def scenario(self) -> str:
        return self.name.partition("-")[2]


PROGRAMS = (
    Program("014-avoided", avoided.copies),
    Program("019-avoided", avoided.quotas),
    Program("047-unanswered", offsets.unanswered, proxies=True),
    Program("048-altered", offsets.late_administration, proxies=True),
    Program("049-deleted", offsets.late_administration, proxies=True),
    Program("049-group", offsets.late_administration, proxies=True),
    Program("050", coordinators.topic_not_forgotten),
    Program("051", requests.written_together, proxies=True),
    Program("052-leader", offsets.unstored_start, brokers=3),
    Program("052-idle", offsets.unstored_start),
    Program("052-earliest", offsets.unstored_start, brokers=3),
    Program("053-altered", offsets.altered, brokers=3, proxies=True),
    Program("054", offsets.deleted_lag),
    Program(
        "070",
        requests.unanswered_refusal,
        properties=requests.PROPERTIES,
        listeners={requests.LISTENER: "SASL_PLAINTEXT"},
    ),
    Program("108-avoided", avoided.transactions),
    Program("109-avoided", avoided.locks, proxies=True),
)


def play(program: Program, name: str) -> bool:
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
        return asyncio.run(program.play(run))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.findings", description=__doc__)
    parser.add_argument("program", nargs="?", help="a finding, such as 051, or 052-leader")
    parser.add_argument("--target", help="kafka:VERSION; a release that has the defect if left out")
    parser.add_argument("--list", action="store_true", help="print the programs")
    asked = parser.parse_args(arguments)
    if asked.list or not asked.program:
        for one in PROGRAMS:
            print(
                f"{one.name:<16} kafka:{one.release}  {one.brokers} broker(s)  {one.play.__name__}"
            )
        return 0 if asked.list else 2
    known = {one.name: one for one in PROGRAMS}
    known |= {one.finding: one for one in reversed(PROGRAMS) if one.scenario != "avoided"}
    if asked.program not in known:
        parser.error(f"{asked.program}: no such program; --list prints them")
    try:
        chosen = known[asked.program]
        seen = play(chosen, asked.target or f"kafka:{chosen.release}")
    except UsageFault as fault:
        parser.error(str(fault))
    except EnvironmentFault as fault:
        print(f"tools.findings: {fault}", file=sys.stderr)
        return 3
    print("the defect was seen" if seen else "the defect was not seen")
    return int(seen)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
