"""Records a second on the fetch-and-acknowledge path of the wire, without a network.

One turn is what a member does with one answer: decode the ShareFetch response, read its record
batches, and encode the next ShareFetch request that accepts all that was acquired. Without
decoding, only the headers of the batches are read. Beside it the same turn with kio, what a Python
user would take instead: its messages are decoded by compiled code, its records by Python,
uncompressed only. Seconds are of CPU time, so that a busy machine does not count.

    pip install "shareproof[bench]"
    python benchmarks/wire.py --records 500 --size 100
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.machine.maven import clients_jar
from fixtures.wire.codec import Struct
from fixtures.wire.frame import decode_response, encode_request, encode_response
from fixtures.wire.records import (
    Compression,
    Record,
    batch_headers,
    decode_batches,
    encode_batch,
)
from fixtures.wire.schema import Schemas

RELEASE = "4.4.0"
VERSION = 1
TOPIC = uuid.UUID(int=932)
ACCEPT = 1

Turn = Callable[[bytes], object]


def canned_response(schemas: Schemas, options: argparse.Namespace) -> bytes:
    """Return a response frame with one partition."""
    now = 1_700_000_000_000
    records = [
        Record(
            offset=offset, timestamp=now + offset, key=b"k%d" % offset, value=bytes(options.size)
        )
        for offset in range(options.records)
    ]
    batches = b"".join(
        encode_batch(
            records[start : start + options.batch],
            base_offset=start,
            compression=Compression[options.codec.upper()],
        )
        for start in range(0, options.records, options.batch)
    )
    acquired = [
        {"first_offset": start, "last_offset": start + options.range - 1, "delivery_count": 1}
        for start in range(0, options.records, options.range)
    ]
    partition = {"partition_index": 0, "records": batches, "acquired_records": acquired}
    body = {"responses": [{"topic_id": TOPIC, "partitions": [partition]}]}
    return encode_response(schemas, "ShareFetch", VERSION, correlation_id=1, body=body)


def acknowledgement(schemas: Schemas, acquired: list[Struct]) -> bytes:
    """Return the next request, which accepts what was acquired."""
    batches = [
        {
            "first_offset": each.first_offset,
            "last_offset": each.last_offset,
            "acknowledge_types": [ACCEPT],
        }
        for each in acquired
    ]
    partition = {"partition_index": 0, "acknowledgement_batches": batches}
    body = {
        "group_id": "g",
        "member_id": "m",
        "share_session_epoch": 1,
        "topics": [{"topic_id": TOPIC, "partitions": [partition]}],
    }
    return encode_request(
        schemas, "ShareFetch", VERSION, correlation_id=2, client_id="bench", body=body
    )


def our_turn(schemas: Schemas, read: Callable[[bytes], object], frame: bytes) -> object:
    """Do one turn with the wire of this suite."""
    response = decode_response(schemas, "ShareFetch", VERSION, frame)
    partition = response.responses[0].partitions[0]
    records = read(partition.records)
    return records, acknowledgement(schemas, partition.acquired_records)


def kio_turn() -> Turn | None:
    """Return the same turn with kio, or nothing if it is not installed."""
    try:
        from wire_kio import turn  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    return turn


def turns_a_second(turn: Turn, frame: bytes, seconds: float) -> float:
    """Return the rate of the best of five rounds: the others had company on the machine."""
    best = 0.0
    for _ in range(5):
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds / 5:
            turn(frame)
            count += 1
        best = max(best, count / spent)
    return best


def show(name: str, rate: float, beside: float | None, records: int) -> None:
    """Print one line: records a second of CPU time, time for a response, ratio to the other's."""
    ratio = f"{rate / beside:>8.2f}x" if beside else f"{'-':>9}"
    print(f"{name:<28} {rate * records:>12,.0f} {1e6 / rate:>14,.0f} {ratio}", flush=True)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="The wire's fetch-and-acknowledge path.")
    parser.add_argument("--records", type=int, default=500, help="records in a response")
    parser.add_argument("--batch", type=int, default=500, help="records in a batch")
    parser.add_argument("--range", type=int, default=500, help="records in an acquired range")
    parser.add_argument("--size", type=int, default=100, help="bytes of a record's value")
    parser.add_argument("--codec", default="none", choices=[c.name.lower() for c in Compression])
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to measure each")
    options = parser.parse_args()
    schemas = Schemas.from_jar(clients_jar(RELEASE))
    frame = canned_response(schemas, options)
    kio = kio_turn() if options.codec == "none" else None
    theirs = turns_a_second(kio, frame, options.seconds) if kio else None
    print(f"{'':<28} {'records/s':>12} {'µs a response':>14} {'to kio':>9}")
    for name, read in (("with decoding", decode_batches), ("without decoding", batch_headers)):
        turn = partial(our_turn, schemas, read)
        show(name, turns_a_second(turn, frame, options.seconds), theirs, options.records)
    if theirs:
        show("kio, with decoding", theirs, theirs, options.records)
    else:
        print("kio is not installed (the extra is called bench), or cannot read this codec")


if __name__ == "__main__":
    main()
