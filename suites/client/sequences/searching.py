"""Draws sequences for some minutes, and shrinks those that break an invariant to a short script."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import Undecided
from suites.client.brokers import hostile_target
from suites.client.harness import harness_on
from suites.client.sequences.judging import TIMED, judge
from suites.client.sequences.playing import Story, play
from suites.client.sequences.steps import Step, sequences

MEMORY = "memory"
GROWTH = 200
"""MiB by which a client's process may grow in the second half of a search, when it is warm."""

CONFIRMED = 3
"""Times that a shrunk script is played again, to tell how often it breaks."""

SHRINKS = 150.0
"""Seconds for making one script shorter."""


@dataclass(slots=True)
class Found:
    """A script that breaks an invariant.

    Attributes:
        invariant: Its name.
        sentence: What the shortest script showed.
        script: That script.
        said: What its steps came to.
        again: How often it broke the invariant when it was played again.
        tries: How often it was played again.
    """

    invariant: str
    sentence: str
    script: list[Step]
    said: list[str]
    again: int = 0
    tries: int = 0


@dataclass(slots=True)
class Search:
    """What a search came to.

    Attributes:
        played: Sequences that were judged.
        undecided: Those that could not be.
        seconds: How long it took.
        memory: MiB of the client's process, the most in the first half of the time, and at the end.
        found: The script for each invariant that broke.
        slow: Scripts that broke a limit of time, and no replay did: the machine was slow.
    """

    played: int = 0
    undecided: int = 0
    seconds: float = 0.0
    memory: tuple[int, int] = (0, 0)
    found: dict[str, Found] = field(default_factory=dict)
    slow: list[Found] = field(default_factory=list)


class Searcher:
    """One client in front of one hostile broker, sequence by sequence."""

    def __init__(self, command: Sequence[str], number: int, watch: Callable[[Search], None]):
        self.command, self.number, self.watch = tuple(command), number, watch
        self.search = Search()
        self._adapter = Adapter(self.command)
        self._runner = asyncio.Runner()
        self._said: list[str] = []
        self._half = 0.0

    def run(self, minutes: float) -> Search:
        """Search until the minutes are over.

        Raises:
            EnvironmentFault: the client or the broker does not start.
        """
        began = time.monotonic()
        self._half = began + minutes * 30
        try:
            with self._broker() as (info, schemas):
                rounds = 0
                while time.monotonic() - began < minutes * 60:
                    self._round(info, schemas, began + minutes * 60, rounds)
                    rounds += 1
        finally:
            self.search.seconds = time.monotonic() - began
        first, last = self.search.memory
        if last - first > GROWTH:
            sentence = f"the process grew from {first} to {last} MiB when it was warm"
            self.search.found[MEMORY] = Found(MEMORY, sentence, [], [])
        return self.search

    def replay(self, script: list[Step], times: int) -> tuple[int, list[dict[str, str]], Story]:
        """Play one script some times; return how often it broke anything, and what."""
        broken: list[dict[str, str]] = []
        with self._broker() as (info, schemas):
            for _ in range(times):
                story = self._runner.run(self._play(info, schemas, script))
                if found := judge(story):
                    broken.append(found)
        return len(broken), broken, story

    # ------------------------------------------------------------------ one round

    def _round(self, info: ClusterInfo, schemas: Schemas, until: float, number: int) -> None:
        """Draw sequences until one breaks an invariant that none broke before, and shrink it."""
        hunt = _Hunt(until)

        @seed(self.number + number)
        @settings(
            max_examples=100_000,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(sequences(self._adapter.hello.capabilities))
        def draw(script: list[Step]) -> None:
            if hunt.is_over:
                raise _OverError
            broken = self._broken(info, schemas, script)
            known = {name: said for name, said in broken.items() if name not in self.search.found}
            hunt.see(script, known, self._said)

        # What breaks only now and then makes Hypothesis doubt the test; the script counts.
        with contextlib.suppress(_OverError, AssertionError, Flaky):
            draw()
        if hunt.shortest is not None:
            self._confirm(info, schemas, hunt.shortest)

    def _confirm(self, info: ClusterInfo, schemas: Schemas, found: Found) -> None:
        for _ in range(CONFIRMED):
            found.tries += 1
            found.again += found.invariant in self._broken(info, schemas, found.script)
        if found.again or found.invariant not in TIMED:
            self.search.found[found.invariant] = found
        else:
            self.search.slow.append(found)
        self.watch(self.search)

    def _broken(self, info: ClusterInfo, schemas: Schemas, script: list[Step]) -> dict[str, str]:
        try:
            story = self._runner.run(self._play(info, schemas, script))
        except (Undecided, TimeoutError):
            self.search.undecided += 1
            return {}
        self.search.played += 1
        self._said = story.said
        self.watch(self.search)
        return judge(story)

    async def _play(self, info: ClusterInfo, schemas: Schemas, script: list[Step]) -> Story:
        if not self._adapter.running:
            await self._adapter.stop()
            self._adapter = Adapter(self.command)
            await self._adapter.start()
        transcripts: list[Transcript] = []
        rng = random.Random(f"{self.number} {self.search.played}")
        async with harness_on(info, schemas, self._adapter, rng, transcripts) as harness:
            story = await play(harness, script)
        if story.stuck:
            # The next sequence begins with a process in which nothing hangs.
            await self._adapter.stop()
        else:
            now, warm = _memory(self._adapter.pid), self.search.memory[0]
            is_warming = time.monotonic() < self._half
            self.search.memory = (max(warm, now) if is_warming else warm, now)
        return story

    @contextlib.contextmanager
    def _broker(self) -> Iterator[tuple[ClusterInfo, Schemas]]:
        """Run a hostile broker and the adapter for a while."""
        target = hostile_target()
        target.start()
        try:
            self._runner.run(self._adapter.start())
            info = target.info
            yield info, Schemas.from_jar(info.schema_jar)
        finally:
            self._runner.run(self._adapter.stop())
            self._runner.close()
            target.stop()


class _Hunt:
    """The shortest script so far that breaks one invariant."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.shortest: Found | None = None

    @property
    def is_over(self) -> bool:
        """Whether no further script is to be played."""
        return time.monotonic() > self._until

    def see(self, script: list[Step], broken: Mapping[str, str], said: list[str]) -> None:
        """Take a script that was played.

        Raises:
            AssertionError: it breaks the invariant of the hunt, or the first one of all.
        """
        names = [self.shortest.invariant] if self.shortest else list(broken)[:1]
        if not names or names[0] not in broken:
            return
        if self.shortest is None:
            self._until = time.monotonic() + SHRINKS
        if self.shortest is None or len(script) <= len(self.shortest.script):
            self.shortest = Found(names[0], broken[names[0]], script, said)
        raise AssertionError(names[0])


class _OverError(BaseException):
    """The minutes are over. No failure, which Hypothesis would make shorter for five minutes."""


def _memory(pid: int) -> int:
    """Return the MiB that a process has in memory; 0 where the machine does not tell."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return 0
