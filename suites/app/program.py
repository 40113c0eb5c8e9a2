"""The program under test: its command, what it is told, how long it may take, and its processes."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from spec.verdict import EnvironmentFault

# What a program is told: the placeholder in its command, and the environment variable.
VARIABLES = {
    "bootstrap": "SHAREPROOF_BOOTSTRAP",
    "topic": "SHAREPROOF_TOPIC",
    "group": "SHAREPROOF_GROUP",
    "output": "SHAREPROOF_OUTPUT",
    "dead_letters": "SHAREPROOF_DEAD_LETTERS",
}

_LAST = 3  # Lines of a program's output that are shown when it ends too early.


class Program:
    def __init__(self, command: Sequence[str], values: Mapping[str, str], log: Path) -> None:
        self.command = [*command]
        for name, value in values.items():
            self.command = [word.replace(f"{{{name}}}", value) for word in self.command]
        self.ended: float | None = None  # When its end was seen (monotonic); None while it runs.
        self.asked = False  # Whether a scenario ended it.
        self._log = log
        self._env = {**os.environ, **{VARIABLES[name]: value for name, value in values.items()}}
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as sink:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self.command,
                    env=self._env,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    start_new_session=True,
                )
            except OSError as error:
                raise EnvironmentFault(f"{self.command[0]} cannot be started: {error}") from None
        self._waiting = asyncio.create_task(self._wait(self._process))

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        self.ended = time.monotonic()

    @property
    def running(self) -> bool:
        return self.ended is None and self._process is not None

    @property
    def code(self) -> int | None:
        return self._process.returncode if self._process else None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self.asked = self.asked or number in {signal.SIGTERM, signal.SIGKILL}
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def ends(self, within: float) -> bool:
        assert self._waiting is not None
        done, _ = await asyncio.wait({self._waiting}, timeout=within)
        return bool(done)

    async def stop(self, grace: float) -> None:
        if self._process is None:
            return
        if self.running:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            await self.ends(grace)
        self.signal(signal.SIGKILL)  # also what it started and left behind
        await self.ends(grace)

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            text = self._log.read_text(encoding="utf-8", errors="replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return " | ".join(lines[-_LAST:])
        return "it wrote nothing"
