"""How long judging takes, beside DuckDB and Polars: ``python -m benchmarks.analysis``.

For each size one history is made, and judged from its files to its counts by a process of its own,
engine after engine, round by round: the whole of ``shareproof analyse --brief`` with the start of
its JVM, its checksums and its witnesses; and the same invariants by DuckDB and by Polars
(``benchmarks.rivals``). All have the same number of threads. Every engine must find the same cases
and the same broken ones, and those that were planted. Memory is the highest sum of what a process
and its children had in use.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.histories import Made, write_history
from reports.reading import parse
from reports.results import Results

OURS = "spark"
_EVERY = 0.1

Counts = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One engine's pass over a history: seconds, CPU seconds, and the peak of memory in GiB."""

    seconds: float
    cpu: float
    memory: float
    counts: Counts


def watched(command: Sequence[str], threads: int) -> tuple[str, float, float, float]:
    """Run a command; return its output, seconds, CPU seconds and peak of memory in GiB."""
    began, peak, spent = time.monotonic(), 0, 0.0
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        process = psutil.Popen(
            command,
            stdout=output,
            stderr=errors,
            env={**os.environ, "POLARS_MAX_THREADS": str(threads)},
        )
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
        return output.read(), seconds, spent, peak / 2**30


def run(engine: str, folder: Path, threads: int, memory: str) -> Run:
    if engine == OURS:
        command = ["-m", "shareproof", "analyse", str(folder), "--brief", "--json", "--master"]
        command += [f"local[{threads}]", "--memory", memory, "--out", str(folder / "out")]
    else:
        command = ["-m", "benchmarks.rivals", engine, str(folder), "--threads", str(threads)]
    output, seconds, cpu, peak = watched([sys.executable, *command], threads)
    found = json.loads(output)
    counts = (
        _verdicts(parse(found))
        if engine == OURS
        else {rule: (x, b) for rule, (x, b) in found.items()}
    )
    return Run(seconds=seconds, cpu=cpu, memory=peak, counts=counts)


def _verdicts(results: Results) -> Counts:
    return {
        rule.id: (
            rule.evidence.get("cases", 0),
            int(rule.reason.split()[0]) if rule.verdict == "fail" else 0,
        )
        for rule in results.requirements
    }


def check(engine: str, found: Counts, made: Made, ours: Counts) -> None:
    """Refuse responses that are not the planted ones, or not those of the others."""
    broken = {rule: count for rule, (_, count) in found.items() if count}
    planted = {rule: count for rule, count in made.planted.items() if count}
    if broken != planted:
        raise SystemExit(f"{engine} finds {broken} where {planted} was planted")
    if other := {rule: (count, ours[rule]) for rule, count in found.items() if count != ours[rule]}:
        raise SystemExit(f"{engine} and {OURS} disagree: {other}")


def compare(folder: Path, made: Made, options: argparse.Namespace) -> None:
    """Let the engines take turns, and print a line for each and the ratios."""
    runs: dict[str, list[Run]] = {engine: [] for engine in options.engines}
    for number in range(options.rounds):
        # Who comes first has the files cold, and who comes last the machine warm: take turns.
        first = number % len(options.engines)
        for engine in (*options.engines[first:], *options.engines[:first]):
            done = run(engine, folder, options.threads, options.memory)
            runs[engine].append(done)
            print(
                f"  {engine}: {done.seconds:.1f} s, {done.cpu:.1f} s of CPU, {done.memory:.2f} GiB",
                flush=True,
            )
    for engine, all_done in runs.items():
        for one in all_done:
            check(engine, one.counts, made, runs[options.engines[0]][0].counts)
    _tell(made, runs)


def _tell(made: Made, runs: dict[str, list[Run]]) -> None:
    own = runs.get(OURS)
    for engine, done in runs.items():
        seconds = median(one.seconds for one in done)
        cpu = median(one.cpu for one in done)
        line = (
            f"{made.events:,} events, {engine}: {seconds:.1f} s, {cpu:.1f} s of CPU, "
            f"{max(one.memory for one in done):.2f} GiB, {1e9 * seconds / made.events:.0f} ns "
            f"an event, {len(done[0].counts)} rules"
        )
        if own and engine != OURS:
            ratio = median(a.seconds / b.seconds for a, b in zip(own, done, strict=True))
            work = median(a.cpu / b.cpu for a, b in zip(own, done, strict=True))
            line += f"; {OURS} / {engine}: {ratio:.2f} of the time, {work:.2f} of the CPU time"
        print(line, flush=True)


def history(room: Path, events: int, seed: int) -> tuple[Path, Made]:
    """Return a history, and what it holds: the one that an earlier run left, or a new one."""
    folder, note = room / f"{events}-{seed}", room / f"{events}-{seed}.json"
    if note.exists():
        told = json.loads(note.read_text(encoding="utf-8"))
        made = Made(told["events"], Counter(told["rows"]), Counter(told["planted"]))
    else:
        began = time.monotonic()
        made = write_history(folder, events, seed)
        told = {"events": made.events, "rows": made.rows, "planted": made.planted}
        note.write_text(json.dumps(told), encoding="utf-8")
        print(f"made in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{made.events:,} events in {sum(made.rows.values()):,} rows", flush=True)
    return folder, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=float, nargs="+", default=[1e6])
    parser.add_argument("--engines", nargs="+", default=[OURS, "duckdb", "polars"])
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
