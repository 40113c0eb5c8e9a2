"""Random mutants of real Kafka, broker and Java client: at each point, with no check in mind.

The agent of :mod:`fixtures.mutants` puts a switch at each point where PIT would make a mutant, all
at once, while the classes of an unmodified release load. One healthy run tells which checks reach
which point. Then each point of a sample is turned on and the checks that reach it are played, those
first that noticed others near it, or reach most of the same method and class, one for each rule,
until one reports a rule broken that holds without the mutant.
Canaries between two points tell whether the program is still sound; if not, it is started again.

A process of its own plays, as deadlines are shorter there: ``python -m tools.campaign.points
SUBJECT SEED MUTANTS JOURNAL POINT...``. Each point's outcome is a line of the journal, and that
point is not played again unless it is named.
"""

import asyncio
import dataclasses
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from fixtures.machine.cache import cache_root
from fixtures.machine.java import find_java
from fixtures.mutants.agency import points, source
from shareproof.runner.outcome import observe
from spec.verdict import EnvironmentFault, Observation, Verdict
from suites.judge import Judge
from tools.campaign.kafka import PATIENCE, RELEASE
from tools.campaign.options import Options, Outcome
from tools.campaign.player import Case
from tools.campaign.programs import Broker, Client, Program, held
from tools.campaign.runs import ROOT, lines_of

PROGRAMS: Mapping[str, type[Program]] = {"random": Broker, "random-client": Client}
MOST = 160
"""Checks that are played for one point. Others that reach it as well are counted as not played."""

LOOKS = 3
"""How often a broker is looked at, for one point, that keeps all checks waiting."""

UNDECIDED = frozenset({Verdict.UNKNOWN, Verdict.ERROR})
"""An error may be all that a check sees of a broker that ended."""

NOTICED, SURVIVED, UNREACHED = "noticed", "survived", "not reached"
"""Outcomes of a point. It survived the checks that were played, which may not be all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The outcome of a point: what noticed it, how many were played, how many told nothing."""

    point: str
    fate: str
    rule: str = ""
    check: str = ""
    reason: str = ""
    played: int = 0
    undecided: int = 0
    reaching: int = 0
    seconds: float = 0.0


def play(subject: str, options: Options) -> Outcome:
    """Turn on a sample of points, all for ``--mutants 0``, or named ones; count who notices."""
    journal = ROOT / "out" / f"{subject}-{RELEASE}-{options.seed}.jsonl"
    journal.parent.mkdir(exist_ok=True)
    words = [subject, str(options.seed), str(options.mutants), str(journal), *options.only]
    for line in lines_of("tools.campaign.points", *words, patience=PATIENCE):
        options.say(line)
    drawn = frozenset(options.only or sample(subject, options.seed, options.mutants))
    found = [one for one in read(journal).values() if one.point in drawn]
    return Outcome(said=table(found), more={"points": [dataclasses.asdict(one) for one in found]})


def sample(subject: str, seed: int, mutants: int) -> list[str]:
    names = points(find_java(), RELEASE, client=PROGRAMS[subject] is Client)
    return Random(seed).sample(names, min(mutants or len(names), len(names)))


def read(journal: Path) -> dict[str, Fate]:
    """Return the last fate of each point."""
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return {one.point: one for one in (Fate(**json.loads(line)) for line in lines)}


def table(found: Sequence[Fate]) -> list[str]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counted[one.point.partition(".")[0].partition("$")[0]][one.fate] += 1
    total = sum(counted.values(), Counter[str]())
    lines = [f"{'class':36} {NOTICED:>9} {SURVIVED:>9} {UNREACHED:>12}"]
    rows = sorted(counted.items(), key=lambda item: -item[1].total())
    for name, fates in [*rows, ("all", total)]:
        numbers = f"{fates[NOTICED]:9} {fates[SURVIVED]:9} {fates[UNREACHED]:12}"
        lines.append(f"{name:36} {numbers}")
    lines += [
        f"{SURVIVED}: {one.point} ({one.played} of {one.reaching} checks played, "
        f"{one.undecided} undecided)"
        for one in found
        if one.fate == SURVIVED
    ]
    return lines


