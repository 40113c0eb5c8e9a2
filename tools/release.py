"""What must be true of a release and cannot be while one is prepared: ``tox -e release`` asks it.

Each check of ``CHECKS`` returns what it found in a few words, or fails in one sentence. The other
checks of that environment are tests, or programs of others.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from reports import evidence

HOME = Path(__file__).parents[1]
_HEADING = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


class Failed(Exception):
    """A check failed; the message says why in one sentence."""


def project() -> dict[str, Any]:
    return dict(tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=HOME, text=True).strip()


def check_version() -> str:
    version = str(project()["version"])
    try:
        if Version(version).is_prerelease:
            raise Failed(f"{version} is a pre-release")
    except InvalidVersion:
        raise Failed(f"{version} is no version") from None
    if git("tag", "--list", f"v{version}"):
        raise Failed(f"tag v{version} exists: raise the version in pyproject.toml")
    return version


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


def check_evidence() -> str:
    changed = git("log", "-1", "--format=%cs", "--", "suites")
    last: dict[str, str] = {}
    for one in evidence.read():
        last[one.kind] = max(one.date, last.get(one.kind, ""))
    if old := [f"{kind}s of {date}" for kind, date in last.items() if date < changed]:
        again = "python -m tools.campaign alterations kafka clients releases reference --again"
        raise Failed(f"suites changed on {changed}, and {', '.join(old)} are older: run {again}")
    return f"{len(last)} campaigns since {changed}"


CHECKS: dict[str, Callable[[], str]] = {
    "version": check_version,
    "changelog": check_changelog,
    "evidence": check_evidence,
}


def main(names: list[str]) -> int:
    code = 0
    for name in names or CHECKS:
        try:
            print(f"ok    {name}  {CHECKS[name]()}")
        except Failed as failed:
            code = 1
            print(f"FAIL  {name}  {failed}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
