"""The release checklist: ``python -m tools.release --check``.

Each line of the table is one check of the working tree. Exit code 1 if one fails. Nothing is
published and no file of the tree is changed; the wheel and the bill of materials are built in a
temporary directory. ``--only`` names the checks to run. That the wheel works where nothing else of
ours is, every environment of tox shows, which installs it.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from reports import evidence

HOME = Path(__file__).parents[1]
FOLDERS = ("chaos", "evidence", "fixtures", "reports", "spec", "suites")
CLONED = ("benchmarks", "docs", "tests", "tools")  # what the wheel has nothing of
_HEADING = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


class Failed(Exception):
    """A check of the list failed; the message says why in one sentence."""


def project() -> dict[str, Any]:
    return dict(tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def command(*words: str, folder: Path = HOME, **variables: str) -> str:
    environment = {**os.environ, **variables}
    try:
        ended = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, check=False, text=True
        )
    except OSError as error:
        raise Failed(f"{words[0]} cannot be started: {error.strerror}") from None
    if ended.returncode:
        lines = (ended.stderr or ended.stdout).strip().splitlines()[-3:]
        raise Failed(f"{' '.join(words[:4])} ended with {ended.returncode}: {' / '.join(lines)}")
    return ended.stdout


def check_tree() -> str:
    if changed := command("git", "status", "--porcelain"):
        raise Failed(f"{len(changed.splitlines())} uncommitted changes")
    return command("git", "rev-parse", "--short", "HEAD").strip()


def check_version() -> str:
    version = project()["version"]
    try:
        if Version(version).is_prerelease:
            raise Failed(f"{version} is a pre-release")
    except InvalidVersion:
        raise Failed(f"{version} is no version") from None
    if command("git", "tag", "--list", f"v{version}").strip():
        raise Failed(f"tag v{version} exists: raise the version in pyproject.toml")
    return str(version)


def check_changelog() -> str:
    text = (HOME / "CHANGELOG.md").read_text(encoding="utf-8")
    version, known = project()["version"], dict(_HEADING.findall(text))
    if not known.get(version):
        raise Failed(f"CHANGELOG.md has no section [{version}] with a date")
    if "Unreleased" in known:
        body = re.split(r"^## \[", text.partition("## [Unreleased]")[2], flags=re.MULTILINE)[0]
        if body.strip():
            raise Failed("CHANGELOG.md has unreleased entries: move them to a version")
    return f"[{version}] - {known[version]}"


def check_lock() -> str:
    lines = (HOME / "lock.txt").read_text(encoding="utf-8").splitlines()
    locked = {
        canonicalize_name(name): rest.split(" ")[0]
        for name, _, rest in (line.partition("==") for line in lines)
        if rest
    }
    ours = project()
    extras = ours["optional-dependencies"].values()
    for pin in map(Requirement, chain(ours["dependencies"], *extras)):
        name = canonicalize_name(pin.name)
        if name != "shareproof" and str(pin.specifier) != f"=={locked.get(name)}":
            raise Failed(f"lock.txt does not have {pin}: run tox -e lock")
    return f"{len(locked)} packages"


def check_documents() -> str:
    with tempfile.TemporaryDirectory() as site:
        words = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", site)
        command(*words, NO_MKDOCS_2_WARNING="1")
        return f"{sum(1 for _ in Path(site).rglob('*.html'))} pages"


def check_generated() -> str:
    tests = ["tests/test_documents.py", "tests/test_cli.py", "tests/test_chaos.py"]
    output = command(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *tests)
    return output.strip().splitlines()[-1]


def check_evidence() -> str:
    changed = command("git", "log", "-1", "--format=%cs", "--", "suites").strip()
    last: dict[str, str] = {}
    for one in evidence.read():
        last[one.kind] = max(one.date, last.get(one.kind, ""))
    if old := [f"{kind}s of {date}" for kind, date in last.items() if date < changed]:
        again = "python -m tools.campaign alterations kafka clients releases reference --again"
        raise Failed(f"suites changed on {changed}, and {', '.join(old)} are older: run {again}")
    return f"{len(last)} campaigns since {changed}"


def build(into: Path) -> tuple[Path, Path]:
    # Not at home, where a directory called build may lie.
    command(sys.executable, "-m", "build", "--outdir", str(into), str(HOME), folder=into)
    return next(into.glob("*.whl")), next(into.glob("*.tar.gz"))


def tracked() -> list[str]:
    names = command("git", "ls-files", *FOLDERS).splitlines()
    return [name for name in names if (HOME / name).is_file()]


def wrong(wheel: Path, sdist: Path, files: Iterable[str]) -> list[str]:
    with zipfile.ZipFile(wheel) as zipped:
        in_wheel = set(zipped.namelist())
    with tarfile.open(sdist) as packed:
        in_sdist = {name.partition("/")[2] for name in packed.getnames()}
    found: list[str] = []
    for name in files:
        if f"shareproof/source/{name}" not in in_wheel:
            found.append(f"{name} is not in the wheel")
        if name not in in_sdist:
            found.append(f"{name} is not in the sdist")
    cloned = tuple(f"shareproof/source/{folder}/" for folder in CLONED)
    return found + [f"the wheel has {name}" for name in sorted(in_wheel) if name.startswith(cloned)]


def check_wheel() -> str:
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = build(Path(folder))
        if complaints := wrong(wheel, sdist, tracked()):
            raise Failed(f"{complaints[0]}, and {len(complaints) - 1} more")
        return f"{wheel.name}, {wheel.stat().st_size // 1024} kB"


def check_sbom() -> str:
    if importlib.util.find_spec("cyclonedx_py") is None:
        raise Failed("cyclonedx-bom is not installed: pip install '.[release]'")
    words = (sys.executable, "-m", "cyclonedx_py", "environment", sys.executable)
    bill = json.loads(command(*words, "--output-format", "JSON"))
    parts = {canonicalize_name(part["name"]) for part in bill["components"]}
    for pin in map(Requirement, project()["dependencies"]):
        if canonicalize_name(pin.name) not in parts:
            raise Failed(f"the bill of materials lacks {pin.name}")
    return f"{len(parts)} components"


CHECKS: dict[str, Callable[[], str]] = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--check", action="store_true", required=True, help="run the checklist")
    parser.add_argument("--only", nargs="+", choices=list(CHECKS), default=list(CHECKS))
    options = parser.parse_args(arguments)
    if shutil.which("git") is None:
        print("git is not installed", file=sys.stderr)
        return 3
    wide, code = max(map(len, options.only)), 0
    for name in options.only:
        try:
            print(f"ok    {name:<{wide}}  {CHECKS[name]()}")
        except Failed as failed:
            code = 1
            print(f"FAIL  {name:<{wide}}  {failed}")
    return code


if __name__ == "__main__":
    sys.exit(main())
