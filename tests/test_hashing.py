"""Hashes of code: what a check does counts, and how it is written does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.campaign.source import Source

CHECK = '''
from __future__ import annotations
import pytest
from suites.helpers import LIMIT, Consumer, settle

@pytest.mark.requirement("ACK-01")
async def test_x(share: Consumer, judge):
    """ACK-01: It holds."""
    got = await share.fetch(LIMIT)  # some records
    judge.equal("what it got", settle(got), [1, 2])
'''
HELPERS = '''
LIMIT = 3

def settle(records):
    """Settle them."""
    return [each.offset for each in records]

def unused():
    return 1

class Consumer:
    """A consumer."""

    async def fetch(self, most):
        return self.inner.fetch(most=most)

    def close(self):
        return unused()
'''


def digest(folder: Path, check: str = CHECK, helpers: str = HELPERS, *, shape: bool = False) -> str:
    """Return the hash of the check, where it and its helpers are as given."""
    (folder / "suites").mkdir(exist_ok=True)
    (folder / "suites" / "test_x.py").write_text(check, encoding="utf-8")
    (folder / "suites" / "helpers.py").write_text(helpers, encoding="utf-8")
    source = Source(folder, [folder / "suites"])
    return source.digest(("suites.test_x", "test_x"), shape=shape)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # some records", ""),
        (
            "    got = await share.fetch(LIMIT)",
            "    got = (\n        await share.fetch(LIMIT)\n    )",
        ),
        ("It holds.", "It does hold."),
        ("what it got", "what came of it"),
        ("got", "caught"),
        ("share", "consumer"),
        (": Consumer", ": Consumer | None"),
        ('"ACK-01")', '"ACK-01", "ACK-02")'),
        ("suites.helpers import LIMIT", "suites.helpers import LIMIT as MOST, LIMIT"),
    ],
)
def test_writing_does_not_count(tmp_path: Path, old: str, new: str) -> None:
    """Comments, format, docstrings, messages, local names, annotations and labels do not count."""
    assert old in CHECK
    assert digest(tmp_path, CHECK.replace(old, new)) == digest(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [("[1, 2]", "[1, 3]"), ("equal", "holds"), ("settle(got)", "got"), ("(LIMIT)", "(4)")],
)
def test_what_a_check_does_counts(tmp_path: Path, old: str, new: str) -> None:
    """Constants, methods and calls count."""
    assert digest(tmp_path, CHECK.replace(old, new)) != digest(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"), [("= 3", "= 4"), ("each.offset", "each.count"), ("most=most", "most=most + 1")]
)
def test_helpers_that_are_reached_count(tmp_path: Path, old: str, new: str) -> None:
    """Constants, functions and methods that a check uses count wherever they are."""
    assert digest(tmp_path, helpers=HELPERS.replace(old, new)) != digest(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 1", "return 2"),
        ("return unused()", "return 3"),
        ("each", "one"),
        ("    def close", "    def reopen(self):\n        return 1\n\n    def close"),
    ],
)
def test_other_helpers_do_not_count(tmp_path: Path, old: str, new: str) -> None:
    """What a check does not use may change: other functions, and other methods of a class."""
    assert digest(tmp_path, helpers=HELPERS.replace(old, new)) == digest(tmp_path)


def test_renamed_helpers_do_not_count(tmp_path: Path) -> None:
    """A helper function, a class or a constant may have another name."""
    before = digest(tmp_path)
    for old, new in (("settle", "acknowledge"), ("Consumer", "Member"), ("LIMIT", "MOST")):
        assert digest(tmp_path, CHECK.replace(old, new), HELPERS.replace(old, new)) == before


def test_renamed_methods_keep_the_shape(tmp_path: Path) -> None:
    """A method of another name changes the hash, and not the shape; a constant changes both."""
    check, helpers = CHECK.replace("fetch", "poll"), HELPERS.replace("fetch", "poll")
    assert digest(tmp_path, check, helpers) != digest(tmp_path)
    assert digest(tmp_path, check, helpers, shape=True) == digest(tmp_path, shape=True)
    other = CHECK.replace("[1, 2]", "[1, 3]")
    assert digest(tmp_path, other, shape=True) != digest(tmp_path, shape=True)
