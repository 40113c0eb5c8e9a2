"""The release checklist tells what is missing; see tools/release.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.targets import optional
from tools import release

PROJECT = """
[project]
version = "{version}"
dependencies = ["anyio==4.16.0"]
optional-dependencies = {{ }}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tree with one commit, which is the one that the checklist looks at."""
    if lacks := optional.missing("git"):
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
