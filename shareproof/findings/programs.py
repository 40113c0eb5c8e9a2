"""Reproduce a finding: ``python -m shareproof.findings 054 --target kafka:4.4.0``.

Each program starts a release, prints what is sent and answered, and knows nothing of the checks'
judge. Exit code 0: the defect was not seen. 1: it was. 2: wrong usage. 3: the cluster did not
start, or the release does not have what it takes. ``--list`` prints the programs. ``--all`` plays
them all, those of work-arounds, too, and ends with 0 if each shows what its page says.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from fixtures.interface.names import KafkaName, parse_target
from fixtures.machine.maven import kafka_release
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.wire.codec import WireError
from fixtures.wire.connection import CallFailed
from fixtures.wire.schema import SchemaError, Schemas
from shareproof.findings import avoided, clients, coordinators, offsets, requests
from shareproof.findings.fates import Fate, Played
from shareproof.findings.program import DIRECT, Run
from spec.verdict import EnvironmentFault, Undecided


@dataclass(frozen=True, slots=True)
class Program:
    """One scenario of a module of this package, and the cluster that it needs."""

    name: str  # The finding's number, and the scenario's name where the module has several.
    play: Callable[[Run], Coroutine[Any, Any, bool]]
    _: KW_ONLY
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

    @property
    def defective(self) -> bool:
        """Whether it is to show the defect, and no work-around."""
        return self.scenario not in ("avoided", "earliest")


RELEASE = "4.4.0"  # It has all of them.
_SEEN = {True: "seen", False: "not seen"}

PROGRAMS = (
    Program("014-avoided", avoided.copies),
    Program("019-avoided", avoided.quotas),
    Program("047-unanswered", offsets.unanswered, proxies=True),
    Program("048-altered", offsets.late_administration, proxies=True),
    Program("049-deleted", offsets.late_administration, proxies=True),
    Program("049-group", offsets.late_administration, proxies=True),
    Program("050", coordinators.topic_not_forgotten),
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
    Program("123", offsets.unread, proxies=True),
    Program("135", clients.behind_a_slow_broker, brokers=3),
    Program("136", clients.beside_its_double),
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


def named(name: str) -> Program | None:
    """Return the program of a name such as ``052-leader``, or the first one of a finding."""
    known = {one.finding: one for one in reversed(PROGRAMS) if one.defective}
    return (known | {one.name: one for one in PROGRAMS}).get(name)


def decided(played: Played, target: str, out: Path) -> Played:
    """Play the program of a finding whose fate nothing else tells; what it prints is in a file."""
    program = named(played.finding)
    if played.fate is not Fate.NOT_PLAYED or program is None:
        return played
    (log := out / "programs" / f"{program.name}.txt").parent.mkdir(parents=True, exist_ok=True)
    why = f"python -m shareproof.findings {program.name} --target {target}"
    with log.open("w", encoding="utf-8") as said, contextlib.redirect_stdout(said):
        try:
            fate = Fate.THERE if play(program, target) else Fate.GONE
        except (UsageFault, EnvironmentFault, Undecided, CallFailed, WireError, SchemaError) as no:
            fate, why = Fate.NOT_PLAYED, f"{why}: {no}"
    return replace(played, fate=fate, why=why)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m shareproof.findings", description=__doc__)
    parser.add_argument("program", nargs="?", help="a finding, such as 054, or 052-leader")
    parser.add_argument("--target", help="kafka:VERSION", default=f"kafka:{RELEASE}")
    parser.add_argument("--list", action="store_true", help="print the programs")
    parser.add_argument("--all", action="store_true", help="play all of them")
    asked = parser.parse_args(arguments)
    if asked.all:
        return _all(asked.target)
    if asked.list or not asked.program:
        for one in PROGRAMS:
            print(f"{one.name:<16} kafka:{RELEASE}  {one.brokers} broker(s)  {one.play.__name__}")
        return 0 if asked.list else 2
    if (chosen := named(asked.program)) is None:
        parser.error(f"{asked.program}: no such program; --list prints them")
    try:
        seen = play(chosen, asked.target)
    except UsageFault as fault:
        parser.error(str(fault))
    except (EnvironmentFault, Undecided) as fault:
        print(f"shareproof.findings: {fault}", file=sys.stderr)
        return 3
    print("the defect was", _SEEN[seen])
    return int(seen)


def _all(target: str) -> int:
    rows, wrong = [], 0
    for one in PROGRAMS:
        print(f"== {one.name}, {target}", flush=True)
        began = time.monotonic()
        try:
            seen = _SEEN[play(one, target)]
        except (EnvironmentFault, Undecided) as fault:
            seen = str(fault)
        wrong += seen != _SEEN[one.defective]
        rows.append((one.name, seen, f"{time.monotonic() - began:.0f} s"))
    print("", "| program | defect | time |", "|---|---|---|", sep="\n")
    for row in rows:
        print("|", " | ".join(row), "|")
    return min(wrong, 1)
