"""The frame proxies, in front of the reference broker: what passes, and each way to disturb it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from fixtures.interface.names import Address, parse_address
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.proxies.conditions import CLIENT, INTERNAL, LATENCY, Condition
from fixtures.proxies.exchange import Action
from fixtures.proxies.proxy import ProxyListener
from fixtures.proxies.rules import Direction, FrameRule, state_write_refused
from fixtures.targets import open_target
from fixtures.wire.connection import CallFailed, CallTimeout, Connection, ConnectionLost
from fixtures.wire.schema import Schemas

pytestmark = pytest.mark.anyio
NODE = 1
BRIEF = 0.5
METADATA = bytes.fromhex("0003 0000 00000007 ffff 00000000")
"""A Metadata request of version 0, for all topics."""


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio: that is what the connection is written for."""
    return "asyncio"


class ProxiedBroker:
    """A proxy in front of a reference broker, and connections by way of it."""

    def __init__(self, proxies: FrameProxies, listener: ProxyListener, schemas: Schemas) -> None:
        self.proxies, self.listener, self.schemas = proxies, listener, schemas

    @asynccontextmanager
    async def connected(self, timeout: float = 10.0) -> Any:
        """Give a connection by way of the proxy."""
        address = self.listener.address
        connection = await Connection.open(
            address.host, address.port, schemas=self.schemas, timeout=timeout
        )
        async with connection:
            yield connection

    async def greets(self, within: float = 10.0) -> bool:
        """Tell whether a new client is greeted."""
        try:
            async with self.connected(within):
                return True
        except CallFailed:
            return False


@pytest.fixture
def broker() -> Iterator[ProxiedBroker]:
    """A proxy in front of a reference broker."""
    target = open_target("reference")
    target.start()
    try:
        schemas = Schemas.from_jar(target.info.schema_jar)
        address = parse_address(target.info.bootstrap[0])
        with FrameProxies(schemas) as proxies:
            shown = proxies.advertise(NODE, {CLIENT: address, INTERNAL: address})
            listener = proxies.listener(NODE, CLIENT)
            assert shown[CLIENT] == listener.address != address
            yield ProxiedBroker(proxies, listener, schemas)
    finally:
        target.stop()


async def test_frames_pass_unchanged(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        answer = await connection.call("Metadata", topics=[])
        assert answer.brokers


@pytest.mark.parametrize("condition", [Condition.RESET, Condition.STALL, Condition.HALF_OPEN])
async def test_condition_comes_and_goes(broker: ProxiedBroker, condition: Condition) -> None:
    assert await broker.greets()
    await asyncio.to_thread(broker.proxies.begin, broker.listener, condition)
    assert not await broker.greets(BRIEF)
    await asyncio.to_thread(broker.proxies.end, broker.listener, condition)
    assert await broker.greets()


async def test_slow_is_slow(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        await asyncio.to_thread(broker.proxies.begin, broker.listener, Condition.LATENCY)
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", timeout=LATENCY, topics=[])
        await asyncio.to_thread(broker.proxies.end, broker.listener, Condition.LATENCY)
        assert (await connection.call("Metadata", topics=[])).brokers


async def test_cut_ends_what_was_open(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        await asyncio.to_thread(broker.proxies.begin, broker.listener, Condition.RESET)
        assert await connection.wait_closed(10.0)


async def test_stall_gives_back_what_it_kept(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        await asyncio.to_thread(broker.proxies.begin, broker.listener, Condition.STALL)
        asked = asyncio.create_task(connection.call("Metadata", topics=[]))
        done, _ = await asyncio.wait({asked}, timeout=BRIEF)
        assert not done
        await asyncio.to_thread(broker.proxies.end, broker.listener, Condition.STALL)
        assert (await asked).brokers


async def _with_rule(broker: ProxiedBroker, rule: FrameRule) -> None:
    await asyncio.to_thread(broker.proxies.add_rule, broker.listener, rule)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("action", [Action.RESET, Action.TRUNCATE])
async def test_second_frame_ends_the_connection(
    broker: ProxiedBroker, direction: Direction, action: Action
) -> None:
    async with broker.connected() as connection:
        await _with_rule(
            broker,
            FrameRule(apis=frozenset({"Metadata"}), direction=direction, action=action, nth=2),
        )
        await connection.call("Metadata", topics=[])
        with pytest.raises(ConnectionLost):
            await connection.call("Metadata", topics=[])


async def test_dropped_frame(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        rule = FrameRule(
            apis=frozenset({"Metadata"}), direction=Direction.REQUEST, action=Action.DROP, nth=2
        )
        await _with_rule(broker, rule)
        await connection.call("Metadata", topics=[])
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", timeout=BRIEF, topics=[])
        await connection.call("Metadata", topics=[])


async def test_doubled_request(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        rule = FrameRule(
            apis=frozenset({"Metadata"}), direction=Direction.REQUEST, action=Action.DUPLICATE
        )
        await _with_rule(broker, rule)
        for _ in range(3):
            await connection.call("Metadata", topics=[])
        frames = [frame for frame in connection.transcript.frames if not frame.sent]
        assert rule.done == 3
        assert len(frames) == 1 + 3  # one greeting, and a response to each request


async def test_refused_state_write(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        refusal = state_write_refused(15)
        rule = FrameRule(
            apis=frozenset({"WriteShareGroupState"}),
            direction=Direction.REQUEST,
            action=Action.RESPOND,
            refusal=refusal,
        )
        await _with_rule(broker, rule)
        topic = {"topic_id": UUID(int=1), "partitions": []}
        parts: list[dict[str, Any]] = [
            {"partition": index, "state_batches": []} for index in (0, 1)
        ]
        answer = await connection.call(
            "WriteShareGroupState", group_id="g", topics=[{**topic, "partitions": parts}]
        )
        seen = [part.error_code for result in answer.results for part in result.partitions]
        assert seen == [15, 15]


async def test_a_rule_that_ends_before_both_responses_came(broker: ProxiedBroker) -> None:
    both, go = asyncio.Event(), asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = [await reader.readexactly(4 + len(METADATA)) for _ in range(2)]
        both.set()
        await go.wait()
        response = (8).to_bytes(4, "big") + METADATA[4:8] + b"said"
        writer.write(response * 2)
        again = await reader.readexactly(4 + len(METADATA))
        assert again == frames[0]
        writer.write(response)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        with FrameProxies(broker.schemas) as proxies:
            there = Address(host=host, port=port)
            shown = proxies.advertise(NODE, {CLIENT: there, INTERNAL: there})[CLIENT]
            listener = proxies.listener(NODE, CLIENT)
            rule = FrameRule(
                apis=frozenset({"Metadata"}), direction=Direction.REQUEST, action=Action.DUPLICATE
            )
            proxies.add_rule(listener, rule)
            reader, writer = await asyncio.open_connection(shown.host, shown.port)
            frame = len(METADATA).to_bytes(4, "big") + METADATA
            writer.write(frame)
            await both.wait()
            await asyncio.to_thread(proxies.remove_rule, listener, rule)
            go.set()
            async with asyncio.timeout(10):
                assert (await reader.readexactly(12))[8:] == b"said"
                writer.write(frame)
                assert (await reader.readexactly(12))[8:] == b"said"
            writer.close()
            await writer.wait_closed()
