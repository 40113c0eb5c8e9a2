"""Exchanges of the tap in one line each, for findings and for whoever tries a program by hand.

A line has the seconds since the first one, the broker, what was asked, and what was answered. What
is zero, empty or usual is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Body, Exchange
from fixtures.wire.errors import error_name

_NONE = UUID(int=0)
_EPOCH = re.compile(r"share_session_epoch \d+")
_LEFT_OUT = frozenset(
    {
        "group_id",
        "member_id",
        "rack_id",
        "error_message",
        "throttle_time_ms",
        "heartbeat_interval_ms",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "acquisition_lock_timeout_ms",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "allow_auto_topic_creation",
        "cluster_id",
        "controller_id",
        "key_type",
    }
)


def lines(exchanges: Iterable[Exchange]) -> Iterator[str]:
    """Yield one line for each exchange; a row that only its epochs tell apart has one line more."""
    began: float | None = None
    last, row, until = "", 0, 0.0
    for one in exchanges:
        began = one.sent if began is None else began
        told = tell(one)
        kind = _EPOCH.sub("", told)
        if kind == last:
            row, until = row + 1, one.sent - began
            continue
        if row:
            yield f"{until:7.3f}  the same, {row} times more"
        last, row = kind, 0
        yield f"{one.sent - began:7.3f}  {told}"
    if row:
        yield f"{until:7.3f}  the same, {row} times more"


def tell(one: Exchange) -> str:
    """Return what was asked and answered in one exchange, without its time."""
    response = (
        "never answered" if one.response is None else ", ".join(_fields(one.response)) or "fine"
    )
    scripted = f"   [script: {one.scripted}]" if one.scripted else ""
    asked = ", ".join(_fields(one.request))
    return f"broker {one.node}  {one.api} v{one.version} {asked} → {response}{scripted}"


def _fields(body: Body) -> Iterator[str]:
    for name, value in body.items():
        if name in {"topics", "responses", "topic_partitions"}:
            yield from _topics(value or [])
        elif name == "assignment":
            found = ", ".join(_topics((value or {}).get("topic_partitions") or []))
            yield from [f"assigned {found or 'nothing'}"] if value is not None else []
        elif name == "forgotten_topics_data":
            yield from (f"forgets {told}" for told in _topics(value or []))
        elif name == "coordinators":
            yield from (f"broker {found['node_id']}{_error(found)}" for found in value)
        elif name == "error_code":
            yield from [error_name(value)] if value else []
        elif name == "share_session_epoch" or (_tells(name, value)):
            yield f"{name} {value}"


def _tells(name: str, value: Any) -> bool:
    return name not in _LEFT_OUT and bool(value) and not isinstance(value, (dict, list, bytes))


def _topics(topics: Iterable[Body]) -> Iterator[str]:
    for topic in topics:
        known = str(topic["topic_id"])[:8] if (topic.get("topic_id") or _NONE).int else ""
        name = " ".join(filter(None, (topic.get("name"), known)))
        if not topic.get("partitions"):
            yield f"{name}{_error(topic)}"
        for part in topic.get("partitions") or []:
            yield f"{name}-{_part(part)}"


def _part(part: Body | int) -> str:
    if isinstance(part, int):
        return str(part)
    told = [str(part["partition_index"]) + _error(part)]
    if part.get("acknowledge_error_code"):
        told.append(f"acknowledging: {error_name(part['acknowledge_error_code'])}")
    for batch in part.get("acknowledgement_batches") or []:
        kinds = "+".join(AckType(kind).name for kind in batch["acknowledge_types"])
        told.append(f"{kinds} of {batch['first_offset']}-{batch['last_offset']}")
    for found in part.get("acquired_records") or []:
        count = found["delivery_count"]
        told.append(f"acquired {found['first_offset']}-{found['last_offset']}, delivery {count}")
    leader = part.get("current_leader") or {}
    if leader.get("leader_id", -1) >= 0:
        told.append(f"hint: broker {leader['leader_id']} with epoch {leader['leader_epoch']}")
    return " ".join(told)


def _error(body: Body) -> str:
    return f" {error_name(body['error_code'])}" if body.get("error_code") else ""
