"""The recipes for CI: in a form that GitHub and GitLab take, with commands that ours understand."""

from __future__ import annotations

import configparser
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import check_jsonschema
import pytest
import typer
from click.testing import CliRunner
from ruamel.yaml import YAML

from shareproof.cli import app
from suites.self.fake import HOUSE

PAGE, ACTION = HOUSE / "docs" / "ci.md", HOUSE / ".github" / "actions" / "client" / "action.yml"
OURS = "OWNER/shareproof/.github/actions/client@main"
SCHEMAS = {".github/workflows": "vendor.github-workflows", ".gitlab-ci.yml": "vendor.gitlab-ci"}
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installation has no documents")


def recipes() -> list[tuple[str, str]]:
    """Return the files that the page shows, each with the schema of its kind."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    blocks = re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE)
    return [
        (schema, textwrap.dedent(block))
        for block in blocks
        for where, schema in SCHEMAS.items()
        if block.startswith(f"    # {where}")
    ]


def complaints(schema: str, file: Path) -> str:
    """Return what a schema has against a file; nothing if it is right."""
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, str(file)])
    return done.output if done.exit_code else ""


@pytest.mark.parametrize(("schema", "text"), recipes())
def test_the_schema_accepts_a_recipe(schema: str, text: str, tmp_path: Path) -> None:
    """A recipe has the form that its house asks for, and not with another word for its steps."""
    file = tmp_path / "recipe.yml"
    file.write_text(text, encoding="utf-8")
    assert complaints(schema, file) == ""
    file.write_text(re.sub(r"(runs-on|script):", r"wrong-\1:", text), encoding="utf-8")
    assert "wrong-" in complaints(schema, file)


def test_the_schema_accepts_the_action() -> None:
    """The composite action has the form that GitHub asks for."""
    assert complaints("vendor.github-actions", ACTION) == ""


def test_all_recipes_are_found() -> None:
    """The page has recipes for both, of a certificate and of a night."""
    kinds = [schema for schema, _ in recipes()]
    assert [kinds.count(schema) for schema in SCHEMAS.values()] == [3, 2]


def lines() -> list[str]:
    """Return each command of ours that the recipes and the action run."""
    texts = [text for _, text in recipes()]
    texts += [ACTION.read_text(encoding="utf-8")] if ACTION.exists() else []
    joined = "\n".join(texts).replace('/shareproof"', "/shareproof").replace("\\\n", " ")
    return re.findall(r"\b(?:shareproof (?:broker|client|report)|tox) .*-.*", joined)


@pytest.mark.parametrize("line", lines())
def test_our_commands_are_understood(line: str) -> None:
    """Every command of a recipe is one of ours, with options that it knows."""
    program, *words = shlex.split(line)
    if program == "tox":
        tox = configparser.ConfigParser()
        tox.read(HOUSE / "tox.ini")
        assert f"testenv:{words[words.index('-e') + 1]}" in tox
    else:
        assert COMMANDS[words[0]].make_context(words[0], words[1:]).params


def test_the_action_is_given_what_it_knows() -> None:
    """The recipe for a client gives the action inputs that it has, and all that it must have."""
    inputs = YAML(typ="safe").load(ACTION)["inputs"]
    (given,) = [
        step["with"]
        for schema, text in recipes()
        if schema == SCHEMAS[".github/workflows"]
        for job in YAML(typ="safe").load(text)["jobs"].values()
        for step in job["steps"]
        if step.get("uses") == OURS
    ]
    assert {name for name, about in inputs.items() if about.get("required")} <= set(given)
    assert set(given) <= set(inputs)
