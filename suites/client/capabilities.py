"""What a check needs of a client, and how an adapter is seen refusing what its client lacks."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.clients.adapter import Adapter, AdapterFault, Refused, Unsupported
from fixtures.interface.capability import unmet
from spec.adapter import Capability

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
TOLD = {
    Capability.MIXED,
    Capability.CONCURRENT,
    Capability.CALLBACK_OFFSETS,
    Capability.TIMESTAMPS,
    Capability.HEADERS,
    Capability.METRICS,
    Capability.RUNNING,
}
"""Capabilities that no request is about: what the adapter says of them is taken for it."""


def missing(item: pytest.Item, adapter: Adapter) -> list[Capability]:
    """Return the capabilities that a check needs and the client lacks; ``a|b`` is either."""
    needs = [str(need) for mark in item.iter_markers("needs") for need in mark.args]
    return [Capability(need.split("|")[0]) for need in unmet(needs, adapter.hello.capabilities)]


async def seen_refusing(adapter: Adapter, capability: Capability) -> str:
    """Return the sentence in which an adapter refuses what its client lacks.

    Raises:
        AdapterFault: it does it, although it did not declare it.
    """
    if capability in TOLD:
        return f"the adapter does not declare {capability}"
    name = f"lacking-{capability}"
    try:
        if capability in _OPENED:
            await adapter.call("open", consumer=name, config=_NOWHERE | _OPENED[capability])
        else:
            await adapter.call("open", consumer=name, config=_NOWHERE)
            op, fields = _CALLED[capability]
            await adapter.call(op, consumer=name, **fields)
    except Unsupported as refusal:
        return f"the adapter does not declare {capability}; seen refusing: {refusal}"
    except Refused as refusal:
        raise AdapterFault(
            f"the adapter does not declare {capability} and answered {refusal.name} where the "
            "protocol wants unsupported"
        ) from None
    raise AdapterFault(f"the adapter does not declare {capability}, and does it all the same")
