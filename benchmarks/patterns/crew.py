"""The processes of one system in one scenario: members, producer, tracker, and what they left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.patterns.events import Course, Dead, gather, read
from benchmarks.patterns.scenes import NOTICED_MS, PARTITIONS, Scene
from benchmarks.patterns.workload import KMQ, Producing, Working
from fixtures.adapters.clients import confluent_python
from fixtures.adapters.versions import NEWEST
from spec.verdict import EnvironmentFault

ROOT = Path(__file__).resolve().parents[2]
_ENDS_WITHIN = 20.0
WARMING, PRODUCING = "producer-warm", "producer"


class Crew:
    """Processes that are started here and ended here."""

    def __init__(self, scene: Scene, system: str, folder: Path, bootstrap: str) -> None:
        self.scene, self.system, self.folder, self.bootstrap = scene, system, folder, bootstrap
        self.python = str(confluent_python(NEWEST["confluent"]))
        self.members: list[subprocess.Popen[bytes]] = []
        self.others: list[subprocess.Popen[bytes]] = []
        self.dead: list[Dead] = []
        self.topic = self.group = self.markers = ""
        folder.mkdir(parents=True)

    @property
    def trackers(self) -> str:
        return f"{self.group}-tracker"

    def start(self, topic: str, group: str, markers: str, seconds: float) -> None:
        self.topic, self.group, self.markers = topic, group, markers
        scene = self.scene
        marked = scene.marked(seconds)
        for number in range(scene.members):
            work = Working(
                system=self.system,
                bootstrap=self.bootstrap,
                topic=topic,
                group=group,
                markers=markers,
                events=str(self.folder / f"member-{number}.events"),
                batch=scene.batch,
                handler_ms=scene.handler_ms,
                slow=marked if scene.slow_ms else None,
                slow_ms=scene.slow_ms,
                trap=marked if scene.fault.traps else None,
                fired=str(self._fired),
            )
            name = f"member-{number}"
            self.members.append(self._run(name, "benchmarks.patterns.member", work.to_json()))
        if self.system == KMQ:
            self.track()

    def track(self) -> None:
        options = ["--bootstrap", self.bootstrap, "--markers", self.markers]
        options += ["--group", self.trackers, "--timeout-ms", str(NOTICED_MS)]
        self.others.append(self._run("tracker", "benchmarks.kmq.tracker", *options))

    def warm_up(self) -> None:
        """Produce some records that are not measured, so that nobody does anything first later."""
        records = 4 * self.scene.batch * PARTITIONS
        self._produce(WARMING, time.monotonic_ns(), -records, records, 0)

    def produce(self, seconds: float, begin: int) -> None:
        self._produce(PRODUCING, begin, 0, self.scene.records(seconds), self.scene.rate)

    def _produce(self, name: str, begin: int, first: int, records: int, rate: float) -> None:
        asked = Producing(
            bootstrap=self.bootstrap,
            topic=self.topic,
            partitions=PARTITIONS,
            events=str(self.folder / f"{name}.events"),
            begin=begin,
            first=first,
            records=records,
            rate=rate,
            burst=self.scene.batch * PARTITIONS,
        )
        self.others.append(self._run(name, "benchmarks.patterns.producer", asked.to_json()))

    async def produced(self, name: str, within: float) -> None:
        """Wait until a producer has produced all.

        Raises:
            EnvironmentFault: it has not.
        """
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if any(one[0] == "produced" for one in read(self.folder / f"{name}.events")):
                return
            self.check()
            await asyncio.sleep(0.2)
        raise EnvironmentFault(f"{self.folder.name}: not produced within {within:g} s")

    async def trapped(self, within: float) -> int:
        """Wait until a member works on the record that is the trap, and return which.

        Raises:
            EnvironmentFault: nobody did.
        """
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            for number in range(len(self.members)):
                file = self.folder / f"member-{number}.events"
                if file.is_file() and b'"trapped"' in file.read_bytes():
                    return number
            self.check()
            await asyncio.sleep(0.05)
        raise EnvironmentFault(f"{self.folder.name}: nobody got the record that is the trap")

    def kill(self, number: int) -> int:
        at = time.monotonic_ns()
        self.members[number].kill()
        self._fired.touch()
        self.dead.append(Dead(number, at))
        return at

    def kill_tracker(self) -> None:
        self.others[0].kill()
        self.others[0].wait()
        del self.others[0]

    async def freeze(self, number: int, seconds: float) -> int:
        """Freeze a member that is in the trap; it goes on after some seconds. Return when."""
        at = time.monotonic_ns()
        self.members[number].send_signal(signal.SIGSTOP)
        self._fired.touch()
        await asyncio.sleep(seconds)
        self.members[number].send_signal(signal.SIGCONT)
        self.dead.append(Dead(number, at, time.monotonic_ns()))
        return at

    def check(self) -> None:
        """Raise an EnvironmentFault if a process ended that nobody told to."""
        gone = {one.member for one in self.dead if one.until < 0}
        alive = [one for number, one in enumerate(self.members) if number not in gone]
        for process in (*alive, *self.others):
            if process.poll():
                said = [path.read_text(errors="replace") for path in self.folder.glob("*.stderr")]
                words = " | ".join(line for text in said for line in text.splitlines()[-3:])
                raise EnvironmentFault(f"{self.folder.name}: a process died: {words[-600:]}")

    async def end(self) -> None:
        await asyncio.to_thread(_end, [*self.members, *self.others])

    def course(self) -> Course:
        course = gather(self.folder)
        course.dead = self.dead
        return course

    @property
    def _fired(self) -> Path:
        return self.folder / "fired"

    def _run(self, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.stderr").open("ab") as errors:
            return subprocess.Popen(
                [self.python, "-m", module, *arguments],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for one in processes:
        if one.poll() is None:
            one.send_signal(signal.SIGCONT)
            one.terminate()
    deadline = time.monotonic() + _ENDS_WITHIN
    for one in processes:
        try:
            one.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()
