"""Reproduce a finding: ``python -m shareproof.findings 054 --target kafka:4.4.0``.

Each program starts a release, prints what is sent and answered, and knows nothing of the checks'
judge. Exit code 0: the defect was not seen. 1: it was. 2: wrong usage. 3: the cluster did not
start, or the release does not have what it takes. ``--list`` prints the programs. ``--all`` plays
them all, those of work-arounds, too, and ends with 0 if each shows what its page says. Such a
program takes the steps of a finding twice: as they are, and with what avoids it.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fixtures.adapters.clients import in_java
from fixtures.adapters.shipped import command_of
from fixtures.adapters.versions import NEWEST
from fixtures.clients.cluster import Cluster, attempts
from fixtures.clients.member import Member, accept, reject
from fixtures.clients.transactions import TransactionalProducer
from fixtures.clients.users import BYTE_RATE, REQUEST_SHARE
from fixtures.interface.names import KafkaName, parse_target
from fixtures.machine.maven import client_release, kafka_release
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.wire.codec import WireError
from fixtures.wire.connection import CallFailed, CallTimeout, Connection
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.records import Compression, encode_batch
from fixtures.wire.schema import SchemaError, Schemas
from fixtures.wire.security import Security
from shareproof.findings import offsets
from shareproof.findings.fates import Fate, Played
from shareproof.findings.offsets import DIRECT, Run, refuse, say
from shareproof.hostile import play_on
from spec.verdict import EnvironmentFault, Undecided
from suites.broker.deadletters import boxed, dead_topic, rejecting, verdicts
from suites.broker.env import Env
from suites.broker.settings import LITTLE, held_to
from suites.broker.state import limit_state, without_topic

LISTENER, PASSWORD = "USERS", "finding"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.users.plain.sasl.jaas.config": f'{MODULE} required user_nobody="{PASSWORD}";',
}
PATIENCE = 10.0  # seconds without a response; the others take milliseconds


async def ask(connection: Connection, api: str, **body: Any) -> bool:
    try:
        response = await connection.call(api, timeout=PATIENCE, **body)
    except CallTimeout:
        say(f"  {api}: no response within {PATIENCE:g} s")
        return False
    say(f"  {api}: a response, error {error_name(getattr(response, 'error_code', 0))}")
    return True


async def answered(cluster: Cluster, users: list[str] | None) -> tuple[bool, bool]:
    say("users", users)
    node = min(cluster.brokers)
    asked, other = await cluster.dial(node), await cluster.dial(node)
    first = await ask(asked, "DescribeUserScramCredentials", users=users)
    say("  the same connection:")
    behind = await ask(asked, "Metadata", topics=[])
    say("  another connection:")
    await ask(other, "Metadata", topics=[])
    return first, behind


async def unanswered_refusal(run: Run) -> bool:
    """A refusal that never comes, and what waits behind it on the connection: finding 070.

    Exit code 1 if the second request gets no response, nor what follows on its connection.
    """
    nobody = Security(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", user="nobody", password=PASSWORD
    )
    info = run.target.info.at(LISTENER, nobody)
    async with Cluster(info, schemas=Schemas.from_jar(info.schema_jar)) as cluster:
        await answered(cluster, [])
        return await answered(cluster, None) == (False, False)


OFFSETS = "__consumer_offsets"
PACE = 1.5  # seconds between heartbeats: more than share.assignment.interval.ms


async def epochs(member: Member, count: int) -> list[int]:
    seen = []
    for _ in range(count):
        answer = await member.heartbeat()
        if answer.error_code:
            say("heartbeat answered", error_name(answer.error_code), answer.error_message)
        seen.append(int(answer.member_epoch))
        await asyncio.sleep(PACE)  # the pace of heartbeats
    return seen


async def topic_not_forgotten(run: Run) -> bool:
    """A topic whose deletion the group coordinator could not write down: finding 050.

    Exit code 1 if the epoch goes up for as long as anybody looks, although nothing changes any
    more.
    """
    async with run.open_env() as env:
        for jammed in (False, True):
            say("with a jam" if jammed else "without a jam")
            one, two = [await env.admin.create_topic() for _ in range(2)]
            member = await env.member(env.cluster.fresh_name("g"), one, two)
            say("  two topics are there; member epochs", await epochs(member, 3))
            if jammed:
                await limit_state(env, "1", OFFSETS)
            await without_topic(env, one.name)
            await asyncio.sleep(PACE)  # the coordinator hears of it by itself
            if jammed:
                await limit_state(env, None, OFFSETS)
            say("  one is deleted; member epochs", await epochs(member, 5))
            await env.admin.create_topic(name=one.name)
            say("  it is created again; member epochs", await epochs(member, 5))
            last = await epochs(member, 5)
            say("  and then", last)
        await env.disband()
    return len(set(last)) == len(last)


SCRIPTS = Path(__file__).parents[2] / "docs" / "findings" / "scripts"


async def _ends_with_1(run: Run, script: str, program: Sequence[str | Path]) -> bool:
    async with run.open_env() as env:
        code = await play_on(env, SCRIPTS / "hostile" / script, [str(word) for word in program])
    if code not in (0, 1):
        raise EnvironmentFault(f"The program ended with exit code {code}.")
    return code == 1


async def behind_a_slow_broker(run: Run) -> bool:
    """A broker that takes six seconds for each fetch, beside two that do not: finding 135.

    Exit code 1 if a record of the others waits for over three seconds, too.
    """
    node, adapter = command_of("kafkats")
    with TemporaryDirectory() as folder:
        (Path(folder) / "node_modules").symlink_to(Path(adapter).with_name("node_modules"))
        program = shutil.copy(SCRIPTS / "kafkats" / "slow.mjs", folder)
        return await _ends_with_1(run, "slow-broker.toml", [node, program])


async def beside_its_double(run: Run) -> bool:
    """The same calls to a share consumer and to MockShareConsumer: finding 136.

    Exit code 1 if one of them returns something else.
    """
    version, quiet = NEWEST["java"], "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    java = in_java(
        "The program of finding 136",
        f"findings {version}",
        client_release(version),
        [SCRIPTS / "java"],
        folders=[SCRIPTS / "java"],
        start=(quiet, "Double"),
        kind="program",
    )
    return await _ends_with_1(run, "singles.toml", java)


Steps = Callable[[Run, Env, bool], Coroutine[Any, Any, list[int]]]


def tried(steps: Steps) -> Callable[[Run], Coroutine[Any, Any, bool]]:
    """Return a program: the defect is seen if steps return records with the work-around, too."""

    async def play(run: Run) -> bool:
        async with run.open_env() as env:
            plain = await steps(run, env, False)
            say("as it is, these have suffered:", plain or "none")
            avoided = await steps(run, env, True)
            say("with the work-around:", avoided or "none")
        return bool(avoided)

    play.__name__ = steps.__name__
    return play


@tried
async def quotas(_: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 019, and quotas that no fetch reaches: records that nobody was ever given."""
    queue = await env.queue(10, lock_ms=1000)
    payer, other = await queue.consumer(), await queue.consumer(join=False)
    given: set[int] = set()
    limits = {REQUEST_SHARE: 100_000.0, BYTE_RATE: 1e9} if avoided else {REQUEST_SHARE: LITTLE}
    async with held_to(env, payer, **limits):
        async for _left in attempts(PATIENCE, 0.5):
            given.update((await payer.fetch(max_wait_ms=300)).offsets)
    async for _left in attempts(3):
        given.update((await other.fetch()).offsets)
    return sorted({*range(10)} - given)


