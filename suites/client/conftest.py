"""Fixtures of the client checks: the adapter, and the two brokers that a client has to face.

A check whose capability the client lacks is skipped, once the adapter was seen refusing it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

import pytest

from fixtures.clients.adapter import Adapter, AdapterFault, Refused, Unsupported
from fixtures.interface.capability import unmet
from fixtures.interface.info import ClusterInfo
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.adapter import Capability
from suites.client.account import judge_account
from suites.client.harness import AdapterProcess, Harness, harness_on, hostile_broker
from suites.judge import REFUSED, Judge
from suites.options import RunOptions

Tapped = Callable[[ClusterInfo, Schemas, Adapter], AbstractAsyncContextManager[Harness]]
_NOWHERE = {"bootstrap": ["127.0.0.1:1"], "group": "nobody"}
_OPENED: dict[Capability, dict[str, Any]] = {
    Capability.IMPLICIT: {"mode": "implicit"},
    Capability.EXPLICIT: {"mode": "explicit"},
    Capability.RECORD_LIMIT: {"acquire": "record_limit"},
    Capability.CALLBACK: {"callback": "record"},
    Capability.MAX_POLL_RECORDS: {"max_poll_records": 10},
    Capability.MAX_POLL_INTERVAL: {"max_poll_interval_ms": 60000},
}
_ACK = {"records": [{"topic": "t", "partition": 0, "offset": 0}]}
_CALLED: dict[Capability, tuple[str, dict[str, Any]]] = {
    Capability.ACK_RECORD: ("acknowledge", {"type": "accept", "by": "record", **_ACK}),
    Capability.ACK_OFFSET: ("acknowledge", {"type": "accept", "by": "offset", **_ACK}),
    Capability.RENEW: ("acknowledge", {"type": "renew", **_ACK}),
    Capability.COMMIT_SYNC: ("commit_sync", {"timeout_ms": 100}),
    Capability.COMMIT_ASYNC: ("commit_async", {}),
    Capability.WAKEUP: ("wakeup", {}),
    Capability.UNSUBSCRIBE: ("unsubscribe", {}),
    Capability.SUBSCRIPTION: ("subscription", {}),
    Capability.CLOSE_TIMEOUT: ("close", {"timeout_ms": 1000}),
    Capability.LOCK_DURATION: ("lock_duration", {}),
    Capability.INSTANCE_ID: ("instance_id", {"timeout_ms": 100}),
}


@pytest.fixture(scope="session")
def adapters(run_options: RunOptions) -> Iterator[AdapterProcess]:
    assert run_options.client is not None
    found = AdapterProcess(run_options.client.command)
    yield found
    asyncio.run(found.stop())


@pytest.fixture
async def adapter(adapters: AdapterProcess) -> Adapter:
    return await adapters.running()


@pytest.fixture
async def own_adapter(run_options: RunOptions) -> AsyncIterator[Adapter]:
    assert run_options.client is not None
    own = AdapterProcess(run_options.client.command)
    yield await own.running()
    await own.stop()


@pytest.fixture(scope="session")
def schemas(cluster_info: ClusterInfo) -> Schemas:
    return Schemas.from_jar(cluster_info.schema_jar)


@pytest.fixture
def tapped(rng: Random, transcripts: list[Transcript], judge: Judge) -> Tapped:
    @asynccontextmanager
    async def tap(info: ClusterInfo, schemas: Schemas, adapter: Adapter) -> AsyncIterator[Harness]:
        async with harness_on(info, schemas, adapter, rng, transcripts) as harness:
            yield harness
        judge_account(harness.account, judge)

    return tap


@pytest.fixture
async def harness(
    tapped: Tapped, cluster_info: ClusterInfo, schemas: Schemas, adapter: Adapter
) -> AsyncIterator[Harness]:
    async with tapped(cluster_info, schemas, adapter) as found:
        yield found


@pytest.fixture
async def doomed(
    tapped: Tapped, cluster_info: ClusterInfo, schemas: Schemas, own_adapter: Adapter
) -> AsyncIterator[Harness]:
    async with tapped(cluster_info, schemas, own_adapter) as found:
        yield found


@pytest.fixture(scope="session")
def hostile_cluster() -> Iterator[tuple[ClusterInfo, Schemas]]:
    with hostile_broker() as cluster:
        yield cluster


@pytest.fixture
async def hostile(
    tapped: Tapped, hostile_cluster: tuple[ClusterInfo, Schemas], adapter: Adapter
) -> AsyncIterator[Harness]:
    async with tapped(*hostile_cluster, adapter) as found:
        yield found


@pytest.fixture(autouse=True)
async def refusal_of_missing_capabilities(
    request: pytest.FixtureRequest, adapters: AdapterProcess
) -> None:
    """Skip a check whose capability the client lacks, once the adapter was seen saying so."""
    adapter = await adapters.running()
    needs = [str(need) for mark in request.node.iter_markers("needs") for need in mark.args]
    if lacking := unmet(needs, adapter.hello.capabilities):
        # Of ``a|b`` either is enough.
        sentence = await seen_refusing(adapter, Capability(lacking[0].split("|")[0]))
        request.node.stash[REFUSED] = sentence
        pytest.skip(sentence)


async def seen_refusing(adapter: Adapter, capability: Capability) -> str:
    if capability not in _OPENED | _CALLED:  # no request is about it
        return f"the adapter does not declare {capability}"
    name = f"lacking-{capability}"
    try:
        await adapter.call("open", consumer=name, config=_NOWHERE | _OPENED.get(capability, {}))
        if capability in _CALLED:
            op, fields = _CALLED[capability]
            await adapter.call(op, consumer=name, **fields)
    except Unsupported as refusal:
        return f"the adapter does not declare {capability}; seen refusing: {refusal}"
    except Refused as refusal:
        what = f" and answered {refusal.name} where the protocol wants unsupported"
    else:
        what = ", and does it all the same"
    raise AdapterFault(f"the adapter does not declare {capability}{what}")
