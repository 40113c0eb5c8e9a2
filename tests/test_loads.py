"""Loads of share-partitions as they pass between brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from fixtures.proxies.loads import Load, Loads, SharePartitionKey

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


def test_two_brokers_load_at_once() -> None:
    loads = Loads()
    loads.on_request(_exchange(1))
    loads.on_request(_exchange(2))
    loads.on_response(_exchange(2))
    loads.on_response(_exchange(1, error=16))

    assert _ends(loads.take()) == [(KEY, 2, 0, False), (KEY, 1, 16, False)]


def test_a_response_that_was_lost_ends_with_the_next_attempt() -> None:
    loads = Loads()
    loads.on_request(_exchange(1))
    loads.on_request(_exchange(1))

    assert _ends(loads.take()) == [(KEY, 1, -1, False)]
    assert _ends(loads.open()) == [(KEY, 1, -1, True)]
