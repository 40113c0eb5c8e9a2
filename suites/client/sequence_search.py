"""A search for sequences that break an invariant, each made shorter until it is a short script."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from fixtures.interface.info import ClusterInfo
from fixtures.wire.schema import Schemas
from spec.verdict import Undecided
from suites.client.harness import AdapterProcess, harness_on, hostile_broker, memory
from suites.client.sequences import TIMED, SequenceRun, Step, judge, play, sequences

MEMORY = "memory"
# MiB by which a client's process may grow in the second half of a search, when it is warm.
GROWTH = 200
CONFIRMED = 3  # Times that a shrunk script is played again, to tell how often it breaks.
SHRINKS = 150.0  # Seconds for making one script shorter.


@dataclass(slots=True)
class Found:
    invariant: str  # Its name.
    sentence: str  # What the shortest script showed.
    script: list[Step]  # That script.
    said: list[str]  # What its steps came to.
    again: int = 0  # How often it broke the invariant when it was played again.
    tries: int = 0  # How often it was played again.


@dataclass(slots=True)
class Search:
    played: int = 0  # Sequences that were judged.
    undecided: int = 0  # Those that could not be.
    seconds: float = 0.0  # How long it took.
    memory: tuple[int, int] = (0, 0)  # MiB: the most in the first half of the time, and at the end.
    found: dict[str, Found] = field(default_factory=dict)  # By the invariant that broke.
    slow: list[Found] = field(default_factory=list)  # Broke a limit of time, and no replay did.


class Searcher:
    def __init__(self, command: Sequence[str], number: int, watch: Callable[[Search], None]):
        self.number, self.watch = number, watch
        self.search = Search()
        self._adapter = AdapterProcess(command)
        self._capabilities: frozenset[str] = frozenset()
        self._runner = asyncio.Runner()
        self._broker: tuple[ClusterInfo, Schemas]
        self._said: list[str] = []
        self._half = 0.0

    def run(self, minutes: float) -> Search:
        began = time.monotonic()
        self._half = began + minutes * 30
        try:
            with self._running():
                rounds = 0
                while time.monotonic() - began < minutes * 60:
                    self._round(began + minutes * 60, rounds)
                    rounds += 1
        finally:
            self.search.seconds = time.monotonic() - began
        first, last = self.search.memory
        if last - first > GROWTH:
            sentence = f"the process grew from {first} to {last} MiB when it was warm"
            self.search.found[MEMORY] = Found(MEMORY, sentence, [], [])
        return self.search

    def replay(
        self, script: list[Step], times: int
    ) -> tuple[int, list[dict[str, str]], SequenceRun]:
        with self._running():
            runs = [self._runner.run(self._play(script)) for _ in range(times)]
        broken = [found for run in runs if (found := judge(run))]
        return len(broken), broken, runs[-1]

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        with hostile_broker() as self._broker:
            try:
                self._capabilities = self._runner.run(self._adapter.running()).hello.capabilities
                yield
            finally:
                self._runner.run(self._adapter.stop())
                self._runner.close()

    def _round(self, until: float, number: int) -> None:
        shortest: Found | None = None

        @seed(self.number + number)
        @settings(
            max_examples=100_000,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(sequences(self._capabilities))
        def draw(script: list[Step]) -> None:
            nonlocal shortest, until
            if time.monotonic() > until:
                raise _OverError
            broken = self._broken(script)
            # Once one is found, the round is about its invariant alone.
            new = [name for name in broken if name not in self.search.found]
            name = shortest.invariant if shortest else next(iter(new), "")
            if name not in new:
                return
            if shortest is None:
                until = time.monotonic() + SHRINKS
            if shortest is None or len(script) <= len(shortest.script):
                shortest = Found(name, broken[name], script, self._said)
            raise AssertionError(name)

        # What breaks only now and then makes Hypothesis doubt the test; the script counts.
        with contextlib.suppress(_OverError, AssertionError, Flaky):
            draw()
        if shortest is not None:
            self._confirm(shortest)

    def _confirm(self, found: Found) -> None:
        for _ in range(CONFIRMED):
            found.tries += 1
            found.again += found.invariant in self._broken(found.script)
        if found.again or found.invariant not in TIMED:
            self.search.found[found.invariant] = found
        else:
            self.search.slow.append(found)
        self.watch(self.search)

    def _broken(self, script: list[Step]) -> dict[str, str]:
        try:
            run = self._runner.run(self._play(script))
        except (Undecided, TimeoutError):
            self.search.undecided += 1
            return {}
        self.search.played += 1
        self._said = run.said
        self.watch(self.search)
        return judge(run)

    async def _play(self, script: list[Step]) -> SequenceRun:
        adapter = await self._adapter.running()
        rng = random.Random(f"{self.number} {self.search.played}")
        async with harness_on(*self._broker, adapter, rng, []) as harness:
            run = await play(harness, script)
        if not run.stuck:
            run.account = harness.account.breaches
        if run.stuck:
            # The next sequence begins with a process in which nothing hangs.
            await self._adapter.stop()
        else:
            now, warm = memory(adapter.pid), self.search.memory[0]
            is_warming = time.monotonic() < self._half
            self.search.memory = (max(warm, now) if is_warming else warm, now)
        return run


class _OverError(BaseException):
    """The minutes are over. No failure, which Hypothesis would make shorter for five minutes."""
