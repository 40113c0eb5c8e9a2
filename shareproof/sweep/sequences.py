"""Sequences from the options of ``sweep`` to what they showed: a page of text, and scripts."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from fixtures.interface.names import UsageFault
from reports.console import line
from shareproof.runner.options import introduced
from shareproof.runner.run import moving_line
from suites.client.sequence_search import Found, Search, Searcher
from suites.client.sequences import Step
from suites.options import RunOptions, checked

REPLAYS = 3  # times that a script is played by ``--replay``


def search(options: RunOptions, minutes: float, console: Console) -> int:
    command, client, seed = _tested(options)
    out = Path(options.out)
    progress = moving_line(console, "broken")
    task = progress.add_task("sequences", total=None, broken="")

    def watch(search: Search) -> None:
        note = f"[bold red]{len(search.found)} broken[/]" if search.found else ""
        progress.update(task, completed=search.played, broken=note)

    searcher = Searcher(command, seed, watch)
    try:
        with progress:
            searcher.run(minutes)
    finally:
        # An hour that is interrupted keeps what it found.
        _report(searcher.search, out, client, seed, console)
    return 1 if searcher.search.found else 0


def _report(found: Search, out: Path, client: Sequence[str], seed: int, console: Console) -> None:
    out.mkdir(parents=True, exist_ok=True)
    first, last = found.memory
    document = {
        "client": list(client),
        "seed": seed,
        "seconds": round(found.seconds, 1),
        "played": found.played,
        "undecided": found.undecided,
        "memory_mib": [first, last],
        "found": [asdict(one) for one in found.found.values()],
        "slow": [asdict(one) for one in found.slow],
    }
    (out / "sequences.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    line(
        console,
        f"{found.played} sequences in {found.seconds:.0f} s, {found.undecided} undecided, "
        f"{first} to {last} MiB, {len(found.found)} invariants broken",
    )
    for one in found.slow:
        line(console, f"not counted, {one.tries} replays did not break it again: {one.sentence}")
    for one in found.found.values():
        _write(one, out, client, console)


def _write(found: Found, out: Path, client: Sequence[str], console: Console) -> None:
    line(console, f"{found.invariant}: {found.sentence}")
    if not found.script:
        return
    file = out / f"{found.invariant.replace(' ', '-')}.json"
    file.write_text(json.dumps(found.script, indent=1) + "\n", encoding="utf-8")
    for step in found.said:
        line(console, f"    {step}")
    line(console, f"  {found.again} of {found.tries} replays broke it again; once more with")
    line(console, f"  shareproof sweep {' '.join(client)} --replay {file}")


def replay(options: RunOptions, file: Path, console: Console) -> int:
    script = _read(file)
    command, _, seed = _tested(options)
    broken, sentences, story = Searcher(command, seed, lambda _: None).replay(script, REPLAYS)
    for step in story.said:
        line(console, f"    {step}")
    for one in sentences:
        for invariant, sentence in one.items():
            line(console, f"{invariant}: {sentence}")
    line(console, f"{broken} of {REPLAYS} plays broke an invariant")
    return 1 if broken else 0


def _tested(options: RunOptions) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    client = introduced(checked(options)).client
    assert client is not None
    return client.command, client.option, options.seed


def _read(file: Path) -> list[Step]:
    try:
        script: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageFault(f"--replay {file}: {error.strerror}.") from None
    except ValueError as error:
        raise UsageFault(f"--replay {file}: {error}.") from None
    steps: list[Any] = script if isinstance(script, list) else [None]
    if not all(isinstance(step, dict) and "call" in step for step in steps):
        raise UsageFault(f"--replay {file}: a list of steps is needed, each with a call.")
    return steps
