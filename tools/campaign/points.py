"""Random mutants of real Kafka: at each point of its share-group code, and no check in mind.

The agent of :mod:`fixtures.mutants` puts a switch at each point where PIT would make a mutant, all
at once, while the classes of an unmodified release load. One healthy run tells which checks reach
which point. Then each point of a sample is turned on and the checks that reach it are played, those
first that noticed others near it, until one reports a rule broken that holds on the sound broker.
A canary between two points tells whether the broker is still sound; if not, it is started again.

A process of its own plays, as deadlines are shorter there: ``python -m tools.campaign.points SEED
MUTANTS JOURNAL``. What came of a point is a line of the journal, and is not played again.
"""

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fixtures.machine.cache import cache_root
from fixtures.machine.java import find_java
from fixtures.mutants.agency import POINTS, points, reached, source
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from fixtures.targets.kafka import KafkaTarget
from fixtures.wire.connection import CallFailed
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault, Observation, Undecided, Verdict
from suites.broker import hang
from suites.judge import Judge
from tools.campaign.hunting import cases_of, checks
from tools.campaign.options import Options, Outcome
from tools.campaign.player import Case, observed, on_share
from tools.campaign.runs import ROOT

RELEASE = DEFAULT_TARGET.partition(":")[2]
PATIENCE = 0.5
"""As in :mod:`tools.campaign.kafka`: what a broken broker keeps waiting is the expected outcome."""
AT_ONCE = 8
"""Checks that are played at a time."""
LIMIT = 45.0
"""Seconds that a check may take."""
MOST = 48
"""Checks that are played for one point. Others that reach it as well are counted as not played."""
CANARY = "suites/broker/test_ack_types.py"
"""The checks of this file are short, and use the coordinator, the persister and the partition."""

NOTICED, SURVIVED, UNREACHED = "noticed", "survived", "not reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What came of a point: by which rule of which check it was noticed, how many were played."""

    point: str
    fate: str
    rule: str = ""
    check: str = ""
    reason: str = ""
    played: int = 0
    reaching: int = 0
    seconds: float = 0.0


