"""How long judging takes, beside DuckDB: ``python -m benchmarks.analysis``.

For each size one history is made, and judged from its files to its counts by a process of its own,
engine after engine, round by round: the whole of ``shareproof analyse --brief`` with the start of
its JVM, its checksums and its witnesses; and the same invariants by DuckDB
(``benchmarks.rivals``). All have the same number of threads. Every engine must find the same cases
and the same broken ones, and those that were planted. Memory is the highest sum of what a process
and its children had in use.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.histories import Made, write_history
from reports.reader import parse

OURS = "spark"
_EVERY = 0.1

Counts = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a command printed, its seconds, CPU seconds, and the peak of memory in GiB."""

    output: Any
    seconds: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.cpu:.1f} s of CPU, {self.memory:.2f} GiB"


def watched(command: Sequence[str]) -> Run:
    began, peak, spent = time.monotonic(), 0, 0.0
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        process = psutil.Popen(command, stdout=output, stderr=errors)
        while process.poll() is None:
            used, cpu = 0, 0.0
            with contextlib.suppress(psutil.Error):
                for one in [process, *process.children(recursive=True)]:
                    used += one.memory_info().rss
                    cpu += sum(one.cpu_times()[:2])
            peak, spent = max(peak, used), max(spent, cpu)
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(_EVERY)
        seconds = time.monotonic() - began
        output.seek(0)
        errors.seek(0)
        if process.returncode not in {0, 1}:
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()[-3000:]}")
        return Run(json.load(output), seconds, spent, peak / 2**30)


def analyse(runs: Sequence[Path], out: Path, options: argparse.Namespace) -> Run:
    command = [sys.executable, "-m", "shareproof", "analyse", *map(str, runs), "--brief", "--json"]
    command += ["--master", f"local[{options.threads}]", "--memory", options.memory]
    return watched([*command, "--out", str(out)])


def summary(runs: Sequence[Run]) -> Run:
    seconds, cpu = median(one.seconds for one in runs), median(one.cpu for one in runs)
    return Run(None, seconds, cpu, max(one.memory for one in runs))


def run(engine: str, folder: Path, options: argparse.Namespace) -> Run:
    if engine == OURS:
        return analyse([folder], folder / "out", options)
    command = [sys.executable, "-m", "benchmarks.rivals", str(folder)]
    return watched([*command, "--threads", str(options.threads)])


def counts_of(engine: str, done: Run) -> Counts:
    if engine == OURS:
        return {
            rule.id: (
                rule.evidence.get("cases", 0),
                int(rule.reason.split()[0]) if rule.verdict == "fail" else 0,
            )
            for rule in parse(done.output).rules
        }
    return {rule: (cases, broken) for rule, (cases, broken) in done.output.items()}


def check(engine: str, found: Counts, made: Made, ours: Counts) -> None:
    broken = {rule: count for rule, (_, count) in found.items() if count}
    planted = {rule: count for rule, count in made.planted.items() if count}
    if broken != planted:
        raise SystemExit(f"{engine} finds {broken} where {planted} was planted")
    if other := {rule: (count, ours[rule]) for rule, count in found.items() if count != ours[rule]}:
        raise SystemExit(f"{engine} and {OURS} disagree: {other}")


def compare(folder: Path, made: Made, options: argparse.Namespace) -> None:
    runs: dict[str, list[Run]] = {engine: [] for engine in options.engines}
    for number in range(options.rounds):
        # Who comes first has the files cold, and who comes last the machine warm: take turns.
        first = number % len(options.engines)
        for engine in (*options.engines[first:], *options.engines[:first]):
            runs[engine].append(run(engine, folder, options))
            print(f"  {engine}: {runs[engine][-1]}", flush=True)
    ours = counts_of(options.engines[0], runs[options.engines[0]][0])
    for engine, all_done in runs.items():
        for one in all_done:
            check(engine, counts_of(engine, one), made, ours)
    _print(made, runs)


def _print(made: Made, runs: dict[str, list[Run]]) -> None:
    own = runs.get(OURS)
    for engine, done in runs.items():
        middle = summary(done)
        line = (
            f"{made.events:,} events, {engine}: {middle}, "
            f"{1e9 * middle.seconds / made.events:.0f} ns an event, "
            f"{len(counts_of(engine, done[0]))} rules"
        )
        if own and engine != OURS:
            ratio = median(a.seconds / b.seconds for a, b in zip(own, done, strict=True))
            work = median(a.cpu / b.cpu for a, b in zip(own, done, strict=True))
            line += f"; {OURS} / {engine}: {ratio:.2f} of the time, {work:.2f} of the CPU time"
        print(line, flush=True)


def history(room: Path, events: int, seed: int) -> tuple[Path, Made]:
    folder, note = room / f"{events}-{seed}", room / f"{events}-{seed}.json"
    if note.exists():
        counts = json.loads(note.read_text(encoding="utf-8"))
        made = Made(counts["events"], Counter(counts["rows"]), Counter(counts["planted"]))
    else:
        began = time.monotonic()
        made = write_history(folder, events, seed)
        counts = {"events": made.events, "rows": made.rows, "planted": made.planted}
        note.write_text(json.dumps(counts), encoding="utf-8")
        print(f"made in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{made.events:,} events in {sum(made.rows.values()):,} rows", flush=True)
    return folder, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=float, nargs="+", default=[1e6])
    parser.add_argument("--engines", nargs="+", default=[OURS, "duckdb"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="2g", help="what Spark's JVM may have")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", type=Path, help="where histories are made and kept")
    options = parser.parse_args()
    for events in options.events:
        with contextlib.ExitStack() as stack:
            room = options.room or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="shareproof-bench-"))
            )
            folder, made = history(room, int(events), options.seed)
            compare(folder, made, options)


if __name__ == "__main__":
    main()
