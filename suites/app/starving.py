"""How long this machine keeps the suite itself waiting: then locks end that no program let end."""

from __future__ import annotations

import asyncio
import time

_EVERY = 0.05
"""Seconds between two looks at the clock."""


class Starving:
    """Measures how much later than asked for the event loop goes on."""

    def __init__(self) -> None:
        self._began, self._late = time.monotonic(), 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to measure."""
        self._began = time.monotonic()
        self._task = asyncio.create_task(self._measure())

    async def _measure(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(_EVERY)
            self._late += max(0.0, time.monotonic() - before - _EVERY)

    def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()

    @property
    def share(self) -> float:
        """The part of the time, from 0 to 1, that the loop waited for the machine."""
        return self._late / max(time.monotonic() - self._began, _EVERY)
