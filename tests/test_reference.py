"""The reference broker and virtual time: it keeps its word, and says the same thing twice."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random

import pytest

from fixtures import virtual
from fixtures.clients.admin import GROUP_RESOURCE, Admin
from fixtures.clients.bounds import bounds_of
from fixtures.clients.cluster import Cluster
from fixtures.clients.member import accept, release
from fixtures.interface.info import ClusterInfo
from fixtures.reference.mutants import MUTANTS
from fixtures.targets import Target, TargetOptions, open_target, started
from fixtures.wire.records import encode_batch
from fixtures.wire.schema import Schemas
from fixtures.wire.security import Security
from spec.ledger import load_ledger
from spec.rule import AREAS, load_rules
from spec.verdict import EnvironmentFault, OutOfReach
from suites.broker.env import Env
from suites.broker.secure.realm import GuestRealm

ENOUGH = 80  # mutants that there must be at least


@pytest.fixture
def running() -> Iterator[Target]:
    with started(open_target("reference", TargetOptions(brokers=3))) as target:
        yield target


def test_starts_in_a_tenth_of_a_second_and_stops_as_often_as_one_likes() -> None:
    target, took = open_target("reference", TargetOptions(brokers=3)), []
    target.stop()
    for _ in range(5):
        began = time.process_time()
        target.start()
        took.append(time.process_time() - began)
        first = target.info.bootstrap
        target.start()
        assert target.info.bootstrap == first
        target.stop()
        target.stop()
    with pytest.raises(EnvironmentFault, match="not running"):
        _ = target.info
    assert min(took) < 0.1


def test_names_and_properties_that_cannot_be() -> None:
    with pytest.raises(OutOfReach, match="listeners"):
        open_target("reference", TargetOptions(properties={"listeners": "SSL://:9093"})).start()
    impossible = {"group.share.delivery.count.limit": "1"}
    with pytest.raises(EnvironmentFault, match="does not start"):
        open_target("reference", TargetOptions(properties=impossible)).start()
    ledger = load_ledger("reference")
    assert (ledger.expected, ledger.absent) == ((), ())


async def use(info: ClusterInfo, schemas: Schemas) -> list[int]:
    batch = encode_batch([b"x", b"x"])
    async with Cluster(info, schemas=schemas, rng=Random(7)) as cluster:
        await cluster.any()
        env = Env(cluster, Random(7), await bounds_of(cluster))
        queue = await env.queue(batches=2, lock_ms=1000)
        for _ in range(2):
            await env.admin.append(queue.topic, batch)
        consumer = await queue.consumer()
        held = await consumer.acquire(4)
        await consumer.acked(accept(0), release(1))
        again = await consumer.acquire(1)
        await consumer.close()
        return [*held.offsets, *again.offsets]


async def test_end_to_end(running: Target) -> None:
    schemas = Schemas.from_jar(running.info.schema_jar)
    assert await use(running.info, schemas) == [0, 1, 2, 3, 1]
    key = "share.heartbeat.interval.ms"
    async with Cluster(running.info, rng=Random(0)) as cluster:
        admin, group = Admin(cluster), cluster.fresh_name("g")
        await admin.group_config(group, {key: "2000"})
        assert (await admin.configs(GROUP_RESOURCE, group))[key] == "2000"
        await admin.group_config(group, {key: None})
        assert (await admin.configs(GROUP_RESOURCE, group)).get(key) != "2000"


def test_mutants_are_many_and_of_every_area() -> None:
    rules = load_rules()
    assert len(MUTANTS) >= ENOUGH
    for mutant in MUTANTS.values():
        assert mutant.sentence.endswith(".")
        assert mutant.rules
        assert set(mutant.rules) <= set(rules)
    beyond = {"CLI", "INV", "SEC", "COO", "FRM"}
    assert {rule[:3] for mutant in MUTANTS.values() for rule in mutant.rules} >= set(AREAS) - beyond


async def test_no_user_is_left_behind_where_a_second_one_is_refused(running: Target) -> None:
    second = replace(running.info, security=Security(user="somebody"))
    async with Cluster(running.info, rng=Random(0)) as cluster, AsyncExitStack() as stack:
        env = Env(cluster, Random(0), await bounds_of(cluster))
        realm = GuestRealm(env, second, stack)
        before = asyncio.all_tasks()
        with pytest.raises(OutOfReach, match=r"nobody allowed it|several users"):
            await realm.users(2)
        await stack.aclose()
        await cluster.close()
        assert asyncio.all_tasks() <= before


# --- Virtual time and network ------------------------------------------------------------------


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
    writer.close()


async def opened() -> tuple[asyncio.Server, asyncio.StreamReader, asyncio.StreamWriter]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    return server, *await asyncio.open_connection(*server.sockets[0].getsockname())


def test_waiting_costs_nothing() -> None:
    async def year() -> tuple[float, float]:
        monotonic, wall = time.monotonic(), time.time()
        await asyncio.sleep(365 * 86400)
        return time.monotonic() - monotonic, time.time() - wall

    began = time.monotonic()
    passed = virtual.run(year())

    assert passed == pytest.approx((365 * 86400,) * 2, abs=1)
    assert time.monotonic() - began < 60


def test_timers_come_in_their_order_and_clocks_are_given_back() -> None:
    async def race() -> list[int]:
        came: list[int] = []

        async def one(seconds: int) -> None:
            await asyncio.sleep(seconds)
            came.append(seconds)

        await asyncio.gather(*(one(seconds) for seconds in (30, 10, 20)))
        return came

    async def fail() -> None:
        raise ZeroDivisionError

    honest = time.monotonic, time.time
    assert virtual.run(race()) == [10, 20, 30]
    with pytest.raises(ZeroDivisionError):
        virtual.run(fail())
    assert (time.monotonic, time.time) == honest


def test_nothing_left_to_happen() -> None:
    """A wait for what cannot come ends at once, and so does a program without an end.

    A program that polls comes to its deadline: a poll takes time, too.
    """

    async def polled() -> float:
        while (now := time.monotonic()) < 1:  # noqa: ASYNC110 - it never pauses
            await asyncio.sleep(0)
        return now

    async def forever() -> None:
        while True:  # noqa: ASYNC110 - it is meant to be endless
            await asyncio.sleep(0)

    async def never() -> None:
        await asyncio.Event().wait()

    assert virtual.run(polled()) == pytest.approx(1, abs=0.1)
    with pytest.raises(virtual.Stalled, match="nothing can happen"):
        virtual.run(never())
    with pytest.raises(virtual.Stalled, match="no end"):
        virtual.run(forever())


def test_ends_of_connections() -> None:
    async def end() -> tuple[bytes, str, str]:
        server, reader, writer = await opened()
        writer.close()
        await writer.wait_closed()
        here, there = asyncio.Event(), asyncio.Queue[str]()

        async def hold(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            here.set()
            try:
                there.put_nowait(repr(await reader.read()))
            except ConnectionResetError as error:
                there.put_nowait(type(error).__name__)

        second = await asyncio.start_server(hold, "127.0.0.1", 0)
        address = second.sockets[0].getsockname()
        _, aborted = await asyncio.open_connection(*address)
        await here.wait()
        aborted.transport.abort()
        reset = await there.get()
        second.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        server.close()
        return await reader.read(), reset, str(address[0])

    assert virtual.run(end()) == (b"", "ConnectionResetError", "127.0.0.1")


def test_other_processes_stay_outside() -> None:
    async def leave() -> int:
        one = await asyncio.to_thread(lambda: 1)
        await asyncio.create_subprocess_exec("true")
        return one

    with pytest.raises(OutOfReach, match="network in memory"):
        virtual.run(leave())
