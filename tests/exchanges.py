"""Stand-ins for what a tap keeps of a client's requests about share-partition 0 of a topic."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from fixtures.wire.records import encode_batch

TOPIC = UUID(int=7)


def exchange(
    at: float,
    *,
    api: str = "ShareAcknowledge",
    acks: Sequence[tuple[int, int]] = (),
    got: Sequence[tuple[int, int]] = (),
    error: int = 0,
    answered: bool = True,
    **more: Any,
) -> Any:
    batches = [{"first_offset": o, "last_offset": o, "acknowledge_types": [k]} for o, k in acks]
    ranges = [{"first_offset": o, "last_offset": o, "delivery_count": c} for o, c in got]
    codes = {"error_code": error, "acknowledge_error_code": error}
    if api == "ShareFetch":
        codes["error_code"] = 0
    part = {"partition_index": 0, **codes, "acquired_records": ranges}
    part["records"] = b"".join(encode_batch([b"v"], base_offset=offset) for offset, _ in got)
    responses = [{"topic_id": TOPIC, "partitions": [part]}]
    requested = {"partition_index": 0, "acknowledgement_batches": batches}
    return SimpleNamespace(
        api=api,
        number=more.get("number", 1),
        connection=more.get("connection", 1),
        client_id="c",
        node=more.get("node", 1),
        scripted=more.get("scripted", ""),
        sent=at,
        responded=at + 0.01 if answered else math.inf,
        request={
            "member_id": more.get("member", "m"),
            "share_session_epoch": more.get("epoch", 1),
            "topics": [{"topic_id": TOPIC, "partitions": [requested]}],
        },
        response={"error_code": 0, "acquisition_lock_timeout_ms": 6000, "responses": responses}
        if answered
        else None,
    )
