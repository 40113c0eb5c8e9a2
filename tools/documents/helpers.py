"""The table of helpers in CONTRIBUTING.md: the modules that checks share, and their public names.

``python -m tools.documents.helpers`` renews it. The sentence of a module is the first paragraph of
its docstring; names are those of its public functions, classes and fixtures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
FOLDERS = ("suites", "suites/broker", "suites/client")
BEGIN, END = "<!-- helpers -->\n", "<!-- end of helpers -->\n"
MOST = 12


def modules() -> Iterator[Path]:
    """Yield the modules that checks import: no checks, and no package without content."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.py")):
            if not path.name.startswith(("test_", "__")):
                yield path


def described(path: Path) -> tuple[str, list[str]]:
    """Return the first paragraph of a module's docstring on one line, and its public names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    sentence = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = [one.name for one in tree.body if isinstance(one, kinds) and one.name[0] != "_"]
    return sentence, names


def table() -> str:
    rows = ["| module | purpose | names |", "|---|---|---|"]
    for path in modules():
        sentence, names = described(path)
        shown = ", ".join(f"`{name}`" for name in names[:MOST])
        more = ", …" if len(names) > MOST else ""
        rows.append(f"| `{path.relative_to(ROOT)}` | {sentence} | {shown}{more} |")
    return "\n".join(rows) + "\n"


def renewed(page: str) -> str:
    """Return CONTRIBUTING.md with the table of today's helpers."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{table()}{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
