"""The figures of the source tree are counted right; see tools/figures.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tools.figures import Spread, by_folder, kind, measured, spread, tables

SOURCE = '''"""A docstring
of two lines."""

# a comment

class Thing:
    """One line."""

    def one(self) -> int:
        return 1  # no line of its own


async def two() -> str:
    """Another."""
    return "# no comment"
'''


def test_a_file_is_measured(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SOURCE, encoding="utf-8")

    found = measured(tmp_path, Path("x.py"))

    assert (found.lines, found.docstrings, found.comments, found.code) == (15, 4, 1, 5)
    assert (sorted(found.functions), found.classes) == ([2, 3], 1)


def test_quantiles() -> None:
    assert spread([]) == Spread(median=0, p90=0, longest=0)
    assert str(spread(range(1, 11))) == "5 / 10 / 10"


def test_kinds_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text(SOURCE, encoding="utf-8")
    found = measured(tmp_path, Path("a/x.py"))

    assert [kind(Path(name)) for name in ("lock.txt", "a.md", "b")] == [
        "lock files",
        "Markdown",
        "other",
    ]
    assert list(by_folder([found])) == ["a"]
    assert "| a | 1 / 15 | 15 / 15 / 15 |" in tables(Counter(Python=15), 1, [found])