def play(options: Options) -> Outcome:
    """Turn on a sample of points, or all for ``--mutants 0``, and count who notices."""
    journal = ROOT / "out" / f"points-{RELEASE}-{options.seed}.jsonl"
    journal.parent.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "tools.campaign.points", str(options.seed)]
    environment = os.environ | {"SHAREPROOF_PATIENCE": f"{PATIENCE:g}"}
    with subprocess.Popen(
        [*words, str(options.mutants), str(journal)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    ) as hunting:
        for line in hunting.stdout or ():
            options.say(line.rstrip())
    if hunting.returncode:
        raise EnvironmentFault(f"the hunt ended with exit code {hunting.returncode}")
    drawn = sample(options.seed, options.mutants)
    found = [one for one in read(journal) if one.point in drawn]
    return Outcome(said=table(found), more={"points": [dataclasses.asdict(one) for one in found]})


def sample(seed: int, mutants: int) -> list[str]:
    names = points(find_java(), RELEASE)
    return Random(seed).sample(names, min(mutants or len(names), len(names)))


def read(journal: Path) -> list[Fate]:
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return [Fate(**json.loads(line)) for line in lines]


def table(found: Sequence[Fate]) -> list[str]:
    """Return lines for people: by class how many were not reached, noticed and not noticed."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counted[one.point.partition(".")[0].partition("$")[0]][one.fate] += 1
    total = sum(counted.values(), Counter[str]())
    lines = [f"{'class':36} {NOTICED:>9} {SURVIVED:>9} {UNREACHED:>12}"]
    for name, fates in [
        *sorted(counted.items(), key=lambda item: -item[1].total()),
        ("all", total),
    ]:
        numbers = f"{fates[NOTICED]:9} {fates[SURVIVED]:9} {fates[UNREACHED]:12}"
        lines.append(f"{name:36} {numbers}")
    lines += [
        f"{SURVIVED}: {one.point} ({one.played} of {one.reaching} checks played)"
        for one in found
        if one.fate == SURVIVED
    ]
    return lines


class Broker:
    """One broker with all switches, which is started again when it is no longer sound."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.file, self.seed = folder / "point", seed
        self.orders = self.plays = 0
        self.target: KafkaTarget | None = None

    def start(self) -> None:
        self.stop()
        self.file.unlink(missing_ok=True)
        self.file.with_name("point.in-force").unlink(missing_ok=True)
        target = open_target(f"{DEFAULT_TARGET}:{POINTS}{self.file}", TargetOptions(brokers=1))
        assert isinstance(target, KafkaTarget)
        self.target = target
        target.start()
        self.schemas = Schemas.from_jar(target.info.schema_jar)

    def stop(self) -> None:
        if self.target:
            self.target.stop()

    def turn_on(self, point: str) -> frozenset[str]:
        """Turn on a point, or none; return those that were reached since the last turn."""
        self.orders += 1
        return reached(self.file, f"{self.orders} {point}")

    async def play(self, case: Case) -> Sequence[Observation]:
        self.plays += 1
        # Names are drawn, and no play may meet the topics and groups of another.
        rng = Random(f"{self.seed} {case.name} {self.plays}")
        assert self.target
        info = self.target.info

        async def on_it(judge: Judge) -> None:
            try:
                await on_share(case, judge, info, self.schemas, rng)
            except (Undecided, CallFailed, EnvironmentFault) as fault:
                raise await hang.find_hang(info, {}) or fault from None

        return (await observed(case, on_it, min(case.limit, LIMIT))).observations

    async def play_all(self, some: Sequence[Case]) -> Iterator[tuple[Case, Sequence[Observation]]]:
        return zip(some, await asyncio.gather(*map(self.play, some)), strict=True)

    async def is_sound(self, canaries: Sequence[Case]) -> bool:
        played = await self.play_all(canaries)
        return all(one.verdict is Verdict.PASS for _, seen in played for one in seen)


class Hunt:
    """The points of a sample, and the checks that may notice them."""

    def __init__(self, broker: Broker, journal: Path) -> None:
        self.broker, self.journal = broker, journal
        self.kills: Counter[tuple[str, str]] = Counter()
        shared = [check for check in checks().values() if not (check.solo or check.draft)]
        self.cases = {case.name: case for check in shared for case in cases_of(check.id)}
        self.canaries = [case for case in self.cases.values() if CANARY in case.check.id][:4]

    async def reach(self) -> Mapping[str, Sequence[str]]:
        """Return by check the points it may reach: those that any of its group reached.

        Kept in the cache: one healthy run takes minutes.
        """
        known = hashlib.sha256(f"{source()}{sorted(self.cases)}".encode()).hexdigest()[:16]
        file = cache_root() / f"reach-{RELEASE}-{known}.json"
        if file.exists():
            told: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
            return told
        found: dict[str, list[str]] = {}
        names = list(self.cases)
        for at in range(0, len(names), AT_ONCE):
            group = [self.cases[name] for name in names[at : at + AT_ONCE]]
            self.broker.turn_on("")
            began = time.monotonic()
            played = [*await self.broker.play_all(group)]
            took = time.monotonic() - began
            here = sorted(self.broker.turn_on(""))
            held = [c.name for c, o in played if all(one.verdict is Verdict.PASS for one in o)]
            found |= dict.fromkeys(held, here)
            print(
                f"{at + len(group)} of {len(names)} checks: {len(here)} points, {took:.0f} s",
                flush=True,
            )
        file.write_text(json.dumps(found), encoding="utf-8")
        return found

    async def run(self, drawn: Sequence[str]) -> None:
        reach = await self.reach()
        everywhere = Counter(point for found in reach.values() for point in found)
        print(f"{len(everywhere)} points are reached by {len(reach)} checks", flush=True)
        done = {one.point for one in read(self.journal)}
        for point in drawn:
            if point in done:
                continue
            reaching = [name for name, found in reach.items() if point in found]
            began = time.monotonic()
            if not reaching:
                fate = Fate(point=point, fate=UNREACHED)
            else:
                fate = await self.hunt(point, self.ordered(point, reaching))
            fate = dataclasses.replace(
                fate, reaching=len(reaching), seconds=round(time.monotonic() - began, 1)
            )
            with self.journal.open("a", encoding="utf-8") as journal:
                print(json.dumps(dataclasses.asdict(fate)), file=journal)
            print(f"{fate.fate}: {point} {fate.rule} {fate.check} {fate.seconds:g} s", flush=True)

    def ordered(self, point: str, reaching: Sequence[str]) -> list[Case]:
        """Return checks, those first that noticed other points of the same method, then class."""
        method = point.partition(":")[0]
        places = (method, method.partition(".")[0], "")
        at_random = Random(point).sample(reaching, len(reaching))

        def rank(name: str) -> tuple[int, ...]:
            return tuple(-self.kills[place, name] for place in places)

        return [self.cases[name] for name in sorted(at_random, key=rank)][:MOST]

    async def hunt(self, point: str, ordered: Sequence[Case]) -> Fate:
        """Play checks on a mutant until one notices; leave a broker that is sound."""
        self.broker.turn_on(point)
        played = 0
        for at in range(0, len(ordered), AT_ONCE):
            seen = [*await self.broker.play_all(ordered[at : at + AT_ONCE])]
            played += len(seen)
            failed = [(c, one) for c, told in seen for one in told if one.verdict is Verdict.FAIL]
            if failed and (found := await self.confirmed(point, failed)):
                case, one = found
                method = point.partition(":")[0]
                for place in (method, method.partition(".")[0], ""):
                    self.kills[place, case.name] += 1
                where = case.name.rpartition("::")[2]
                return Fate(
                    point=point,
                    fate=NOTICED,
                    rule=one.requirement,
                    check=where,
                    reason=one.reason[:160],
                    played=played,
                )
        self.broker.turn_on("")
        await self.mend()
        return Fate(point=point, fate=SURVIVED, played=played)

    async def confirmed(
        self, point: str, failed: Sequence[tuple[Case, Observation]]
    ) -> tuple[Case, Observation] | None:
        """Return the first that holds without the mutant, and leave the broker sound."""
        self.broker.turn_on("")
        await self.mend()
        for case, one in failed:
            sound = await self.broker.play(case)
            if all(each.verdict is Verdict.PASS for each in sound):
                return case, one
        self.broker.turn_on(point)
        return None

    async def mend(self) -> None:
        """Start the broker again if the canaries do not pass on it."""
        if not await self.broker.is_sound(self.canaries):
            await asyncio.to_thread(self.broker.start)
            if not await self.broker.is_sound(self.canaries):
                raise EnvironmentFault("a new broker without a mutant does not pass the canaries")


def main(seed: str, mutants: str, journal: str) -> None:
    with tempfile.TemporaryDirectory(prefix="shareproof-points-") as folder:
        broker = Broker(Path(folder), int(seed))
        with contextlib.ExitStack() as stack:
            stack.callback(broker.stop)
            broker.start()
            asyncio.run(Hunt(broker, Path(journal)).run(sample(int(seed), int(mutants))))


if __name__ == "__main__":
    main(*sys.argv[1:])
