"""Tools of maintainers: releases of the suite, and frames that an exception was thrown for."""

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fixtures.targets import doctor
from tools import release
from tools.release import HOME
from tools.thrown import thrown

FOLDERS = ("chaos", "evidence", "fixtures", "reports", "spec", "suites")
CLONED = ("benchmarks", "docs", "tests", "tools")  # what the wheel has nothing of
PROJECT = """
[project]
version = "{version}"
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if lacks := doctor.missing("git"):
        pytest.skip(lacks)
    monkeypatch.setattr(release, "HOME", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(version="1.2.0"), encoding="utf-8")
    return tmp_path


DATED = "## [1.2.0] - 2026-01-01\n"


@pytest.mark.parametrize(
    ("file", "text", "check", "line"),
    [
        ("CHANGELOG.md", "## [Unreleased]\n", "changelog", "FAIL  changelog  .*no section"),
        ("CHANGELOG.md", "## [1.2.0]\n", "changelog", "FAIL  changelog  .*no section"),
        ("CHANGELOG.md", f"## [Unreleased]\n\n- x\n\n{DATED}", "changelog", "unreleased entries"),
        (
            "CHANGELOG.md",
            f"## [Unreleased]\n\n{DATED}\n- x\n",
            "changelog",
            r"ok .* \[1.2.0\] - 2026",
        ),
        ("pyproject.toml", PROJECT.format(version="1.2.0"), "version", "ok    version  1.2.0"),
        (
            "pyproject.toml",
            PROJECT.format(version="1.2.0rc1"),
            "version",
            "FAIL  version  1.2.0rc1 is a pre-release",
        ),
    ],
)
def test_the_checklist_says_what_is_ready_and_what_is_not(
    tree: Path, file: str, text: str, check: str, line: str, *, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / file).write_text(text, encoding="utf-8")
    assert release.main([check]) == int("ok" not in line)
    assert re.search(line, capsys.readouterr().out)


def build(into: Path) -> tuple[Path, Path]:
    # Not at home, where a directory called build may lie.
    words = (sys.executable, "-m", "build", "--outdir", str(into), str(HOME))
    subprocess.run(words, cwd=into, check=True, capture_output=True)
    return next(into.glob("*.whl")), next(into.glob("*.tar.gz"))


def tracked() -> list[str]:
    names = release.git("ls-files", *FOLDERS).splitlines()
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


@pytest.mark.skipif(not (HOME / ".git").exists(), reason="only git knows which files are ours")
def test_wheel_and_sdist_hold_every_file_of_the_rooms(tmp_path: Path) -> None:
    if lacks := doctor.missing("git"):
        pytest.skip(lacks)
    built = build(tmp_path)
    assert wrong(*built, tracked()) == []
    assert wrong(*built, ["spec/forgotten.toml"]) == [
        "spec/forgotten.toml is not in the wheel",
        "spec/forgotten.toml is not in the sdist",
    ]


@pytest.mark.skipif(not (HOME / "lock.txt").exists(), reason="an installation has no lock")
def test_the_lock_agrees_with_the_pins() -> None:
    lines = (HOME / "lock.txt").read_text(encoding="utf-8").splitlines()
    locked, ours = {line.partition(" ")[0] for line in lines}, release.project()
    extras = ours["optional-dependencies"].values()
    pins = map(Requirement, chain(ours["dependencies"], *extras))
    pinned = {f"{canonicalize_name(one.name)}{one.specifier}" for one in pins}
    assert pinned - locked == {"shareproof"}, "run tox -e lock"


KIND = "[22.063s] Exception <a '{}'{{{}}}>\n"
PLACE = " thrown in {} method <{{method}} {{0x00007f15e46df788}} '{}' '()Z' in '{}'>\n"
END = " at {} for thread {}\n"
NULL, EOF = "java/lang/NullPointerException", "java/io/EOFException"
PARTITION = "kafka/server/share/SharePartition"
LOG = "".join(
    (
        KIND.format(NULL, "0x00000000e87c3220"),
        PLACE.format("interpreter", "canMoveStartOffset", PARTITION),
        END.format("bci 143", "0x00007f1634441480 (PersisterStateManager)"),
        KIND.format(EOF, "0x00000000e87d0000"),
        PLACE.format("interpreter", "readFrom", "org/apache/kafka/common/network/NetworkReceive"),
        END.format("bci 7", "0x00007f1634440000 (data-plane)"),
        KIND.format(NULL, "0x00000000e87c3220"),
        PLACE.format("C1 compiled", "accept", f"{PARTITION}$$Lambda$1795+0x00007f15ec1593f0"),
        END.format("PC0x00007f7065838b94", "0x00007f1634441480"),
    )
)


def test_a_chain_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "1.log").write_text(LOG)
    methods = ("SharePartition.canMoveStartOffset", "SharePartition.accept")
    assert thrown(tmp_path, every=False) == {("NullPointerException", methods): 1}
    assert len(thrown(tmp_path, every=True)) == 1
