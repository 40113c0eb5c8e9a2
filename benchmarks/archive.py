"""How long judging an archive takes: ``python -m benchmarks.archive``.

For each number of histories an archive of that many is judged by one ``shareproof analyse
--brief``, with the start of its JVM, its checksums and its witnesses. A few different histories are
made, and the others are copies of them. In an archive of several one file is broken: it has to be
named, and every other history has to get the verdicts that it gets alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.analysis import watched
from benchmarks.histories import GROUPS, write_history
from reports.reading import parse
from reports.results import Results

DIFFERENT = 4
"""Histories that are made; the others are copies."""
REDELIVERED = 1.045
"""Deliveries of a record in a group."""

Verdicts = Mapping[str, tuple[str, str]]
"""Of each rule the verdict and how many cases there were and were broken, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judgement: seconds, CPU seconds, the peak of memory in GiB, and what was found."""

    seconds: float
    cpu: float
    memory: float
    results: Results

    def of(self, run: str) -> Verdicts:
        """Return the verdicts on a run of the archive, but for rules that it did not exercise."""
        return {
            rule.id: (check.verdict, check.reason.split(";")[0])
            for rule in self.results.requirements
            for check in rule.checks
            if check.check.endswith(f"[{run}]") and check.verdict != "vacuous"
        }


def archive(room: Path, histories: int, deliveries: int) -> list[Path]:
    records = deliveries / GROUPS / REDELIVERED
    runs = [room / f"run-{number:03}" for number in range(histories)]
    for number, run in enumerate(runs):
        if number < DIFFERENT:
            write_history(run / "history", int(records + 2 * deliveries), seed=number + 1)
        else:
            shutil.copytree(runs[number % DIFFERENT], run)
    return runs


def broken(run: Path) -> Path:
    """Change a byte of a file of a run, and return the file."""
    file = max((run / "history" / "deliveries").iterdir())
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    return file


def judge(runs: Sequence[Path], out: Path, options: argparse.Namespace) -> Judged:
    command = ["-m", "shareproof", "analyse", *map(str, runs), "--brief", "--json", "--master"]
    command += [f"local[{options.threads}]", "--memory", options.memory, "--out", str(out)]
    output, seconds, cpu, memory = watched([sys.executable, *command], options.threads)
    return Judged(seconds=seconds, cpu=cpu, memory=memory, results=parse(json.loads(output)))


def check(found: Judged, alone: Mapping[str, Verdicts], runs: Sequence[Path], hurt: Path) -> None:
    """Refuse verdicts that are not those of each history alone, and a broken file without a name.

    Args:
        found: the judgement of an archive.
        alone: the verdicts on the different runs, by name.
        runs: the archive.
        hurt: the broken file.
    """
    if not any(str(hurt) in error for error in found.results.run.errors):
        raise SystemExit(f"{hurt} is broken, and nothing says so")
    names = list(alone)
    for number, run in enumerate(runs):
        if run not in hurt.parents and found.of(run.name) != alone[names[number % DIFFERENT]]:
            raise SystemExit(f"{run.name} is judged otherwise than alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--deliveries", type=int, default=100_000, help="of each history")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="2g", help="what Spark's JVM may have")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--room", type=Path, help="where histories are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shareproof-bench-", dir=options.room) as made:
        room = Path(made)
        runs = archive(room / "whole", max(options.histories), options.deliveries)
        alone = [judge([run], room / "out", options) for run in runs[:DIFFERENT]]
        verdicts = {run.name: one.of(run.name) for run, one in zip(runs, alone, strict=False)}
        one = _told(1, alone, alone) if 1 in options.histories else alone
        for number in sorted({*options.histories} - {1}):
            some = [*runs[: number - 1], room / "hurt" / runs[number - 1].name]
            shutil.copytree(runs[number - 1], some[-1])
            hurt = broken(some[-1])
            rounds = []
            for _ in range(options.rounds):
                rounds.append(judge(some, room / "out", options))
                check(rounds[-1], verdicts, some, hurt)
            _told(number, rounds, one)


def _told(number: int, rounds: list[Judged], one: list[Judged]) -> list[Judged]:
    """Print how long it took, and how that compares with one history."""
    seconds, cpu = median(each.seconds for each in rounds), median(each.cpu for each in rounds)
    memory = max(each.memory for each in rounds)
    more = seconds / median(each.seconds for each in one)
    work = cpu / median(each.cpu for each in one)
    print(
        f"{number} histories: {seconds:.1f} s, {cpu:.1f} s of CPU, {memory:.2f} GiB; "
        f"{more:.2f} times the time of one, {work:.2f} times its CPU time",
        flush=True,
    )
    return rounds


if __name__ == "__main__":
    main()