@tried
async def transactions(_: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 108, and read_uncommitted: records that did not come."""
    level = "read_uncommitted" if avoided else "read_committed"
    queue, former = await env.with_holder(3, group_config={"share.isolation.level": level})
    await former.acked(accept(0, 2))
    async with TransactionalProducer.open(env.cluster) as producer:
        first = await producer.append(queue.topic, 12)
        last = await queue.produce(4) + 3
        await env.admin.delete_records(queue.topic, first + 5)
        await producer.abort()
    await former.depart()
    consumer, given = await queue.consumer(join=False), set[int]()
    async for _left in attempts(PATIENCE):
        given.update((await consumer.fetch()).offsets)
    return sorted({*range(last - 3, last + 1)} - given)


@tried
async def locks(run: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 109, and a lock that outlasts the attempts of a state write: a new record."""
    queue, holder, other = await env.with_pair(
        records=10, batches=10, lock_ms=60_000 if avoided else 1000
    )
    await holder.acquire(5, max_records=5)
    refuse(run, "WriteShareGroupState", 1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pending = asyncio.create_task(holder.ack(reject(0, 4), timeout=90))
    await asyncio.sleep(0.5)  # until the write is under way
    await env.admin.delete_records(queue.topic, 7)
    await other.acquire(3)
    say("the rejection gets", (await pending).ack_error)
    run.let_pass(1)
    await holder.close()
    new, given = await queue.produce(1), set[int]()
    async for _left in attempts(PATIENCE):
        given.update((await other.fetch()).offsets)
    return [] if new in given else [new]


@tried
async def letters(run: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 138, and records that stay until their letters are written: a later record."""
    box = await boxed(env, 10, batches=2, group_config={"share.partition.max.record.locks": "100"})
    holder, other = await box.queue.consumer(), await box.queue.consumer(join=False)
    await holder.acquire(5, max_records=5)
    refuse(run, "WriteShareGroupState", 1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pending = asyncio.create_task(holder.ack(*verdicts(5, (1, 3)), timeout=90))
    await asyncio.sleep(0.5)  # until the write is under way
    if not avoided:
        await env.admin.delete_records(box.queue.topic, 10)
    given = (await other.fetch()).offsets
    run.let_pass(1)
    say("the acknowledgement gets", (await pending).ack_error)
    last = await box.queue.produce(120, batches=12) + 119
    async for _left in attempts(PATIENCE):
        given = (await other.fetch(*map(accept, given))).offsets
        if last in given:
            return []
    return [last]


@tried
async def copies(_: Run, env: Env, avoided: bool) -> list[int]:
    """Finding 014, and a topic that takes a whole batch, decompressed: letters without a copy."""
    limit = 1_000_000 if avoided else 20_000
    box = await boxed(
        env, dead=await dead_topic(env, configs={"max.message.bytes": str(limit)}), copy=True
    )
    values = [b"%d " % number + bytes(1000) for number in range(40)]
    await env.admin.append(box.queue.topic, encode_batch(values, compression=Compression.GZIP))
    await rejecting(box, len(values))
    letters = {one.offset: one.record.value for one in await box.arrived(range(len(values)))}
    return [offset for offset, value in enumerate(values) if letters.get(offset) != value]


async def copies_in_memory(run: Run) -> bool:
    """A broker that leads a dead-letter topic stands still, and what others copy: finding 144.

    Exit code 1 if another broker, whose heap is 384 MB, ends of one batch of 900 kB.
    """
    count, nodes = 1000, {broker.node_id: broker for broker in run.target.brokers}
    async with run.open_env() as env:
        box = await boxed(
            env, copy=True, assignments=[[1]], dead=await dead_topic(env, assignments=[[2]])
        )
        await box.queue.produce([bytes(900)] * count)
        consumer = await box.queue.holder(count)
        nodes[2].pause()
        try:
            part = await consumer.ack(*verdicts(count, range(0, count, 2)), timeout=60)
            say("broker 2 stands still; rejecting every other record gets", part.ack_error)
            async for _left in attempts(3 * PATIENCE):
                if nodes[1].exit_code is not None:
                    break
        finally:
            nodes[2].resume()
        say(
            "broker 1",
            f"has ended with exit code {nodes[1].exit_code}"
            if nodes[1].exit_code is not None
            else "serves",
        )
        return nodes[1].exit_code is not None


@dataclass(frozen=True, slots=True)
class Program:
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
        return self.scenario not in ("avoided", "earliest")


RELEASE = "4.4.0"  # It has all of them.
_SEEN = {True: "seen", False: "not seen"}

PROGRAMS = (
    Program("014-avoided", copies),
    Program("019-avoided", quotas),
    Program("047-unanswered", offsets.unanswered, proxies=True),
    Program("048-altered", offsets.late_administration, proxies=True),
    Program("049-deleted", offsets.late_administration, proxies=True),
    Program("049-group", offsets.late_administration, proxies=True),
    Program("050", topic_not_forgotten),
    Program("052-leader", offsets.unstored_start, brokers=3),
    Program("052-idle", offsets.unstored_start),
    Program("052-earliest", offsets.unstored_start, brokers=3),
    Program("053-altered", offsets.altered, brokers=3, proxies=True),
    Program("054", offsets.deleted_lag),
    Program(
        "070",
        unanswered_refusal,
        properties=PROPERTIES,
        listeners={LISTENER: "SASL_PLAINTEXT"},
    ),
    Program("108-avoided", transactions),
    Program("109-avoided", locks, proxies=True),
    Program("138-avoided", letters, proxies=True),
    Program("123", offsets.unread, proxies=True),
    Program("135", behind_a_slow_broker, brokers=3),
    Program("136", beside_its_double),
    Program("144", copies_in_memory, brokers=3),
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
    known = {one.finding: one for one in reversed(PROGRAMS) if one.defective}
    return (known | {one.name: one for one in PROGRAMS}).get(name)


def decided(played: Played, target: str, out: Path) -> Played:
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
