"""Time for a lock-step run: the machine's, or the reference broker's own, which costs nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from fixtures.clients.cluster import WITHIN
from fixtures.reference.clock import VirtualClock
from spec.model.settings import Slack

T = TypeVar("T")

_ROUNDS = 12
"""Turns of the event loop after which whatever was on its way has arrived within one process."""
_STEP = 10.0
"""Milliseconds that pass at once while a request is waiting."""


class Time(Protocol):
    """A clock in milliseconds that can be waited by, and how far the target keeps to it."""

    slack: Slack
    settled: float
    """How long after the end of a session its records are free for certain."""
    patience: float
    """How long what must happen may take."""

    def now(self) -> float:
        """Return the time."""

    async def step(self) -> None:
        """Let what was set off by the last action happen, as far as it costs no time."""

    async def pass_by(self, milliseconds: float) -> None:
        """Let time pass."""

    async def during(self, asking: Coroutine[Any, Any, T]) -> T:
        """Return what comes of a request, time passing while it waits."""


class RealTime:
    """The machine's time, which machines are not exact about."""

    def __init__(self) -> None:
        self.slack = Slack(early_ms=5.0, late_ms=3000.0, linger_ms=20_000.0)
        self.settled = 5000.0
        self.patience = WITHIN * 1000

    def now(self) -> float:
        return time.monotonic() * 1000

    async def step(self) -> None:
        """Go on at once."""

    async def pass_by(self, milliseconds: float) -> None:
        await asyncio.sleep(milliseconds / 1000)  # time itself is a step of a model run

    async def during(self, asking: Coroutine[Any, Any, T]) -> T:
        return await asking


class VirtualTime:
    """The time of a reference broker in our own event loop: it passes when it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.slack = Slack(early_ms=0.0, late_ms=0.0)
        self.settled = 1.0
        self.patience = 5000.0

    def now(self) -> float:
        return self._clock.now()

    async def step(self) -> None:
        await self.pass_by(1.0)

    async def pass_by(self, milliseconds: float) -> None:
        """Move the clock, once the event loop is at rest."""
        await self._rest()
        self._clock.advance(milliseconds)

    async def during(self, asking: Coroutine[Any, Any, T]) -> T:
        """Move the clock until the response is there."""
        task = asyncio.ensure_future(asking)
        await self._rest()
        while not task.done():
            await self.pass_by(_STEP)
        return await task

    @staticmethod
    async def _rest() -> None:
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