class Hunt:
    def __init__(self, program: Program, journal: Path) -> None:
        self.program, self.journal = program, journal
        self.kills: Counter[tuple[str, str]] = Counter()
        self.near: dict[str, Counter[str]] = {}  # By check and place, how many points it reaches.
        self.cases = {case.name: case for case in program.cases()}
        self.canaries: list[Case] = []

    async def is_sound(self) -> bool:
        return all(await asyncio.gather(*map(self.program.passes, self.canaries)))

    async def reach(self) -> Mapping[str, Sequence[str]]:
        """Return by check the points that any of its group reached; cached, as it takes minutes."""
        known = hashlib.sha256(f"{source()}{sorted(self.cases)}".encode()).hexdigest()[:16]
        kind = type(self.program).__name__.lower()
        file = cache_root() / f"reach-{kind}-{RELEASE}-{known}.json"
        if file.exists():
            stored: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
            return stored
        found: dict[str, list[str]] = {}
        played, began = 0, time.monotonic()
        self.program.turn_on("")
        async for seen in self.program.in_turns([*self.cases.values()]):
            here = sorted(self.program.turn_on(""))
            found |= dict.fromkeys([case.name for case, done in seen if held(done)], here)
            played, took = played + len(seen), time.monotonic() - began
            of = f"{played} of {len(self.cases)} checks"
            print(f"{of}: {len(here)} points, {took:.0f} s in all", flush=True)
        file.write_text(json.dumps(found), encoding="utf-8")
        return found

    async def run(self, drawn: Sequence[str], *, again: bool) -> None:
        """Play points; those of the journal, too, if they are to be played again."""
        await self.program.start()
        reach = await self.reach()
        words = self.program.canaries
        self.canaries = [self.cases[name] for name in reach if name.startswith(words)][:4]
        reaching: dict[str, list[str]] = defaultdict(list)
        for name, found in reach.items():
            for one in found:
                reaching[one].append(name)
            self.near[name] = Counter(place for one in found for place in _places(one))
        print(f"{len(reaching)} points are reached by {len(reach)} checks", flush=True)
        done = {} if again else read(self.journal)
        fates = Counter(done[point].fate for point in drawn if point in done)
        for point in (one for one in drawn if one not in done):
            names = reaching.get(point, [])
            began = time.monotonic()
            fate = Fate(point=point, fate=UNREACHED)
            if names:
                fate = await self.hunt(point, self.ordered(point, names))
            fate = dataclasses.replace(
                fate, reaching=len(names), seconds=round(time.monotonic() - began, 1)
            )
            with self.journal.open("a", encoding="utf-8") as journal:
                print(json.dumps(dataclasses.asdict(fate)), file=journal)
            fates[fate.fate] += 1
            so_far = f"{fates.total()} of {len(drawn)}, {fates[NOTICED]} {NOTICED}"
            said = f"{point} {fate.rule} {fate.check} {fate.seconds:g} s"
            print(f"{so_far}; {fate.fate}: {said}", flush=True)

    def ordered(self, point: str, reaching: Sequence[str]) -> list[Case]:
        """Return checks: those that noticed others near, then one of each rule, then the others.

        Those come first that reach most of the point's method, and then of its class: they are
        about it, where others only pass by.
        """
        method, owner, every = _places(point)
        drawn = Random(point).sample(reaching, len(reaching))
        first = {self.cases[name].check.rules: name for name in reversed(drawn)}

        def rank(name: str) -> tuple[int, ...]:
            kills = (-self.kills[place, name] for place in (method, owner))
            near = (-self.near[name][place] for place in (method, owner))
            rest = name != first[self.cases[name].check.rules]
            return (*kills, rest, *near, -self.kills[every, name])

        return [self.cases[name] for name in sorted(drawn, key=rank)][:MOST]

    async def hunt(self, point: str, ordered: Sequence[Case]) -> Fate:
        self.program.turn_on(point)
        played = looks = undecided = 0
        async for seen in self.program.in_turns(ordered):
            played += len(seen)
            failed = [(c, one) for c, done in seen for one in done if one.verdict is Verdict.FAIL]
            waited = [c for c, done in seen if any(one.verdict in UNDECIDED for one in done)]
            undecided += len(waited)
            # Again where all wait: by and by they may have used up the broker's threads.
            if waited and not failed and looks < (LOOKS if len(waited) == len(seen) else 1):
                looks += 1
                if stalled := await self.program.look():
                    judge = Judge(waited[0].check.rules)
                    failed = [(waited[0], observe(waited[0].name, judge, stalled, 0.0)[0])]
            if failed and (found := await self.confirmed(point, failed)):
                case, one = found
                for place in _places(point):
                    self.kills[place, case.name] += 1
                where = case.name.rpartition("::")[2]
                return Fate(
                    point=point,
                    fate=NOTICED,
                    rule=one.rule,
                    check=where,
                    reason=one.reason[:160],
                    played=played,
                )
        await self.mend()
        return Fate(point=point, fate=SURVIVED, played=played, undecided=undecided)

    async def confirmed(
        self, point: str, failed: Sequence[tuple[Case, Observation]]
    ) -> tuple[Case, Observation] | None:
        """Return the first that holds without the mutant, and not with it; leave a sound broker."""
        for case, one in failed:
            await self.mend()
            if await self.program.passes(case):
                # Once more: on a busy machine a check may have failed whatever the mutant.
                self.program.turn_on(point)
                if not await self.program.passes(case):
                    await self.mend()
                    return case, one
        self.program.turn_on(point)
        return None

    async def mend(self) -> None:
        """Turn off the point, and start the program again if that does not make it sound."""
        try:
            self.program.turn_on("")
            sound = await self.is_sound()
        except EnvironmentFault:  # it ended
            sound = False
        if not sound:
            await self.program.start()
            if not await self.is_sound():
                raise EnvironmentFault("a new one without a mutant does not pass the canaries")


def _places(point: str) -> tuple[str, str, str]:
    """Return the method and the class of a point, and what stands for all."""
    method = point.partition(":")[0]
    return method, method.partition(".")[0], ""


async def main(subject: str, seed: str, mutants: str, journal: str, *named: str) -> None:
    with tempfile.TemporaryDirectory(prefix="shareproof-points-") as folder:
        drawn = named or sample(subject, int(seed), int(mutants))
        program = PROGRAMS[subject](Path(folder), RELEASE, int(seed))
        try:
            await Hunt(program, Path(journal)).run(drawn, again=bool(named))
        finally:
            await program.stop()


PLAYS = {subject: partial(play, subject) for subject in PROGRAMS}

if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
