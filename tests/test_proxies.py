"""Fronts, before the reference broker: fair weather changes nothing, and each trouble shows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from fixtures.interface.names import parse_address
from fixtures.proxies.conditions import CLIENT, INTERNAL, SLOW, Trouble
from fixtures.proxies.fronts import Front, Fronts
from fixtures.proxies.rules import Act, Rule, Way, state_write_refused
from fixtures.targets import open_target
from fixtures.wire.connection import CallFailed, CallTimeout, Connection, ConnectionLost
from fixtures.wire.schema import Schemas

pytestmark = pytest.mark.anyio
NODE = 1
BRIEF = 0.5


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio: that is what the connection is written for."""
    return "asyncio"


class Scene:
    """A front before a reference broker, and connections by way of it."""

    def __init__(self, fronts: Fronts, front: Front, schemas: Schemas) -> None:
        self.fronts, self.front, self.schemas = fronts, front, schemas

    @asynccontextmanager
    async def connected(self, timeout: float = 10.0) -> Any:
        """Give a connection by way of the front."""
        address = self.front.address
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
def scene() -> Iterator[Scene]:
    """A front before a reference broker."""
    target = open_target("reference")
    target.start()
    try:
        schemas = Schemas.from_jar(target.info.schema_jar)
        address = parse_address(target.info.bootstrap[0])
        with Fronts(schemas) as fronts:
            shown = fronts.stand_before(NODE, {CLIENT: address, INTERNAL: address})
            front = fronts.door(NODE, CLIENT)
            assert shown[CLIENT] == front.address != address
            yield Scene(fronts, front, schemas)
    finally:
        target.stop()


async def test_fair_weather(scene: Scene) -> None:
    """What passes a front comes as it was sent."""
    async with scene.connected() as connection:
        answer = await connection.call("Metadata", topics=[])
        assert answer.brokers


@pytest.mark.parametrize("trouble", [Trouble.CUT, Trouble.STALL, Trouble.MUTE])
async def test_trouble_comes_and_goes(scene: Scene, trouble: Trouble) -> None:
    """Nobody is greeted while there is trouble, and everybody before and after."""
    assert await scene.greets()
    await asyncio.to_thread(scene.fronts.begin, scene.front, trouble)
    assert not await scene.greets(BRIEF)
    await asyncio.to_thread(scene.fronts.end, scene.front, trouble)
    assert await scene.greets()


async def test_slow_is_slow(scene: Scene) -> None:
    """A slow front holds up question and answer."""
    async with scene.connected() as connection:
        await asyncio.to_thread(scene.fronts.begin, scene.front, Trouble.SLOW)
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", timeout=SLOW, topics=[])
        await asyncio.to_thread(scene.fronts.end, scene.front, Trouble.SLOW)
        assert (await connection.call("Metadata", topics=[])).brokers


async def test_cut_ends_what_was_open(scene: Scene) -> None:
    """A cut resets the connections that there are."""
    async with scene.connected() as connection:
        await asyncio.to_thread(scene.fronts.begin, scene.front, Trouble.CUT)
        assert await connection.wait_closed(10.0)


async def test_stall_gives_back_what_it_kept(scene: Scene) -> None:
    """What was kept by a stall passes when it is over, on the same connection."""
    async with scene.connected() as connection:
        await asyncio.to_thread(scene.fronts.begin, scene.front, Trouble.STALL)
        asked = asyncio.create_task(connection.call("Metadata", topics=[]))
        done, _ = await asyncio.wait({asked}, timeout=BRIEF)
        assert not done
        await asyncio.to_thread(scene.fronts.end, scene.front, Trouble.STALL)
        assert (await asked).brokers


async def _with_rule(scene: Scene, rule: Rule) -> None:
    await asyncio.to_thread(
        scene.fronts.change, scene.front, lambda weather: weather.rules.append(rule)
    )


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("act", [Act.RESET, Act.TRUNCATE])
async def test_second_frame_ends_the_connection(scene: Scene, way: Way, act: Act) -> None:
    """A rule for every second frame lets the first pass and ends the connection with the second."""
    async with scene.connected() as connection:
        await _with_rule(scene, Rule(apis=frozenset({"Metadata"}), way=way, act=act, nth=2))
        await connection.call("Metadata", topics=[])
        with pytest.raises(ConnectionLost):
            await connection.call("Metadata", topics=[])


async def test_dropped_frame(scene: Scene) -> None:
    """A dropped request is never answered, and the next one is."""
    async with scene.connected() as connection:
        rule = Rule(apis=frozenset({"Metadata"}), way=Way.REQUEST, act=Act.DROP, nth=2)
        await _with_rule(scene, rule)
        await connection.call("Metadata", topics=[])
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", timeout=BRIEF, topics=[])
        await connection.call("Metadata", topics=[])


async def test_doubled_request(scene: Scene) -> None:
    """A doubled request is carried out twice, and who asked once gets one answer."""
    async with scene.connected() as connection:
        rule = Rule(apis=frozenset({"Metadata"}), way=Way.REQUEST, act=Act.DUPLICATE)
        await _with_rule(scene, rule)
        for _ in range(3):
            await connection.call("Metadata", topics=[])
        frames = [frame for frame in connection.transcript.frames if not frame.sent]
        assert rule.done == 3
        assert len(frames) == 1 + 3  # one greeting, and an answer to each request


async def test_refused_state_write(scene: Scene) -> None:
    """A refused state write is answered in the coordinator's place, for every partition."""
    async with scene.connected() as connection:
        refusal = state_write_refused(15)
        rule = Rule(
            apis=frozenset({"WriteShareGroupState"}), way=Way.REQUEST, act=Act.REFUSE,
            refusal=refusal,
        )  # fmt: skip
        await _with_rule(scene, rule)
        topic = {"topic_id": UUID(int=1), "partitions": []}
        parts: list[dict[str, Any]] = [
            {"partition": index, "state_batches": []} for index in (0, 1)
        ]
        answer = await connection.call(
            "WriteShareGroupState", group_id="g", topics=[{**topic, "partitions": parts}]
        )
        seen = [part.error_code for result in answer.results for part in result.partitions]
        assert seen == [15, 15]
