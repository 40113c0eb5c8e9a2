"""What recording costs a client, in CPU time: ``python -m benchmarks.recording``.

A member's round is replayed: a response with records is read and acknowledged, with and without the
journal. The journal's own thread is counted in, as it takes the same processor. Network and broker
are left out, so a real client's share of recording is smaller than what is printed here.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median

from fixtures.clients.member import Part, Range
from fixtures.history.journal import Journal
from fixtures.workload.payload import shape
from fixtures.workload.recorder import Recorder, Request, now
from spec.history import AckType, Outcome

ROUNDS = 2000


def seconds(records: int, size: int, *, record: bool) -> float:
    """Return the CPU seconds of many rounds of that many records."""
    batch, _ = shape(records, size).write(producer=0, log=0, sequence=0)
    part = Part(
        topic_id=uuid.UUID(int=1),
        partition=0,
        ranges=(Range(0, records - 1, 1),),
        records=batch,
    )
    with tempfile.TemporaryDirectory() as room, Journal(Path(room), 1) as journal:
        recorder = Recorder(journal, {("g", 0): 0}, record)
        began = time.process_time()
        for _ in range(ROUNDS):
            fetch = Request(journal.next_operation(), 1, "g", "ShareFetch", 1, now(), 500)
            recorder.operation(fetch, Outcome.OK)
            held = recorder.acquired(fetch, 0, part, 30000)
            recorder.acknowledged(held, AckType.ACCEPT, now(), Outcome.OK)
        journal.flush()
        return time.process_time() - began


def main() -> None:
    """Measure for a few sizes of batches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    for records in (50, 500):
        pairs = [
            tuple(seconds(records, options.size, record=record) for record in (True, False))
            for _ in range(5)
        ]
        extra = median(recorded - bare for recorded, bare in pairs) / ROUNDS * 1e6
        bare = median(bare for _, bare in pairs) / ROUNDS * 1e6
        print(
            f"{records} records: {extra:.1f} us of recording a fetch beside {bare:.1f} us of "
            f"reading, {extra / records:.3f} us a record"
        )


if __name__ == "__main__":
    main()
