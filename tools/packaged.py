"""Whether what we hand out works where nothing else of ours is.

``python -m tools.packaged`` builds the sdist, and from that the wheel, installs the wheel into an
empty environment, and runs the command line in an empty directory: help, rules, a certificate of
the reference broker, one of our model client, and one of a real Kafka. ``uvx`` runs the wheel
without an installation, too. Each command is told with its exit code and its seconds; the first
that ends otherwise than it should ends all.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parents[1]
FOLDERS = ("chaos", "evidence", "fixtures", "reports", "spec", "suites")
CLONED = ("benchmarks", "docs", "tests", "tools")
"""What the wheel has nothing of."""

COMMANDS = {
    "help": ("--help",),
    "rules": ("list", "--only", "ACK", "--json"),
    "doctor": ("doctor",),
    "reference": ("broker", "--target", "reference", "--only", "ACK", "--out", "reference"),
    "client": ("client", "--client", "model", "--target", "reference", "--out", "client"),
    "site": ("report", "reference", "client", "--site", "site"),
    "kafka": ("broker", "--target", "kafka:4.4.0", "--fast", "--brokers", "1", "--out", "kafka"),
}
"""What is run, by the name that ``--only`` knows it by; each must end with 0."""


class Broken(Exception):
    """Something that we hand out does not work; the message says what."""


class Built(NamedTuple):
    wheel: Path
    sdist: Path


def build(into: Path) -> Built:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(into), str(HOME)],
        capture_output=True,
        text=True,
        check=False,
        cwd=into,  # not at home, where a directory called build may lie
    )
    if done.returncode:
        raise Broken(f"the build failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return Built(wheel=next(into.glob("*.whl")), sdist=next(into.glob("*.tar.gz")))


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], capture_output=True, text=True, check=True, cwd=HOME
    )
    return [name for name in listed.stdout.splitlines() if (HOME / name).is_file()]


def lost(built: Built, files: Iterable[str]) -> list[str]:
    with zipfile.ZipFile(built.wheel) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(built.sdist) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    found: list[str] = []
    for name in files:
        if f"shareproof/source/{name}" not in in_wheel:
            found.append(f"{name} is not in the wheel")
        if name not in in_sdist:
            found.append(f"{name} is not in the sdist")
    return found


def unwanted(built: Built) -> list[str]:
    """Return what the wheel has of folders that are for a clone only."""
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
    return [n for n in names if n.startswith(tuple(f"shareproof/source/{no}/" for no in CLONED))]


def _run(command: Sequence[str], where: Path, *, what: str) -> None:
    began = time.monotonic()
    # Nothing that would lead Python back to the checkout.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where, env=env)
    print(f"{done.returncode:>3} {time.monotonic() - began:6.1f} s  {what}", flush=True)
    if done.returncode:
        raise Broken(f"{what} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.packaged", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(COMMANDS), help="repeat; or all")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="shareproof-packaged-") as folder:
        try:
            _try(Path(folder), asked.only or list(COMMANDS))
        except Broken as broken:
            print(f"tools.packaged: {broken}", file=sys.stderr)
            return 1
    return 0


def _try(folder: Path, names: Iterable[str]) -> None:
    """Build, install into an empty environment, and run, with uvx too, which has no cache then."""
    built = build(folder)
    if wrong := [*lost(built, tracked()), *unwanted(built)]:
        raise Broken("; ".join(wrong))
    environment, empty = folder / "environment", folder / "empty"
    empty.mkdir()
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", str(built.wheel)]
    _run(pip, empty, what="pip install")
    if not (environment / "share" / "man" / "man1" / "shareproof.1").is_file():
        raise Broken("there is no manual page in the environment")
    uvx = shutil.which("uvx")
    if uvx is None:
        raise Broken("there is no uvx; pip install 'shareproof[release]' brings it")
    command = [uvx, "--quiet", "--no-cache", "--from", str(built.wheel), "shareproof", "--version"]
    _run(command, empty, what="uvx shareproof --version")
    for name in names:
        command = [str(environment / "bin" / "shareproof"), *COMMANDS[name]]
        _run(command, empty, what=f"shareproof {' '.join(COMMANDS[name])}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
