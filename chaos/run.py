"""A chaos run: a load, a schedule played on it, everything healed, and the result."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from chaos.capabilities import OURS, TOXIPROXY, needed, offered, playable
from chaos.play import ChaosResult, Log, Player
from chaos.schedule import Schedule
from chaos.world import World, broker_clock, client_clock
from fixtures.clocks import Clocks
from fixtures.interface.capability import Capability
from fixtures.interface.credentials import security_of
from fixtures.interface.names import AlteredName, innermost, parse_target
from fixtures.interface.target import Variables
from fixtures.machine.maven import clients_jar
from fixtures.proxies.broker_proxies import BrokerProxies, FrameProxies
from fixtures.targets import Target, TargetOptions, UsageFault, open_target
from fixtures.targets.broker import Broker
from fixtures.targets.container.target import ContainerTarget
from fixtures.targets.hooks import Hooks
from fixtures.toxiproxy import ContainedToxiproxies, Toxiproxies
from fixtures.wire.schema import Schemas
from fixtures.wire.security import PLAINTEXT
from fixtures.workload.hosts import Hosts
from fixtures.workload.load import RunningLoad, run_load
from fixtures.workload.plan import KINDS as BEHAVIOURS
from fixtures.workload.plan import PLAIN, Group, Load

OWED = ("INV-01", "INV-02", "INV-04", "INV-05")
"""What every run has to put to the test; what else it exercised is judged as well."""

RECORD = "chaos.json"  # What a run broke, beside its history.

DELIVERY_LIMIT = 10  # The highest of all releases: a response that gets lost costs a delivery

DIRECT = "DIRECT"  # The fault-free listener: the only one without a proxy in front.

PROPERTIES: Mapping[str, str] = {"group.share.delivery.count.limit": str(DELIVERY_LIMIT)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosTest:
    target: str  # Its name.
    schedule: Schedule  # What breaks.
    load: Load  # What it breaks under.
    brokers: int = 3  # How many, one or three.
    scenario: str = ""  # The name of the scenario that this is, if it is one.
    owed: tuple[str, ...] = OWED  # The rules that the run has to put to the test.
    judged: float = 0.0  # Which share of the cases of these rules it may not excuse.
    properties: Mapping[str, str] = field(default_factory=dict)  # Broker properties beside ours.
    proxies: str = OURS  # What stands in front of the brokers, ``ours`` or ``toxiproxy``.
    allowed: bool = False  # Whether brokers that are not ours may be broken.
    hooks: Hooks | None = None  # How to break them.
    clocks: bool = False  # Whether the clocks of brokers and clients are to be movable in any case.
    command_config: str = ""  # The client.properties by which brokers of others let us in; or empty
    prefix: str = ""  # What names of topics and groups have to begin with there.
    hosts: Hosts | None = None  # Where the processes of the load run, if not on this machine.


COMPACTED: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.0",
}
"""Configs of a topic from which compaction takes records at once."""


def is_keyed(schedule: Schedule) -> bool:
    return Capability.COMPACTED_TOPIC in needed(schedule.faults)


def growth(schedule: Schedule) -> int:
    return needed(schedule.faults).count(Capability.SPARE_PARTITION)


def usual_load(schedule: Schedule, rate: float) -> Load:
    """Return the load that a schedule is played on.

    One group only accepts, so that nothing but faults disturbs it; one does all that acknowledging
    offers, under a limit that some records reach; one crashes now and then; one reads what
    transactions committed; and one rejects under limits that change, and has dead letters. Without
    all of these some invariants see nothing.
    """
    groups = (
        Group(name="calm", members=(PLAIN, PLAIN)),
        Group(
            name="odd",
            members=tuple(BEHAVIOURS[n] for n in ("picky", "renewing", "explicit")),
            limit=4,
        ),
        Group(name="rough", members=(BEHAVIOURS["crashing"], PLAIN)),
        Group(name="committed", members=(PLAIN,), committed_only=True),
        Group(
            name="dead",
            members=(BEHAVIOURS["refusing"], BEHAVIOURS["wavering"]),
            dead_letters=True,
            limits_change=True,
        ),
    )
    keyed = is_keyed(schedule)
    return Load(
        seconds=schedule.seconds,
        rate=rate,
        seed=schedule.seed,
        groups=groups,
        drain=90.0,
        patience=10.0,
        delivery_limit=DELIVERY_LIMIT,
        keyed=keyed,
        spare=growth(schedule),
        topic_configs=COMPACTED if keyed else {},
    )


def check(chaos: ChaosTest) -> None:
    offers = offered(
        chaos.target,
        brokers=chaos.brokers,
        proxies=chaos.proxies,
        hooks=chaos.hooks,
        on_hosts=chaos.hosts is not None,
    )
    external = Capability.OWN_CLUSTER not in offers
    if chaos.command_config and not external:
        raise UsageFault(f"--command-config: {chaos.target} needs no credentials.")
    if chaos.schedule.injections and external and (not chaos.allowed or chaos.hooks is None):
        raise UsageFault(
            f"{chaos.target} is not ours to break: give --no-faults, or --allow-faults and --hooks."
        )
    playable(chaos.schedule.faults, offers)
    altered = isinstance(parse_target(chaos.target), AlteredName)
    if Capability.CONTAINER in offers and altered and chaos.proxies == TOXIPROXY:
        raise UsageFault(f"{chaos.target} already has our proxy in front: give --proxies {OURS}.")


@contextlib.contextmanager
def running(chaos: ChaosTest, log: Log) -> Iterator[RunningTarget]:
    """Run the target of a run for a block; raises UsageFault or EnvironmentFault."""
    check(chaos)
    with _opened(chaos, log) as found:
        log(f"starting {chaos.target}")
        found.target.start()
        yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTarget:
    """A target, the proxies in front of its brokers, and the clocks of all processes of a run."""

    target: Target
    log: Log
    proxies: BrokerProxies | None = None
    clocks: Clocks | None = None

    def play(self, chaos: ChaosTest, out: Path) -> ChaosResult:
        """Play a schedule on a load, and leave all in ``out``; raises as :func:`running` does."""
        check(chaos)
        out.mkdir(parents=True, exist_ok=True)
        (out / "schedule.json").write_text(chaos.schedule.to_json(), encoding="utf-8")
        try:
            broke = asyncio.run(_under_load(chaos, self, out))
        finally:
            self._keep_logs(out / "logs")
        document = broke.to_document(
            chaos.schedule, scenario=chaos.scenario, owed=chaos.owed, judged=chaos.judged
        )
        text = json.dumps(document, indent=1, ensure_ascii=False)
        (out / RECORD).write_text(text + "\n", encoding="utf-8")
        return broke

    def _keep_logs(self, folder: Path) -> None:
        """Keep what our brokers logged: a history says what went wrong, and not always why."""
        for broker in self.target.brokers:
            if isinstance(broker, Broker) and (log := broker.home / "broker.log").exists():
                folder.mkdir(exist_ok=True)
                kept = folder / f"broker-{broker.node_id}.log.gz"
                with log.open("rb") as source, gzip.open(kept, "wb") as target:
                    shutil.copyfileobj(source, target)


@contextlib.contextmanager
def _opened(chaos: ChaosTest, log: Log) -> Iterator[RunningTarget]:
    with contextlib.ExitStack() as stack:
        name, toxic = innermost(chaos.target), chaos.proxies == TOXIPROXY
        ours = Capability.PROXIED in name.offers
        contained = toxic and Capability.CONTAINER in name.offers
        proxies: BrokerProxies | None = None
        clocks: Clocks | None = None
        if Capability.CLOCKS in name.offers and needs_clocks(chaos):
            clocks = stack.enter_context(Clocks())
        if ours and toxic and not contained:
            proxies = stack.enter_context(Toxiproxies())
        elif ours and not contained:
            proxies = stack.enter_context(FrameProxies(Schemas.from_jar(clients_jar(name.version))))
        target = open_target(
            chaos.target,
            TargetOptions(
                brokers=chaos.brokers,
                properties={**PROPERTIES, **chaos.properties} if ours else {},
                listeners={DIRECT: "PLAINTEXT"} if ours else {},
                advertise=proxies.advertise if proxies else None,
                variables=_clocked(clocks, broker_clock),
                toxiproxy=contained,
                security=security_of(chaos.command_config),
                prefix=chaos.prefix,
            ),
        )
        if isinstance(target, ContainerTarget) and contained:
            proxies = ContainedToxiproxies(target)
        stack.callback(target.stop)
        yield RunningTarget(target=target, log=log, proxies=proxies, clocks=clocks)


def needs_clocks(chaos: ChaosTest) -> bool:
    return chaos.clocks or Capability.CLOCKS in needed(chaos.schedule.faults)


def _clocked(clocks: Clocks | None, name: Callable[[int], str]) -> Variables | None:
    return (lambda number: clocks.environment(name(number))) if clocks else None


async def _under_load(chaos: ChaosTest, on: RunningTarget, out: Path) -> ChaosResult:
    players: list[Player] = []
    target, proxies, info = on.target, on.proxies, on.target.info
    direct = info.at(DIRECT, PLAINTEXT) if proxies else info

    async def meanwhile(course: RunningLoad) -> None:
        world = World(
            target=target, course=course, proxies=proxies, clocks=on.clocks, hooks=chaos.hooks
        )
        player = Player(world, on.log)
        players.append(player)
        await player.play(chaos.schedule)

    loaded = await run_load(
        # What the run owes to a strict judgement is in RECORD; its history alone owes nothing.
        replace(chaos.load, owed=()),
        direct,
        out,
        on.log,
        meanwhile=meanwhile,
        clients=info,
        environment=_clocked(on.clocks, client_clock),
        hosts=chaos.hosts,
        loads=proxies.loads if isinstance(proxies, FrameProxies) else None,
    )
    died = [f"broker {b.node_id} ended by itself" for b in target.brokers if not b.is_alive]
    return ChaosResult(
        loaded=loaded,
        injections=tuple(players[0].injections),
        trouble=(*players[0].trouble, *died),
        notes=tuple(players[0].notes),
    )
