"""One turn of ``wire.py`` with kio, what a Python user would take instead of this suite's wire."""

from __future__ import annotations

import datetime
import io
import uuid
from typing import Any

from kio.records.readers import read_batch
from kio.schema.share_fetch.v1 import request, response
from kio.serial import entity_reader, entity_writer

_RESPONSE_HEADER = 5  # correlation id and no tags
_NOTHING = datetime.timedelta()
_read_response = entity_reader(response.ShareFetchResponse)
_write_header = entity_writer(request.RequestHeader)
_write_request = entity_writer(request.ShareFetchRequest)


def turn(frame: bytes) -> object:
    """Decode the response and its records, and encode the request that accepts them."""
    body, _ = _read_response(frame, _RESPONSE_HEADER)
    topic = body.responses[0]
    partition = topic.partitions[0]
    return read_batches(partition.records), acknowledgement(topic.topic_id, partition)


def read_batches(data: bytes) -> list[Any]:
    """Return all batches, which have to be uncompressed."""
    batches, position = [], 0
    while position < len(data):
        batch, size = read_batch(data, position)
        batches.append(batch)
        position += size
    return batches


def acknowledgement(topic_id: uuid.UUID, partition: Any) -> bytes:
    """Return the next request, which accepts what was acquired."""
    batches = tuple(
        request.AcknowledgementBatch(
            first_offset=each.first_offset, last_offset=each.last_offset, acknowledge_types=(1,)
        )
        for each in partition.acquired_records
    )
    asked = request.FetchPartition(partition_index=0, acknowledgement_batches=batches)
    body = request.ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=1,
        max_wait=_NOTHING,
        min_bytes=0,
        max_records=0,
        batch_size=0,
        topics=(request.FetchTopic(topic_id=topic_id, partitions=(asked,)),),
        forgotten_topics_data=(),
    )
    out = io.BytesIO()
    header = request.RequestHeader(
        request_api_key=78, request_api_version=1, correlation_id=2, client_id="bench"
    )
    _write_header(out, header)
    _write_request(out, body)
    return out.getvalue()
