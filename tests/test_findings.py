"""The programs that reproduce findings: each starts, and pages name only those there are."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from tests.fake import ROOT
from tools.findings.__main__ import PROGRAMS, Program, main

PAGES = ROOT / "docs" / "findings"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_each_program_can_be_started(program: Program) -> None:
    """A program's module has a coroutine ``play``, and its finding has a page."""
    module = import_module(f"tools.findings.{program.module}")

    assert inspect.iscoroutinefunction(module.play)
    assert list(PAGES.glob(f"{program.finding}-*.md"))


def test_pages_name_programs_that_are_there() -> None:
    """What a finding tells to run is a program."""
    named = {
        name
        for page in PAGES.rglob("*.md")
        for name in re.findall(r"tools\.findings\s+(\d[\w-]*)", page.read_text(encoding="utf-8"))
    }
    known = {name for program in PROGRAMS for name in (program.name, program.finding)}

    assert named - known == set()
    assert len(named) > 10


def test_unknown_program_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no program has ends with one sentence and exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(["999"])

    assert ended.value.code == 2
    assert "999: no such program" in capsys.readouterr().err
