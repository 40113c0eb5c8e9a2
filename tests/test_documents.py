"""What documents say is true: commands, modules, pictures, examples, and findings."""

import configparser
import inspect
import re
import shlex
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import check_jsonschema
import pytest
import typer
from click.testing import CliRunner
from ruamel.yaml import YAML

from shareproof.cli import app
from shareproof.findings.programs import PROGRAMS, Program, main
from spec.catalogue import load_findings, rank_of
from spec.rule import load_rules
from tests.fake import ROOT
from tools.documents import architecture
from tools.matrix import index

GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ACTION = ROOT / ".github" / "actions" / "client" / "action.yml"
LARGEST = 150_000  # bytes that a picture may have
FINDINGS = ROOT / "docs" / "findings"
HELPERS = ("suites", "suites/broker", "suites/client")
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
_OURS = re.compile(r"^ {4}(?:.*(?: |/bin/))?(shareproof\"? +[a-z].*)$", re.MULTILINE)
_TOX = re.compile(r"\btox (?:-c \w+ )?-e ([\w,-]+)")
_MODULE = re.compile(r"\bpython3? -m ((?:suites|benchmarks|shareproof|tests|tools)[\w.]*\w)")

pytestmark = pytest.mark.skipif(not GUIDES[0].exists(), reason="an installation has no documents")


def text(file: Path) -> str:
    return file.read_text(encoding="utf-8").replace("\\\n", " ") if file.exists() else ""


# --- What people type -----------------------------------------------------------------------------


def commands(written: str) -> list[str]:
    found = (line.replace('shareproof"', "shareproof") for line in _OURS.findall(written))
    return [re.split(r" (?:\||&&|>) ", line)[0] for line in found]


def shown_commands() -> list[Any]:
    return [
        pytest.param(line, id=f"{file.relative_to(ROOT)}: {line}")
        for file in (*GUIDES, ACTION)
        for line in commands(text(file))
    ]


@pytest.mark.parametrize("line", shown_commands())
def test_commands_of_documents_are_understood(line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    assert COMMANDS[name].make_context(name, words).params


def test_environments_and_modules_of_documents_exist() -> None:
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    written = "\n".join(map(text, GUIDES))
    assert len(shown_commands()) > 100
    environments = {one for found in _TOX.findall(written) for one in found.split(",")}
    assert {one for one in environments if f"testenv:{one}" not in tox} == set()
    modules = set(_MODULE.findall(written))
    assert {m for m in modules if not (find_spec(m) or find_spec(f"{m}.__main__"))} == set()
    assert min(len(environments), len(modules)) > 5
    assert [str(page.relative_to(ROOT)) for page in GUIDES if "PYTHONPATH" in text(page)] == []


# --- What is generated ----------------------------------------------------------------------------


def test_the_architecture_is_that_of_today_and_says_what_everything_is_for() -> None:
    rows = architecture.table().splitlines()[2:]
    assert [row for row in rows if not row.split("|")[2].strip().endswith(".")] == []
    modules = [path for folder in HELPERS for path in (ROOT / folder).glob("*.py")]
    assert [path.name for path in modules if not path.read_text().startswith('"""')] == []


def test_pictures_of_documents_are_there_and_small() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in GUIDES
        for link in re.findall(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)", text(page))
    }
    assert len(shown) > 2
    assert [str(file) for file in shown if not file.is_file()] == []
    assert [str(file) for file in shown if file.stat().st_size > LARGEST] == []


def examples() -> list[Any]:
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


# --- Recipes of CI and issue forms ----------------------------------------------------------------

SCHEMAS = {".github/workflows": "vendor.github-workflows", ".gitlab-ci.yml": "vendor.gitlab-ci"}


def recipes() -> list[tuple[str, str]]:
    return [
        (schema, textwrap.dedent(block))
        for block in re.findall(r"(?:^ {4}.*\n)+", text(ROOT / "docs" / "ci.md"), re.MULTILINE)
        for where, schema in SCHEMAS.items()
        if block.startswith(f"    # {where}")
    ]


