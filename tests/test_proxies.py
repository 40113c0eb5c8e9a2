"""The frame proxies and the tap: what passes, what is kept, and each way to disturb it."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster
from fixtures.hostile.changes import CHANGES
from fixtures.hostile.script import (
    OPERATIONS,
    OperationContext,
    Script,
    ScriptError,
    read_script,
    read_step,
)
from fixtures.hostile.tap import Tap
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import Address, parse_address
from fixtures.proxies.broker_proxies import (
    CLIENT,
    INTERNAL,
    LATENCY,
    Condition,
    Direction,
    FrameProxies,
    FrameRule,
    state_write_refused,
)
from fixtures.proxies.exchange import Action, Load, Loads, SharePartitionKey
from fixtures.proxies.proxy import ProxyListener
from fixtures.targets import TargetOptions, open_target, started
from fixtures.wire.connection import CallFailed, CallTimeout, Connection, ConnectionLost
from fixtures.wire.records import Compression, decode_batches, encode_batch
from fixtures.wire.schema import Schemas
from suites.client.wire import busiest

NODE = 1
BRIEF = 0.5
METADATA = bytes.fromhex("0003 0000 00000007 ffff 00000000")
"""A Metadata request of version 0, for all topics."""


class ProxiedBroker:
    def __init__(self, proxies: FrameProxies, listener: ProxyListener, schemas: Schemas) -> None:
        self.proxies, self.listener, self.schemas = proxies, listener, schemas

    @asynccontextmanager
    async def connected(self, timeout: float = 10.0) -> Any:
        address = self.listener.address
        connection = await Connection.open(
            address.host, address.port, schemas=self.schemas, timeout=timeout
        )
        async with connection:
            yield connection

    async def greets(self, within: float = 10.0) -> bool:
        try:
            async with self.connected(within):
                return True
        except CallFailed:
            return False


@pytest.fixture
def broker() -> Iterator[ProxiedBroker]:
    with started(open_target("reference")) as target:
        schemas = Schemas.from_jar(target.info.schema_jar)
        address = parse_address(target.info.bootstrap[0])
        with FrameProxies(schemas) as proxies:
            shown = proxies.advertise(NODE, {CLIENT: address, INTERNAL: address})
            listener = proxies.listener(NODE, CLIENT)
            assert shown[CLIENT] == listener.address != address
            yield ProxiedBroker(proxies, listener, schemas)


@pytest.mark.parametrize("condition", [Condition.RESET, Condition.STALL, Condition.HALF_OPEN])
async def test_condition_comes_and_goes(broker: ProxiedBroker, condition: Condition) -> None:
    assert await broker.greets()
    await asyncio.to_thread(broker.proxies.begin, broker.listener, condition)
    assert not await broker.greets(BRIEF)
    await asyncio.to_thread(broker.proxies.end, broker.listener, condition)
    assert await broker.greets()


async def test_slow_is_slow_and_a_cut_ends_what_was_open(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        await asyncio.to_thread(broker.proxies.begin, broker.listener, Condition.LATENCY)
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", timeout=LATENCY, topics=[])
        await asyncio.to_thread(broker.proxies.end, broker.listener, Condition.LATENCY)
        assert (await connection.call("Metadata", topics=[])).brokers
        await asyncio.to_thread(broker.proxies.begin, broker.listener, Condition.RESET)
        assert await connection.wait_closed(10.0)


async def test_stall_gives_back_what_it_kept(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        await asyncio.to_thread(broker.proxies.begin, broker.listener, Condition.STALL)
        call = asyncio.create_task(connection.call("Metadata", topics=[]))
        done, _ = await asyncio.wait({call}, timeout=BRIEF)
        assert not done
        await asyncio.to_thread(broker.proxies.end, broker.listener, Condition.STALL)
        assert (await call).brokers


async def _with_rule(
    broker: ProxiedBroker,
    action: Action,
    direction: Direction = Direction.REQUEST,
    *,
    api: str = "Metadata",
    **more: Any,
) -> FrameRule:
    rule = FrameRule(apis=frozenset({api}), direction=direction, action=action, **more)
    await asyncio.to_thread(broker.proxies.add_rule, broker.listener, rule)
    return rule


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("action", [Action.RESET, Action.TRUNCATE])
async def test_second_frame_ends_the_connection(
    broker: ProxiedBroker, direction: Direction, action: Action
) -> None:
    async with broker.connected() as connection:
        await _with_rule(broker, action, direction, nth=2)
        await connection.call("Metadata", topics=[])
        with pytest.raises(ConnectionLost):
            await connection.call("Metadata", topics=[])


async def test_dropped_frame(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        await _with_rule(broker, Action.DROP, nth=2)
        await connection.call("Metadata", topics=[])
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", timeout=BRIEF, topics=[])
        await connection.call("Metadata", topics=[])


async def test_doubled_request(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        rule = await _with_rule(broker, Action.DUPLICATE)
        for _ in range(3):
            await connection.call("Metadata", topics=[])
        frames = [frame for frame in connection.transcript.frames if not frame.sent]
        assert rule.done == 3
        assert len(frames) == 1 + 3  # one greeting, and a response to each request


async def test_refused_state_write(broker: ProxiedBroker) -> None:
    async with broker.connected() as connection:
        refusal = state_write_refused(15)
        await _with_rule(broker, Action.RESPOND, api="WriteShareGroupState", refusal=refusal)
        parts: list[Any] = [{"partition": i, "state_batches": []} for i in (0, 1)]
        topic = {"topic_id": UUID(int=1), "partitions": parts}
        answer = await connection.call("WriteShareGroupState", group_id="g", topics=[topic])
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


# --- The tap and its scripts ------------------------------------------------------------------


@pytest.fixture(scope="module")
def info() -> Iterator[ClusterInfo]:
    with started(open_target("reference", TargetOptions(brokers=2, steady=True))) as target:
        yield target.info


@pytest.fixture
async def tap(info: ClusterInfo) -> AsyncIterator[Tap]:
    async with Cluster(info) as cluster:
        made = Tap(schemas=cluster.schemas, brokers=dict(cluster.brokers))
        await made.start()
        yield made
        await made.stop()


async def dialled(tap: Tap) -> Connection:
    host, _, port = tap.bootstrap[0].rpartition(":")
    return await Connection.open(host, int(port), schemas=tap.schemas, client_id="me")


async def test_everything_is_seen_and_stays_in_front(tap: Tap) -> None:
    async with await dialled(tap) as connection:
        response = await connection.call("Metadata", topics=[])
    seen = tap.of("Metadata")
    assert [f"{b.host}:{b.port}" for b in response.brokers] == tap.bootstrap
    assert [(one.client_id, one.response is not None) for one in seen] == [("me", True)]
    assert seen[0].responded >= seen[0].sent
    assert "Metadata" in str(tap.transcript)


async def test_errors_take_the_place_of_answers(tap: Tap) -> None:
    step = {
        "on": "ShareFetch",
        "skip": 1,
        "times": 2,
        "do": "error",
        "code": "UNKNOWN_SERVER_ERROR",
    }
    tap.script.add({**step, "applied": False})
    async with await dialled(tap) as connection:
        codes = [
            (await connection.call("ShareFetch", group_id="g", member_id="m")).error_code
            for _ in range(4)
        ]

    assert codes[1:3] == [-1, -1]
    assert -1 not in (codes[0], codes[3])
    assert [bool(one.scripted) for one in tap.of("ShareFetch")] == [False, True, True, False]


async def test_answers_keep_their_order(tap: Tap) -> None:
    tap.script.add({"on": "Metadata", "do": "pass", "delay": 0.2})
    tap.script.add({"on": "FindCoordinator", "do": "error", "code": 15, "applied": False})
    async with await dialled(tap) as connection:
        order: list[str] = []

        async def call(api: str, **fields: object) -> None:
            await connection.call(api, **fields)  # type: ignore[arg-type]
            order.append(api)

        await asyncio.gather(
            call("Metadata", topics=[]), call("FindCoordinator", coordinator_keys=["g"])
        )

    assert order == ["Metadata", "FindCoordinator"]


async def test_silence_and_hanging_up(tap: Tap) -> None:
    tap.script.add({"on": "Metadata", "do": "drop"}, {"on": "DescribeCluster", "do": "close"})
    async with await dialled(tap) as connection:
        with pytest.raises(CallTimeout):
            await connection.call("Metadata", topics=[], timeout=0.3)
        with pytest.raises(ConnectionLost):
            await connection.call("DescribeCluster", timeout=5)


async def test_a_broker_goes_away(tap: Tap) -> None:
    first = min(tap.brokers)
    tap.disappear(first)
    with pytest.raises(ConnectionLost):
        await dialled(tap)


def test_scripts_are_data(tmp_path: Path) -> None:
    file = tmp_path / "script.toml"
    file.write_text('[[step]]\non = "ShareFetch"\ndo = "error"\ncode = 6\n', encoding="utf-8")

    assert len(read_script(file).steps) == 1
    for wrong in (
        {"on": "ShareFetch", "do": "nothing"},
        {"on": "ShareFetch", "do": "error"},
        {"on": "ShareFetch", "do": "error", "code": 6, "colour": "red"},
        {"on": "ShareFetch", "do": "omit-partitions", "applied": False},
        {"on": "ShareFetch", "do": "move-leader", "from": 1},
    ):
        with pytest.raises(ScriptError):
            Script().add(wrong)


def fetched(values: list[bytes]) -> dict[str, Any]:
    last = len(values) - 1
    part = {
        "partition_index": 0,
        "records": encode_batch(values),
        "acquired_records": [{"first_offset": 0, "last_offset": last, "delivery_count": 1}],
    }
    return {"responses": [{"topic_id": UUID(int=1), "partitions": [part]}]}


@pytest.mark.parametrize("do", ["codec", "aborted"])
def test_records_in_another_form(do: str) -> None:
    values = [b"record %d" % number for number in range(4)]
    change = read_step({"on": "ShareFetch", "do": do}).change
    part = change(None, fetched(values))["responses"][0]["partitions"][0]
    batches = decode_batches(part["records"])

    assert [record.value for batch in batches for record in batch.records] == values
    if do == "codec":
        assert [batch.compression for batch in batches] == [Compression.ZSTD]
    else:
        assert [batch.transactional for batch in batches] == [False, True, False, True]
        assert [one["first_offset"] for one in part["acquired_records"]] == [0, 2]


async def test_acts_change_the_cluster(info: ClusterInfo, tap: Tap) -> None:
    async with Cluster(info) as cluster, await dialled(tap) as connection:
        admin = Admin(cluster)
        topic = await admin.create_topic(assignments=[[1, 2]])
        context = tap.scripted.context = OperationContext(
            admin=admin,
            topic=topic,
            close_connections=tap.close_connections,
            disappear=tap.disappear,
        )
        seen = []
        for do in ({"do": "move-leader", "to": 2}, {"do": "recreate-topic", "records": 1}):
            tap.script.add({"on": "Metadata", **do})
            response = await connection.call("Metadata", topics=[{"name": topic.name}])
            seen.append(response.topics[0])

    assert seen[0].partitions[0].leader_id == 2
    assert seen[0].topic_id == topic.id
    assert seen[1].topic_id == context.topic.id != topic.id


def test_the_documentation_lists_every_step_of_a_script() -> None:
    text = (Path(__file__).parents[1] / "docs" / "hostile-broker.md").read_text(encoding="utf-8")
    steps: list[tuple[str, Callable[..., object], int]]
    steps = [(name, make, 2) for name, make in CHANGES.items()]
    steps += [(name, make, 1) for name, make in OPERATIONS.items()]
    assert not CHANGES.keys() & OPERATIONS.keys()
    for name, make, given in steps:
        fields = ", ".join(
            f"`{field}`" for field in list(inspect.signature(make).parameters)[given:]
        )
        assert f"| `{name}` | {fields} | {(make.__doc__ or '?').splitlines()[0]} |" in text


def test_the_busiest_second() -> None:
    times: Any = [SimpleNamespace(sent=at) for at in (0.0, 5.0, 5.1, 5.2, 9.0)]

    assert busiest(times) == 3


# --- Loads of share-partitions ----------------------------------------------------------------

TOPIC = UUID(int=7)
KEY = SharePartitionKey("g", TOPIC, 0)


def _exchange(node: int, *, error: int = 0) -> Any:
    parts = [{"partition": 0, "error_code": error}]
    named = [{"topic_id": TOPIC, "partitions": parts}]
    return SimpleNamespace(
        is_readable=True,
        client_id=f"broker-{node}-persister-{node}",
        request={"group_id": "g", "topics": named},
        read_response=lambda: {"results": named},
    )


def _ends(found: list[Load]) -> list[tuple[SharePartitionKey, int, int, bool]]:
    return [(load.key, load.node, load.error, load.until is None) for load in found]


def test_a_load_lasts_from_request_to_response() -> None:
    loads, exchange = Loads(), _exchange(2)
    loads.on_request(exchange)
    assert loads.take() == []
    loads.on_response(exchange)
    (load,) = loads.take()
    assert (load.key, load.node, load.error) == (KEY, 2, 0)
    assert load.until is not None
    assert load.since <= load.until
    assert loads.take() == []


def test_two_brokers_load_at_once_and_a_lost_response_ends_with_the_next_attempt() -> None:
    loads = Loads()
    loads.on_request(_exchange(1))
    loads.on_request(_exchange(2))
    loads.on_response(_exchange(2))
    loads.on_response(_exchange(1, error=16))
    assert _ends(loads.take()) == [(KEY, 2, 0, False), (KEY, 1, 16, False)]
    loads.on_request(_exchange(1))
    loads.on_request(_exchange(1))
    assert _ends(loads.take()) == [(KEY, 1, -1, False)]
    assert _ends(loads.open()) == [(KEY, 1, -1, True)]
