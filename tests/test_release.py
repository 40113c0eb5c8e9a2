"""What we hand out holds everything, and the release checklist tells what is missing."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fixtures.targets import doctor
from tools import release
from tools.packaged import HOME, build, lost, tracked, unwanted

PROJECT = """
[project]
version = "{version}"
dependencies = ["anyio==4.16.0"]
optional-dependencies = {{ }}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tree with one commit, which is the one that the checklist looks at."""
    if lacks := doctor.missing("git"):
        pytest.skip(lacks)
    monkeypatch.setattr(release, "HOME", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(version="1.2.0"), encoding="utf-8")
    (tmp_path / "lock.txt").write_text("anyio==4.16.0\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("## [Unreleased]\n", "no section"),
        ("## [1.2.0]\n", "no section"),
        ("## [Unreleased]\n\n- x\n\n## [1.2.0] - 2026-01-01\n", "unreleased entries"),
    ],
)
def test_a_changelog_that_is_not_ready_fails(
    tree: Path, text: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "CHANGELOG.md").write_text(text, encoding="utf-8")
    assert release.main(["--check", "--only", "changelog"]) == 1
    assert complaint in capsys.readouterr().out


def test_a_tree_that_is_ready_passes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "## [Unreleased]\n\n## [1.2.0] - 2026-01-01\n\n- x\n"
    (tree / "CHANGELOG.md").write_text(text, encoding="utf-8")
    assert release.main(["--check", "--only", "version", "changelog", "lock"]) == 0
    assert "ok    changelog  [1.2.0] - 2026-01-01" in capsys.readouterr().out


def test_a_lock_of_another_day_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "lock.txt").write_text("anyio==4.15.0\n", encoding="utf-8")
    assert release.main(["--check", "--only", "lock"]) == 1
    said = "FAIL  lock  lock.txt does not have anyio==4.16.0: run tox -e lock\n"
    assert capsys.readouterr().out == said


def test_a_pre_release_fails_with_exit_code_1(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "pyproject.toml").write_text(PROJECT.format(version="1.2.0rc1"), encoding="utf-8")
    assert release.main(["--check", "--only", "version", "lock"]) == 1
    assert "FAIL  version  1.2.0rc1 is a pre-release" in capsys.readouterr().out


# --- The wheel and the sdist ------------------------------------------------------------------


LOCK = HOME / "lock.txt"


@pytest.mark.skipif(not (HOME / ".git").exists(), reason="only git knows which files are ours")
def test_wheel_and_sdist_hold_every_file_of_the_rooms(tmp_path: Path) -> None:
    if lacks := doctor.missing("git"):
        pytest.skip(lacks)
    built = build(tmp_path)
    assert lost(built, tracked()) == []
    assert unwanted(built) == []
    assert lost(built, ["spec/forgotten.toml"]) == [
        "spec/forgotten.toml is not in the wheel",
        "spec/forgotten.toml is not in the sdist",
    ]


@pytest.mark.skipif(not LOCK.exists(), reason="an installation has no lock")
def test_the_lock_agrees_with_the_pins() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    pins = [
        Requirement(line) for line in [*project["dependencies"], *(p for e in extras for p in e)]
    ]
    locked = {
        canonicalize_name(line.split("==")[0]): line.split("==")[1].split(" ")[0]
        for line in LOCK.read_text().splitlines()
        if "==" in line
    }

    for pin in pins:
        if canonicalize_name(pin.name) != "shareproof":
            assert str(pin.specifier) == f"=={locked[canonicalize_name(pin.name)]}", pin.name
