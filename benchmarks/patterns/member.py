"""A member: gets records, works on one after the other, settles them, and tells all of it.

``python -m benchmarks.patterns.member WORKING``; runs until SIGTERM. Times are nanoseconds of the
machine's monotonic clock, so those of all processes compare.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.patterns.notes import Event, Notes
from benchmarks.patterns.systems import OPENED, Got, System
from benchmarks.patterns.workload import Working

_TRAPPED_FOR = 30.0
now = time.monotonic_ns


class Member:
    def __init__(self, work: Working) -> None:
        self.work, self.notes = work, Notes(work.events)
        self.system: System = OPENED[work.system](work)
        self.ending = False
        self.ops = itertools.count(1)
        self.asked = now()

    def run(self) -> None:
        """Work until told to end."""
        self.notes.write([("joining", os.getpid(), now())])
        while not self.ending:
            messages = self.system.take()
            batch, done = self._received(messages), list[Event]()
            for got in batch:
                self._handle(got.number)
                self.system.done(got)
                done.append(("done", got.op, got.partition, got.offset, got.number, now()))
                if self.work.handler_ms:  # Else writing line by line would be all that is measured.
                    self.notes.write(done)
                    done.clear()
            if batch:
                self.notes.write([*done, *self.system.settle()])
            self.asked = now()
        self.system.close()
        self.notes.write([("left", os.getpid(), now())])

    def _received(self, messages: Sequence[Any]) -> list[Got]:
        at, op = now(), next(self.ops)
        batch = [
            Got(op, *self.system.life(message), int(message.value().split()[0]), message)
            for message in messages
        ]
        self.notes.write(
            ("got", op, got.partition, got.offset, got.count, got.number, self.asked, at)
            for got in batch
        )
        return batch

    def _handle(self, number: int) -> None:
        work = self.work
        if number == work.trap and not Path(work.fired).exists():
            self.notes.write([("trapped", number, now())])
            limit = time.monotonic() + _TRAPPED_FOR
            while not Path(work.fired).exists() and time.monotonic() < limit:
                time.sleep(0.01)
        if ms := work.slow_ms if number == work.slow else work.handler_ms:
            time.sleep(ms / 1000)


def main() -> None:
    member = Member(Working.from_json(sys.argv[1]))

    def end(*_: object) -> None:
        member.ending = True

    signal.signal(signal.SIGTERM, end)
    member.run()


if __name__ == "__main__":
    main()
