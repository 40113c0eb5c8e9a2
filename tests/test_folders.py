"""Every folder says in its first sentence what belongs there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = (
    *("benchmarks", "chaos", "evidence", "fixtures", "reports", "shareproof", "spec", "suites"),
    *("tests", "tools"),
)
UNTRACKED = {"__pycache__", "target", "node_modules"}


def folders() -> Iterator[Path]:
    """Yield every folder of the sources, but for those inside a folder of another language."""
    waiting = [ROOT / name for name in ROOTS]
    while waiting:
        folder = waiting.pop()
        yield folder
        if (folder / "__init__.py").exists():
            waiting += [
                each
                for each in folder.iterdir()
                if each.is_dir() and each.name not in UNTRACKED and any(each.glob("*.*"))
            ]


def sentence(folder: Path) -> str:
    """Return the first paragraph of what a folder says of itself."""
    package, readme = folder / "__init__.py", folder / "README.md"
    if package.exists():
        text = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    else:
        text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    return " ".join(text.partition("\n\n")[0].split())


@pytest.mark.parametrize("folder", sorted(folders()), ids=lambda each: str(each.relative_to(ROOT)))
def test_a_folder_says_what_belongs_there(folder: Path) -> None:
    said = sentence(folder)
    assert said.endswith("."), f"{folder}: {said!r} is no sentence"
    assert len(said) > 20
