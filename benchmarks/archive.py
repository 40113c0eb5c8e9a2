"""How long judging an archive takes: ``python -m benchmarks.archive``.

For each number of histories an archive of that many is judged by one ``shareproof analyse
--brief``, with the start of its JVM, its checksums and its witnesses. A few different histories are
made, and the others are copies of them. In an archive of several one file is broken: it has to be
named, and every other history has to get the verdicts that it gets alone.
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.analysis import Run, analyse, summary
from benchmarks.histories import GROUPS, write_history
from reports.reader import parse
from reports.results import Results

DIFFERENT = 4  # histories that are made; the others are copies
REDELIVERED = 1.045  # deliveries of a record in a group

Verdicts = Mapping[str, tuple[str, str]]
"""Of each rule the verdict and how many cases there were and were broken, in words."""


def verdicts_of(found: Results, run: str) -> Verdicts:
    return {
        rule.id: (check.verdict, check.reason.split(";")[0])
        for rule in found.rules
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
    file = max((run / "history" / "deliveries").iterdir())
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    return file


def check(found: Results, alone: Mapping[str, Verdicts], runs: Sequence[Path], hurt: Path) -> None:
    if not any(str(hurt) in error for error in found.run.errors):
        raise SystemExit(f"{hurt} is broken, and nothing says so")
    names = list(alone)
    for number, run in enumerate(runs):
        expected = alone[names[number % DIFFERENT]]
        if run not in hurt.parents and verdicts_of(found, run.name) != expected:
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
        alone = [analyse([run], room / "out", options) for run in runs[:DIFFERENT]]
        verdicts = {
            run.name: verdicts_of(parse(one.output), run.name)
            for run, one in zip(runs, alone, strict=False)
        }
        if 1 in options.histories:
            _print(1, alone, alone)
        for number in sorted({*options.histories} - {1}):
            some = [*runs[: number - 1], room / "hurt" / runs[number - 1].name]
            shutil.copytree(runs[number - 1], some[-1])
            hurt = broken(some[-1])
            rounds = []
            for _ in range(options.rounds):
                rounds.append(analyse(some, room / "out", options))
                check(parse(rounds[-1].output), verdicts, some, hurt)
            _print(number, rounds, alone)


def _print(number: int, rounds: Sequence[Run], alone: Sequence[Run]) -> None:
    found, one = summary(rounds), summary(alone)
    print(
        f"{number} histories: {found}; {found.seconds / one.seconds:.2f} times the time of one, "
        f"{found.cpu / one.cpu:.2f} times its CPU time",
        flush=True,
    )


if __name__ == "__main__":
    main()
