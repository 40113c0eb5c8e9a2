"""The tap and its scripts: what goes through, what is kept, and what a step puts in its place."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster
from fixtures.hostile.changes import CHANGES
from fixtures.hostile.operations import OPERATIONS, OperationContext
from fixtures.hostile.script import Script, ScriptError, read_script, read_step
from fixtures.hostile.tap import Tap
from fixtures.interface.info import ClusterInfo
from fixtures.targets import TargetOptions, open_target
from fixtures.wire.connection import CallTimeout, Connection, ConnectionLost
from fixtures.wire.records import Compression, decode_batches, encode_batch
from suites.client.wire import busiest


@pytest.fixture(scope="module")
def info() -> Iterator[ClusterInfo]:
    """A reference broker."""
    target = open_target("reference", TargetOptions(brokers=2))
    target.start()
    yield target.info
    target.stop()


@pytest.fixture
async def tap(info: ClusterInfo) -> AsyncIterator[Tap]:
    """A tap in front of it."""
    async with Cluster(info) as cluster:
        made = Tap(schemas=cluster.schemas, brokers=dict(cluster.brokers))
        await made.start()
        yield made
        await made.stop()


async def dialled(tap: Tap) -> Connection:
    """Return a connection through the tap."""
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

        async def ask(api: str, **fields: object) -> None:
            await connection.call(api, **fields)  # type: ignore[arg-type]
            order.append(api)

        await asyncio.gather(
            ask("Metadata", topics=[]), ask("FindCoordinator", coordinator_keys=["g"])
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
    """Return a ShareFetch answer with one batch, all of it acquired."""
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


def test_every_deed_says_what_it_does() -> None:
    told = [make for kind in (CHANGES, OPERATIONS) for make in kind.items()]

    assert [name for name, make in told if not make.__doc__] == []
    assert not CHANGES.keys() & OPERATIONS.keys()


def test_the_busiest_second() -> None:
    class At:
        def __init__(self, sent: float) -> None:
            self.sent = sent

    times = [At(t) for t in (0.0, 5.0, 5.1, 5.2, 9.0)]

    assert busiest(times) == 3  # type: ignore[arg-type]


def test_the_documentation_lists_every_deed() -> None:
    text = (Path(__file__).parents[1] / "docs" / "hostile-broker.md").read_text(encoding="utf-8")

    rows = [row(name, make, 2) for name, make in CHANGES.items()]
    rows += [row(name, make, 1) for name, make in OPERATIONS.items()]

    assert [wanted for wanted in rows if wanted not in text] == []


def row(name: str, make: Callable[..., object], given: int) -> str:
    """Return what the documentation has to say of a deed, or of an act."""
    fields = list(inspect.signature(make).parameters)[given:]
    sentence = (make.__doc__ or "").splitlines()[0]
    return f"| `{name}` | {', '.join(f'`{field}`' for field in fields)} | {sentence} |"
