"""What somebody meets who follows the README for the first time, and how long each step takes.

``python -m tools.walkthrough`` clones this checkout, as it was committed, into an empty directory
and runs the README's first command there word for word, one step after the other, with nothing of
the surrounding Python in the environment. It prints each step with its exit code and its seconds,
and at the end what the certificate says. ``--words`` puts other words behind the last command, to
try a shorter one.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reports.reading import read

HOME = Path(__file__).parents[1]
GOAL = 300.0
"""Seconds from the clone to the first certificate that the README's reader is to need."""


def first_command(readme: str) -> list[str]:
    found = re.search(r"^ {4}(python3 -m venv .*)$", readme, re.MULTILINE)
    if found is None:
        raise ValueError("the README shows no command that begins with python3 -m venv")
    return found[1].split(" && ")


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a step as a shell does that knows nothing of any Python; return its code and output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = ["/bin/sh", "-c", f"{{ {command}\n}} 2>&1"]
    began = time.monotonic()
    done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    print(f"{done.returncode:>3} {time.monotonic() - began:6.1f} s  {command}", flush=True)
    return done.returncode, done.stdout


def walk(folder: Path, words: str) -> int:
    """Clone, and take every step of the README's first command; return the first bad exit code."""
    began = time.monotonic()
    clone = folder / "clone"
    code, said = run(f"git clone --quiet --no-hardlinks '{HOME}' clone", folder)
    steps = first_command((clone / "README.md").read_text(encoding="utf-8")) if not code else []
    if steps:
        steps[-1] = f"{steps[-1]} {words}".rstrip()
    for step in steps:
        code, said = run(step, clone)
        if code:
            break
    if code:
        print("\n".join(said.splitlines()[-15:]), file=sys.stderr)
    print(f"    {time.monotonic() - began:6.1f} s  in all; {GOAL:g} s are the goal")
    if (clone / "out" / "results.json").is_file():
        found = read(clone / "out")
        summary = {word: count for word, count in found.summary.items() if count}
        print(f"{found.target.name}: {summary}; {found.timing}"[:2000])
    return code


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.walkthrough", description=__doc__)
    parser.add_argument("--words", default="", help="more words for the last command")
    with tempfile.TemporaryDirectory(prefix="shareproof-first-") as empty:
        raise SystemExit(walk(Path(empty), parser.parse_args().words))
