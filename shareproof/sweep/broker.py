"""The sweep of a broker: its cases on one cluster, many at a time, and what its log says of them.

What broke a rule or could not be decided is played again with few others, and alone if that shows
something else; the last one counts. A share of the groups is looked at again after a restart of the
brokers, where they are ours.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Console

from fixtures.clients.admin import Admin
from fixtures.clients.bounds import Bounds, bounds_of
from fixtures.clients.cluster import Cluster, Topic
from fixtures.interface.names import REFERENCE_VERSION
from fixtures.interface.target import Target
from fixtures.machine.maven import clients_jar
from fixtures.targets import open_target, started
from fixtures.targets.broker import Broker, surprises
from fixtures.wire.schema import Schemas
from reports import results
from shareproof.sweep.run import Subject, Swept, Watch, judged
from spec.configs import Scope, load_configs
from suites.broker.sweep.cases import QUIET, RULES, Case, all_cases
from suites.broker.sweep.playing import Play
from suites.broker.sweep.scenes import PARTITIONS, RECORDS
from suites.options import RunOptions
from suites.sweep import Played

BROKER = Subject(rules=RULES)
_STAGES = (("cases", 64, 0.5), ("once more", 8, 1.0), ("alone", 1, 1.0))
"""Cases at a time, and how patient they are."""
_CHUNK = 256  # Cases after which the logs are read.
_NEAR = 0.5  # Seconds that an entry of a log may be before or after its case.
_RESET = {"share.auto.offset.reset": "earliest"}


def cases_of(version: str) -> list[Case]:
    known = version or REFERENCE_VERSION
    return all_cases(Schemas.from_jar(clients_jar(known)), load_configs(known, Scope.GROUP))


def run(
    options: RunOptions, cases: Sequence[Case], words: tuple[str, ...], console: Console
) -> results.Results:
    with started(open_target(options.target, options.target_options)) as target:
        info = target.info
        shown = results.Target(
            name=info.name,
            version=options.judged(info.version),
            ledger=options.ledger_for(info.ledger),
            brokers=options.brokers,
            properties=dict(info.properties),
        )
        play = Sweep(target, options.seed).play
        return judged(
            *(options, cases, words, console),
            target=shown,
            play=lambda watch: play(cases, watch),
            subject=BROKER,
        )


class Sweep:
    def __init__(self, target: Target, seed: int) -> None:
        self._info, self._seed = target.info, seed
        self._brokers = [broker for broker in target.brokers if isinstance(broker, Broker)]
        self._read = {broker.home / "broker.log": 0 for broker in self._brokers}

    def play(self, cases: Sequence[Case], watch: Watch) -> Iterator[Swept]:
        first: dict[str, Played] = {}
        left = list(cases)
        with asyncio.Runner() as runner:
            field = runner.run(_field(Cluster(self._info)))
            for stage, together, patience in _STAGES:
                watch(stage, len(left), None)
                seed, keeps, again = f"{self._seed} {stage}", bool(self._brokers), []
                plays = [Play(field, case, seed, patience, keeps=keeps) for case in left]
                for case, played in self._stage(runner, plays, together):
                    watch(stage, len(left), played)
                    before = first.setdefault(case.name, played)
                    same = stage == "once more" and _broken(before) == _broken(played) != set()
                    if played.is_clear or same or stage == "alone":
                        yield Swept(played=played, first=None if before is played else before)
                    else:
                        again.append(case)
                left = again

    def _stage(
        self, runner: asyncio.Runner, plays: Sequence[Play], together: int
    ) -> Iterator[tuple[Case, Played]]:
        kept: list[Play] = []
        self._news()
        for at in range(0, len(plays), _CHUNK):
            chunk = plays[at : at + _CHUNK]
            runner.run(_configured(chunk))
            runner.run(_pooled(chunk, together))
            for play, played in self._results(chunk, alone=together == 1):
                if play.kept and played.is_clear:
                    kept.append(play)
                else:
                    yield play.case, played
        if kept:
            for act in (Broker.stop, Broker.launch, Broker.start):
                for broker in self._brokers:
                    act(broker)
            self._news()
            runner.run(_pooled(kept, together, again=True))
            again = self._results(kept, alone=together == 1)
            yield from ((play.case, played) for play, played in again)

    def _news(self) -> list[str]:
        found: list[str] = []
        for log, read in self._read.items():
            with log.open("rb") as file:
                file.seek(read)
                text = file.read()
            self._read[log] += len(text)
            found += surprises(text.decode(errors="replace"))
        return found

    def _results(self, plays: Sequence[Play], *, alone: bool) -> list[tuple[Play, Played]]:
        """Return the results of cases, each with the exceptions in the logs that name its group.

        An exception that names no group makes the cases open that were played then, unless one of
        them has broken something.
        """
        for entry in self._news():
            at = datetime.fromisoformat(entry.split(maxsplit=1)[0].replace(",", ".")).timestamp()
            then = [play for play in plays if play.began - _NEAR < at < play.ended + _NEAR]
            named = [play for play in then if play.scene.group in entry] or (then if alone else [])
            for play in named:
                play.broken(QUIET, _short(entry))
            if not named and not any(any(play.judged.values()) for play in then):
                for play in then:
                    play.undecided = f"no case is named by {_short(entry)}"
        for play in plays if self._read else ():
            play.judged.setdefault(QUIET, "")
        return [(play, play.result()) for play in plays]


def _short(entry: str) -> str:
    head, *lines = entry.splitlines()
    causes = [line for line in lines if not line.startswith(("\tat ", "\t..."))]
    at = [line.strip() for line in lines if line.startswith("\tat ")]
    parts = (head[24:180], *(one[:160] for one in (*causes[-1:], *at[:1])))
    return "the broker's log: " + " | ".join(parts)


def _broken(played: Played) -> set[str]:
    return {one.rule for one in played.findings if one.broken}


async def _field(cluster: Cluster) -> tuple[Cluster, tuple[Topic, ...], Bounds]:
    async with cluster:
        admin, node = Admin(cluster), min(cluster.brokers)
        topics = [await admin.create_topic(assignments=[[node]] * PARTITIONS) for _ in range(2)]
        for topic in topics:
            for partition in topic.partitions:
                await admin.produce(topic, RECORDS, partition, batches=3)
        return cluster, tuple(topics), await bounds_of(cluster)


async def _configured(plays: Sequence[Play]) -> None:
    groups = [group for play in plays for group in (play.scene.group, play.scene.other)]
    async with plays[0].cluster as cluster:
        for at in range(0, len(groups), 64):
            await Admin(cluster).try_group_configs(dict.fromkeys(groups[at : at + 64], _RESET))
        await Admin(cluster).in_force()


async def _pooled(plays: Sequence[Play], together: int, *, again: bool = False) -> None:
    turns = asyncio.Semaphore(together)

    async def one(play: Play) -> None:
        async with turns:
            await play.run(again=again)

    await asyncio.gather(*map(one, plays))
