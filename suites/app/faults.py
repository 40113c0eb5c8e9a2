"""Faults between a program and its brokers: brokers freeze, writes are refused."""

import asyncio

from fixtures.clients.cluster import Topic
from fixtures.proxies.exchange import Action, Exchange, Interceptor
from fixtures.wire.errors import ErrorCode
from suites.app.load import writes_to

REFUSAL = ErrorCode.INVALID_RECORD  # An error that no producer retries.


class Freezer(Interceptor):
    def __init__(self) -> None:
        self._flowing: dict[int, asyncio.Event] = {}

    def freeze(self, node: int) -> None:
        self._flowing[node] = asyncio.Event()

    def thaw(self) -> None:
        for event in self._flowing.values():
            event.set()
        self._flowing.clear()

    async def on_request(self, exchange: Exchange) -> Action | None:
        if (flowing := self._flowing.get(exchange.node)) is not None:
            await flowing.wait()
        return None

    async def on_response(self, exchange: Exchange) -> Action | None:
        return await self.on_request(exchange)


class WriteRefuser(Interceptor):
    def __init__(self) -> None:
        self.left = 0
        self.refused = 0
        self.topic: Topic | None = None

    async def on_request(self, exchange: Exchange) -> Action | None:
        wanted = self.left > 0 and exchange.api == "Produce" and exchange.is_readable
        if not wanted or self.topic is None or not writes_to(self.topic, exchange):
            return None
        self.left -= 1
        self.refused += 1
        responses = [
            {
                **{key: entry[key] for key in ("name", "topic_id") if key in entry},
                "partition_responses": [
                    {
                        "index": part["index"],
                        "error_code": int(REFUSAL),
                        "base_offset": -1,
                        "log_append_time_ms": -1,
                        "log_start_offset": -1,
                        "record_errors": [],
                        "error_message": "refused by shareproof",
                    }
                    for part in entry["partition_data"]
                ],
            }
            for entry in exchange.request["topic_data"]
        ]
        exchange.respond({"responses": responses})
        return Action.RESPOND
