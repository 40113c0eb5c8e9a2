"""What the documents tell people to type: commands, options, environments of tox and modules."""

from __future__ import annotations

import configparser
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from shareproof.cli import app
from tests.fake import ROOT
from tools.documents import architecture, pictures

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HELPERS = ("suites", "suites/broker", "suites/client")
ACTION = ROOT / ".github" / "actions" / "client" / "action.yml"
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
_OURS = re.compile(r"^ {4}(?:.*(?: |/bin/))?(shareproof\"? +[a-z].*)$", re.MULTILINE)
_TOX = re.compile(r"\btox (?:-c \w+ )?-e ([\w,-]+)")
_MODULE = re.compile(r"\bpython3? -m ((?:suites|benchmarks|shareproof|tests|tools)[\w.]*\w)")

pytestmark = pytest.mark.skipif(not PAGES[0].exists(), reason="an installation has no documents")


def text(file: Path) -> str:
    """Return a file with the lines joined that a shell would join."""
    return file.read_text(encoding="utf-8").replace("\\\n", " ") if file.exists() else ""


def commands(written: str) -> list[str]:
    """Return each command of ours that stands in a block of code, up to a pipe or the next one."""
    found = (line.replace('shareproof"', "shareproof") for line in _OURS.findall(written))
    return [re.split(r" (?:\||&&|>) ", line)[0] for line in found]


def told() -> list[Any]:
    """Return each command of each document, named by where it stands."""
    return [
        pytest.param(line, id=f"{file.relative_to(ROOT)}: {line}")
        for file in (*PAGES, ACTION)
        for line in commands(text(file))
    ]


@pytest.mark.parametrize("line", told())
def test_commands_of_documents_are_understood(line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    assert COMMANDS[name].make_context(name, words).params


def test_environments_of_documents_exist() -> None:
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    named = {
        one for page in PAGES for found in _TOX.findall(text(page)) for one in found.split(",")
    }
    assert {one for one in named if f"testenv:{one}" not in tox} == set()
    assert len(named) > 5


def test_modules_of_documents_exist() -> None:
    named = {found for page in PAGES for found in _MODULE.findall(text(page))}
    lost = {one for one in named if not (find_spec(one) or find_spec(f"{one}.__main__"))}
    assert lost == set()
    assert len(named) > 5


def test_a_command_is_found_wherever_it_stands() -> None:
    written = """
shareproof is prose
    .venv/bin/shareproof doctor       # said
    cd x && shareproof list --json | jq
          - run: shareproof up
    "$HOME/bin/shareproof" chaos
"""
    assert [line.split()[1] for line in commands(written)] == ["doctor", "list", "up", "chaos"]


def test_the_architecture_is_that_of_today() -> None:
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.picture()


def test_every_folder_says_what_belongs_there() -> None:
    rows = architecture.table().splitlines()[2:]

    assert [row for row in rows if not row.split("|")[2].strip().endswith(".")] == []


def test_every_helper_says_what_it_is_for() -> None:
    modules = [path for folder in HELPERS for path in (ROOT / folder).glob("*.py")]
    assert [path.name for path in modules if not path.read_text().startswith('"""')] == []


def test_no_document_sets_pythonpath() -> None:
    assert [str(page.relative_to(ROOT)) for page in PAGES if "PYTHONPATH" in text(page)] == []


def test_pictures_of_documents_are_small() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)", text(page))
    }
    assert len(shown) > 3
    assert [str(file) for file in shown if not file.is_file()] == []
    assert [str(file) for file in shown if file.stat().st_size > pictures.LARGEST] == []


def examples() -> list[Any]:
    """Return what each example diff of CONTRIBUTING changes: a file, and the lines it must have."""
    blocks = re.findall(
        r"^```diff\n(.*?)^```", text(ROOT / "CONTRIBUTING.md"), re.MULTILINE | re.DOTALL
    )
    parts = [part for block in blocks for part in re.split(r"^--- ", block, flags=re.MULTILINE)[1:]]
    return [
        pytest.param(name.removeprefix("a/"), [line[1:] for line in lines if line[:1] in "- "])
        for name, *lines in (part.splitlines() for part in parts)
    ]


@pytest.mark.parametrize(("name", "lines"), examples())
def test_examples_of_contributing_fit(name: str, lines: list[str]) -> None:
    if name != "/dev/null":
        written = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line not in written] == []
