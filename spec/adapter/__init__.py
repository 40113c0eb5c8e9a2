"""The adapter protocol: what the suite and a client library's adapter say to each other.

The messages are data, ``protocol.schema.json``; ``docs/adapter-protocol.md`` is the same in words.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

PROTOCOL = 1  # the version of the protocol; an adapter that speaks another one is refused

SCHEMA = Path(__file__).with_name("protocol.schema.json")


class Capability(StrEnum):
    """What a library may have or lack. What it lacks is asked for once, and must be refused."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    MIXED = "mixed"
    RECORD_LIMIT = "record-limit"
    ACK_RECORD = "ack-record"
    ACK_OFFSET = "ack-offset"
    RENEW = "renew"
    COMMIT_SYNC = "commit-sync"
    COMMIT_ASYNC = "commit-async"
    CALLBACK = "callback"
    CALLBACK_OFFSETS = "callback-offsets"
    WAKEUP = "wakeup"
    CONCURRENT = "concurrent"
    UNSUBSCRIBE = "unsubscribe"
    SUBSCRIPTION = "subscription"
    CLOSE_TIMEOUT = "close-timeout"
    MAX_POLL_RECORDS = "max-poll-records"
    MAX_POLL_INTERVAL = "max-poll-interval"
    LOCK_DURATION = "lock-duration"
    INSTANCE_ID = "instance-id"
    TIMESTAMPS = "timestamps"
    HEADERS = "headers"
    METRICS = "metrics"
    RUNNING = "running"


@cache
def _validator(name: str) -> Draft202012Validator:
    # Imported when it is needed: it takes longer than most commands, and most need it never.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    document = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return Draft202012Validator({"$defs": document["$defs"], "$ref": f"#/$defs/{name}"})


def flaw(name: str, message: Any) -> str | None:
    """Say what is wrong with a message by a definition such as ``result.poll``; None if nothing."""
    found = next(iter(_validator(name).iter_errors(message)), None)
    if found is None:
        return None
    where = "/".join(map(str, found.absolute_path))
    return f"{where or 'the message'}: {found.message[:300]}"
