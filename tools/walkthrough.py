"""What somebody meets who follows the README for the first time, and how long each step takes.

``python -m tools.walkthrough`` clones this checkout, as it was committed, into an empty directory
and runs the README's first command there word for word, one step after the other, with nothing of
the surrounding Python in the environment. It prints each step with its exit code and its seconds,
and at the end what the certificate says. ``--words`` puts other words behind the last command, to
try a shorter one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.reading import read

HOME = Path(__file__).parents[1]
GOAL = 300.0
"""Seconds from the clone to the first certificate that the README's reader is to need."""
_FIRST_COMMAND = re.compile(r"^ {4}(python3 -m venv .*)$", re.MULTILINE)
_LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class Step:
    """A step and how it went."""

    command: str
    code: int
    seconds: float
    said: str

    def __str__(self) -> str:
        return f"{self.code:>3} {self.seconds:6.1f} s  {self.command}"


def first_command(readme: str) -> tuple[str, ...]:
    """Return the steps of the first command that a README shows.

    Raises:
        ValueError: it shows none.
    """
    found = _FIRST_COMMAND.search(readme)
    if found is None:
        raise ValueError("the README shows no command that begins with python3 -m venv")
    return tuple(found[1].split(" && "))


def take(command: str, where: Path) -> Step:
    """Run a step as a shell does that knows nothing of any Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    began = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=where,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Step(command, done.returncode, time.monotonic() - began, done.stdout)


def walk(room: Path, words: str) -> int:
    """Clone, and take every step of the README's first command; return the first bad exit code."""
    steps = [take(f"git clone --quiet --no-hardlinks '{HOME}' clone", room)]
    clone = room / "clone"
    print(steps[0], flush=True)
    if steps[0].code:
        print(steps[0].said, file=sys.stderr)
        return steps[0].code
    *before, last = first_command((clone / "README.md").read_text(encoding="utf-8"))
    for command in (*before, " ".join(filter(None, (last, words)))):
        steps.append(take(command, clone))
        print(steps[-1], flush=True)
        if steps[-1].code:
            print("\n".join(steps[-1].said.splitlines()[-_LAST_LINES:]), file=sys.stderr)
            break
    print(f"    {sum(step.seconds for step in steps):6.1f} s  in all; {GOAL:g} s are the goal")
    if (clone / "out" / "results.json").is_file():
        found = read(clone / "out")
        summary = {word: count for word, count in found.summary.items() if count}
        print(f"{found.target.name}: {summary}; {found.timing}"[:2000])
    return steps[-1].code


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tools.walkthrough", description=__doc__)
    parser.add_argument("--words", default="", help="more words for the last command")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="shareproof-first-") as room:
        return walk(Path(room), asked.words)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
