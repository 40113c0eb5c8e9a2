"""Fixes of findings: their documents, and that a release takes them or says it does not."""

import re
from pathlib import Path

import pytest

from fixtures.mutants import ALL, FIX, FIXES, fixes_of
from fixtures.targets import UsageFault, open_target, started
from spec.rule import load_rules
from spec.verdict import EnvironmentFault
from tests.shell import judged

PAGES = Path(__file__).parents[1] / "docs/findings"


def test_each_fix_belongs_to_a_finding_that_tells_cause_and_fix() -> None:
    assert len(FIXES) > 25
    assert {rule for fix in FIXES.values() for rule in fix.rules} <= load_rules().keys()
    for name, fix in FIXES.items():
        (page,) = PAGES.glob(f"{name}-*.md")
        text = page.read_text(encoding="utf-8")
        missing = [part for part in ("**Cause**", "**Fix**", FIX + name) if part not in text]
        assert (page.name, missing) == (page.name, [])
        assert (page.name, [rule for rule in fix.rules if rule not in text]) == (page.name, [])


def test_the_table_of_fixes_is_that_of_the_agent() -> None:
    rows = re.findall(
        r"^\| \[(\d+)\]\(\1-[a-z0-9-]+\.md\) \| ([^|]+) \| .* \| ([^|]+) \|[^|]*\|$",
        (PAGES / "fixes.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    expected = [(one.name, one.sentence, ", ".join(one.rules)) for one in FIXES.values()]
    assert rows == expected
    pages = [page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")]
    assert {name for text in pages for name in re.findall(r"fix-(\d+)", text)} == set(FIXES)


@pytest.mark.parametrize(
    ("name", "findings"),
    [
        ("fix-051", ("051",)),
        ("fix-051+fix-028", ("051", "028")),
        ("fix-all", (ALL,)),
        ("fix-051+lock-a-third", ()),
        ("fix-999", ()),
        ("lock-a-third", ()),
    ],
)
def test_fixes_are_joined_by_a_plus(name: str, findings: tuple[str, ...]) -> None:
    assert fixes_of(name) == findings


def test_a_fix_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageFault, match=r"'fix-52' is no fix of Kafka: .*fix-052"):
        open_target("kafka:4.4.0:fix-051+fix-52")


def test_a_fixed_release_keeps_the_rule_that_it_breaks(tmp_path: Path) -> None:
    done, found = judged(tmp_path, "--target", "kafka:4.4.0:fix-059+fix-107", "--only", "COO-25")
    assert found["COO-25"][0] == "pass", done.stdout + done.stderr


def test_a_fix_that_does_not_fit_a_release_is_an_environment_fault() -> None:
    """No broker runs as it was published under the name of a fix."""
    reason = r"The fixes, which were made for Kafka 4\.4\.0, for 4\.1\.2 cannot be built"
    with pytest.raises(EnvironmentFault, match=reason), started(open_target("kafka:4.1.2:fix-051")):
        pass
