"""The lives of a broker that dies and rises again, and the worlds that checks have in each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

from fixtures.targets import Target
from fixtures.wire.frame import Transcript
from suites.broker.share import Share, world


class Restarts:
    """The broker's lives: a world of topics and groups for each of them."""

    def __init__(self, target: Target, rng: Random, transcripts: list[Transcript]) -> None:
        self._target = target
        self._rng = rng
        self._transcripts = transcripts

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[Share]:
        """Give a world that is connected to the broker as it lives now."""
        async with world(self._target.info, self._rng, self._transcripts) as share:
            yield share

    async def die(self, *, orderly: bool = False) -> None:
        """Stop the broker, by default as a power cut would."""
        broker = self._target.brokers[0]
        await asyncio.to_thread(broker.stop if orderly else broker.kill)

    async def rise(self) -> None:
        """Start the broker again and wait until it serves clients."""
        await asyncio.to_thread(self._target.brokers[0].start)
