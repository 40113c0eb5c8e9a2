"""What we hand out holds everything, and the release checklist tells what is missing."""

import re
import subprocess
from pathlib import Path

import pytest

from fixtures.targets import doctor
from tools import release
from tools.release import HOME

PROJECT = """
[project]
version = "{version}"
dependencies = ["anyio==4.16.0"]
optional-dependencies = {{ }}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if lacks := doctor.missing("git"):
        pytest.skip(lacks)
    monkeypatch.setattr(release, "HOME", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(version="1.2.0"), encoding="utf-8")
    (tmp_path / "lock.txt").write_text("anyio==4.16.0\n", encoding="utf-8")
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
        ("lock.txt", "anyio==4.16.0\n", "lock", "ok    lock  1 packages"),
        (
            "lock.txt",
            "anyio==4.15.0\n",
            "lock",
            "FAIL  lock  lock.txt does not have anyio==4.16.0: run tox -e lock\n$",
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
    assert release.main(["--check", "--only", check]) == int("ok" not in line)
    assert re.search(line, capsys.readouterr().out)


@pytest.mark.skipif(not (HOME / ".git").exists(), reason="only git knows which files are ours")
def test_wheel_and_sdist_hold_every_file_of_the_rooms(tmp_path: Path) -> None:
    if lacks := doctor.missing("git"):
        pytest.skip(lacks)
    built = release.build(tmp_path)
    assert release.wrong(*built, release.tracked()) == []
    assert release.wrong(*built, ["spec/forgotten.toml"]) == [
        "spec/forgotten.toml is not in the wheel",
        "spec/forgotten.toml is not in the sdist",
    ]


@pytest.mark.skipif(not (HOME / "lock.txt").exists(), reason="an installation has no lock")
def test_the_lock_agrees_with_the_pins() -> None:
    assert release.check_lock().endswith(" packages")
