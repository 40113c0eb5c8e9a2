"""Model clients that the sweep could accuse wrongly: ``python -m tests.peculiar KIND``.

``patient`` looks for the coordinator when a consumer is made, and waits until there is one.
``mortal`` ends its process at a batch whose number of records it does not believe.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fixtures.adapters.model.agent import Agent
from fixtures.adapters.model.consumer import ShareConsumer
from fixtures.adapters.model.exchange import Exchange, Fetched
from fixtures.clients.cluster import attempts
from fixtures.clients.handle import LONG
from fixtures.clients.member import Part
from fixtures.interface.names import REFERENCE_VERSION
from fixtures.machine.maven import clients_jar
from fixtures.wire.errors import ErrorCode
from fixtures.wire.records import batch_headers
from fixtures.wire.schema import Schemas

_MANY = 1 << 20


class _Patient(Agent):
    async def _open(self, request: dict[str, Any]) -> dict[str, Any]:
        found = await super()._open(request)
        consumer = self.consumers[request["consumer"]]
        async for _ in attempts(LONG):
            connection = await consumer.network.anyone()
            group = consumer.settings.group
            response = await connection.call(
                "FindCoordinator", key_type=0, coordinator_keys=[group]
            )
            if bool(response.coordinators[0].error_code == ErrorCode.NONE):
                break
        return found


class _Believing(Exchange):
    def read(self, part: Part) -> Fetched:
        if any(header.count > _MANY for header in batch_headers(part.records or b"")):
            os.abort()
        return super().read(part)


class _Mortal(ShareConsumer):
    exchange_type = _Believing


KINDS: Mapping[str, Callable[[Schemas], Agent]] = MappingProxyType(
    {
        "patient": lambda schemas: _Patient(schemas, ShareConsumer, REFERENCE_VERSION),
        "mortal": lambda schemas: Agent(schemas, _Mortal, REFERENCE_VERSION),
    }
)

if __name__ == "__main__":
    asyncio.run(KINDS[sys.argv[1]](Schemas.from_jar(clients_jar(REFERENCE_VERSION))).serve())