def complaints(schema: str, file: Path) -> str:
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, str(file)])
    return done.output if done.exit_code else ""


@pytest.mark.parametrize(("schema", "recipe"), recipes())
def test_the_schema_accepts_a_recipe(schema: str, recipe: str, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yml"
    file.write_text(recipe, encoding="utf-8")
    assert complaints(schema, file) == ""
    file.write_text(re.sub(r"(runs-on|script):", r"wrong-\1:", recipe), encoding="utf-8")
    assert "wrong-" in complaints(schema, file)


def test_the_schema_accepts_the_action_and_the_issue_forms() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = sorted(set(folder.glob("*.yml")) - {folder / "config.yml"})
    assert complaints("vendor.github-actions", ACTION) == ""
    assert [complaints("vendor.github-issue-forms", form) for form in forms] == [""] * 4
    assert complaints("vendor.github-issue-config", folder / "config.yml") == ""


def test_the_action_is_given_what_it_knows() -> None:
    kinds = [schema for schema, _ in recipes()]
    assert [kinds.count(schema) for schema in SCHEMAS.values()] == [3, 2]
    inputs = YAML(typ="safe").load(ACTION)["inputs"]
    (given,) = [
        step["with"]
        for schema, recipe in recipes()
        if schema == SCHEMAS[".github/workflows"]
        for job in YAML(typ="safe").load(recipe)["jobs"].values()
        for step in job["steps"]
        if step.get("uses") == "OWNER/shareproof/.github/actions/client@main"
    ]
    assert {name for name, about in inputs.items() if about.get("required")} <= set(given)
    assert set(given) <= set(inputs)


# --- Findings -------------------------------------------------------------------------------------

_RANK = re.compile(
    r"\*\*Rank\*\* ([a-z ]+?)(, demoted: .*?)?\. \*\*Rules?\*\* (.*?)\. \*\*Seen on\*\*"
)
_LEVEL = re.compile(r"(?<!to )((?:[A-Z]{3}-\d+, )*[A-Z]{3}-\d+) \((MUST|SHOULD|MAY)\)")


def heads() -> dict[str, re.Match[str]]:
    texts = {file.name: text(file) for file in FINDINGS.glob("[0-9]*.md")}
    joined = {name: " ".join(page.split("\n\n")[1].split()) for name, page in texts.items()}
    alone = {name: head for name, head in joined.items() if not head.startswith("Merged into [")}
    return {name: found for name, head in alone.items() if (found := _RANK.match(head))}


def test_every_finding_is_ranked() -> None:
    rules = load_rules()
    wrong = [
        (name, rule, level)
        for name, head in heads().items()
        for ids, level in _LEVEL.findall(head[3])
        for rule in ids.split(", ")
        if rules[rule].level.value != level
    ]
    pages = list(FINDINGS.glob("[0-9]*.md"))
    assert wrong == []
    assert len({page.name[:3] for page in pages}) == len(pages)
    ranks = {name[:-3]: (head[1], bool(head[2])) for name, head in heads().items()}
    assert ranks == {page: (one.rank, bool(one.demoted)) for page, one in load_findings().items()}
    assert all("Merged into [" in text(page) for page in pages if page.name not in heads())
    assert (FINDINGS / "README.md").read_text(encoding="utf-8").endswith(index())
    assert rank_of("no-such-finding") == rank_of("") == ""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_each_program_of_a_finding_can_be_started(program: Program) -> None:
    assert inspect.iscoroutinefunction(program.play)
    assert list(FINDINGS.glob(f"{program.finding}-*.md"))


def test_pages_name_programs_that_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    named = {
        name
        for page in FINDINGS.rglob("*.md")
        for name in re.findall(
            r"shareproof\.findings\s+(\d[\w-]*)", page.read_text(encoding="utf-8")
        )
    }
    assert named <= {name for program in PROGRAMS for name in (program.name, program.finding)}
    assert len(named) > 8
    with pytest.raises(SystemExit, match="2"):
        main(["999"])
    assert "999: no such program" in capsys.readouterr().err
