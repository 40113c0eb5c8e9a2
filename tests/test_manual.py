"""What the command line tells about itself: examples that work, and words that shells complete."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from shareproof.cli import app
from shareproof.manual import EXAMPLES, SETTINGS, rules
from tests.fake import ROOT
from tests.shell import python
from tools.documents.manpage import page

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
VARIABLES = ROOT / "docs" / "environment.md"
LINES = [(name, words) for name, shown in EXAMPLES.items() for _, words in shown]


def asking(typed: str) -> dict[str, str]:
    """Return the environment in which bash asks how a line goes on."""
    return {
        "_SHAREPROOF_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }


def test_every_command_has_an_example() -> None:
    assert set(COMMANDS) == set(EXAMPLES)


@pytest.mark.parametrize(("name", "words"), LINES)
def test_examples_are_understood(name: str, words: str) -> None:
    assert COMMANDS[name].make_context(name, shlex.split(words)).params


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("shareproof br", ["broker"]),
        ("shareproof broker --prof", ["--profile"]),
        ("shareproof broker --level M", ["MUST", "MAY"]),
        ("shareproof broker --target ref", ["reference"]),
        ("shareproof broker --only LC", ["LCK"]),
        ("shareproof broker --only ACK,LC", ["ACK,LCK"]),
        ("shareproof client --client kraf", ["krafka"]),
        ("shareproof broker --profile kf", ["kfake"]),
    ],
)
def test_words_are_completed(typed: str, offered: list[str]) -> None:
    said = CliRunner().invoke(app, [], env=asking(typed), prog_name="shareproof")
    assert said.stdout.split() == offered


def test_a_shell_is_answered_at_once() -> None:
    script = """
import sys
sys.argv = ["shareproof"]
from shareproof.cli import main
try:
    main()
finally:
    print(*sys.modules)
"""
    done = python("-c", script, environment=asking("shareproof cha"))
    offered, modules = done.stdout.splitlines()
    assert offered == "chaos", done.stderr
    costly = {
        "suites.judge",
        "chaos",
        "reports",
        "fixtures.wire",
        "pytest",
        "jinja2",
        "psutil",
        "rich",
    }
    assert not costly & set(modules.split())


def test_the_rules_of_an_area_are_offered() -> None:
    assert rules("ACK")[:2] == ["ACK", "ACK-01"]
    assert "LCK,ACK-02" in rules("lck,ack-0")


def test_the_manual_page_tells_all() -> None:
    told = page().replace(r"\-", "-")
    for name, command in COMMANDS.items():
        assert f".SS shareproof {name}\n" in told
        for option in command.params:
            assert all(each in told for each in option.opts)
    for name, words in LINES:
        assert f"    shareproof {name} {words}".rstrip() in told
    assert all(name in told and meaning in told for name, meaning in SETTINGS.items())


@pytest.mark.skipif(not VARIABLES.exists(), reason="an installation has no documents")
def test_the_documents_have_the_same_variables() -> None:
    rows = re.findall(r"^\| `(SHAREPROOF_\w+)` \| (.*) \|$", VARIABLES.read_text(), re.MULTILINE)
    assert {name: meaning.replace("`", "") for name, meaning in rows} == SETTINGS
