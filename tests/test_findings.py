"""The programs that reproduce findings: each starts, and pages name only those there are."""

from __future__ import annotations

import inspect
import re

import pytest

from spec.requirement import load_requirements
from tests.fake import ROOT
from tools.findings.__main__ import PROGRAMS, Program, main

PAGES = ROOT / "docs" / "findings"
RANKS = ("loss", "duplicate", "stall", "overload", "wrong response", "cosmetic")
_RANK = re.compile(
    r"\*\*Rank\*\* ([a-z ]+?)(, demoted: .*?)?\. \*\*Rules?\*\* (.*?)\. \*\*Seen on\*\*"
)
_LEVEL = re.compile(r"(?<!to )((?:[A-Z]{3}-\d+, )*[A-Z]{3}-\d+) \((MUST|SHOULD|MAY)\)")


def heads() -> dict[str, re.Match[str]]:
    """Return the rank, what demotes it, and the rules of each finding that is not merged."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES.glob("[0-9]*.md")}
    joined = {name: " ".join(text.split("\n\n")[1].split()) for name, text in texts.items()}
    alone = {name: head for name, head in joined.items() if not head.startswith("Merged into [")}
    return {name: found for name, head in alone.items() if (found := _RANK.match(head))}


def test_every_finding_is_ranked() -> None:
    rules = load_requirements()
    wrong = [
        (name, rule, level)
        for name, head in heads().items()
        for ids, level in _LEVEL.findall(head[3])
        for rule in ids.split(", ")
        if rules[rule].level.value != level
    ]
    merged = [page for page in PAGES.glob("[0-9]*.md") if page.name not in heads()]
    numbers = [page.name[:3] for page in PAGES.glob("[0-9]*.md")]

    assert wrong == []
    assert len(numbers) == len(set(numbers))
    assert {head[1] for head in heads().values()} <= set(RANKS)
    assert all("Merged into [" in page.read_text(encoding="utf-8") for page in merged)


def test_the_list_of_findings_is_sorted_by_rank() -> None:
    overview, _, demoted = (PAGES / "README.md").read_text(encoding="utf-8").partition("## Demoted")
    shown = re.findall(r"^\| \[\d+\]\((.*?)\) \| (.*?) \| .*? \| (.*?) \|", overview, re.MULTILINE)
    weak = re.findall(r"^\| \[\d+\]\((.*?)\) \| .*? \| (.*?) \| (.*?) \|", demoted, re.MULTILINE)

    assert {name: (rank, rules) for name, rank, rules in (*shown, *weak)} == {
        name: (head[1], head[3]) for name, head in heads().items()
    }
    assert {name for name, _, _ in weak} == {name for name, head in heads().items() if head[2]}
    for rows in (shown, weak):
        ranks = [RANKS.index(rank) for _, rank, _ in rows]
        assert ranks == sorted(ranks)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_each_program_can_be_started(program: Program) -> None:
    assert inspect.iscoroutinefunction(program.play)
    assert list(PAGES.glob(f"{program.finding}-*.md"))


def test_pages_name_programs_that_are_there() -> None:
    named = {
        name
        for page in PAGES.rglob("*.md")
        for name in re.findall(r"tools\.findings\s+(\d[\w-]*)", page.read_text(encoding="utf-8"))
    }
    known = {name for program in PROGRAMS for name in (program.name, program.finding)}

    assert named - known == set()
    assert len(named) > 10


def test_unknown_program_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["999"])

    assert ended.value.code == 2
    assert "999: no such program" in capsys.readouterr().err
