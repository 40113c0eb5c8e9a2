"""CI recipes and issue forms have the form that GitHub and GitLab accept."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import check_jsonschema
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from tests.fake import ROOT

PAGE, ACTION = ROOT / "docs" / "ci.md", ROOT / ".github" / "actions" / "client" / "action.yml"
OURS = "OWNER/shareproof/.github/actions/client@main"
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
SCHEMAS = {".github/workflows": "vendor.github-workflows", ".gitlab-ci.yml": "vendor.gitlab-ci"}

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
    file = tmp_path / "recipe.yml"
    file.write_text(text, encoding="utf-8")
    assert complaints(schema, file) == ""
    file.write_text(re.sub(r"(runs-on|script):", r"wrong-\1:", text), encoding="utf-8")
    assert "wrong-" in complaints(schema, file)


def test_the_schema_accepts_the_action() -> None:
    assert complaints("vendor.github-actions", ACTION) == ""


def test_the_schema_accepts_the_issue_forms() -> None:
    forms = sorted(set(FORMS.glob("*.yml")) - {FORMS / "config.yml"})
    assert [complaints("vendor.github-issue-forms", form) for form in forms] == [""] * 4
    assert complaints("vendor.github-issue-config", FORMS / "config.yml") == ""


def test_all_recipes_are_found() -> None:
    kinds = [schema for schema, _ in recipes()]
    assert [kinds.count(schema) for schema in SCHEMAS.values()] == [3, 2]


def test_the_action_is_given_what_it_knows() -> None:
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
