"""The layers and the table of docs/architecture.md, filled in when the documentation is built.

The layers are those of the import contract in ``pyproject.toml``; the table takes its sentences
from the first line of each package's docstring.
"""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def layers() -> list[list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        one
        for one in project["tool"]["importlinter"]["contracts"]
        if one["type"] == "layers" and "spec" in one["layers"]
    )
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def sentence(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    return " ".join((text or "").partition("\n\n")[0].split())


def drawn() -> str:
    rows = [" | ".join(f"{name}/" for name in row) for row in layers()]
    wide = max(map(len, rows))
    return "".join(f"    {row:^{wide}}".rstrip() + "\n" for row in rows)


def table() -> str:
    rows = ["| folder | what it holds |", "|---|---|"]
    for folder in (name for layer in layers() for name in layer):
        rows.append(f"| **`{folder}/`** | {sentence(ROOT / folder)} |")
        packages = sorted(path.parent for path in (ROOT / folder).glob("*/__init__.py"))
        sentences = {one.name: sentence(one) for one in packages}
        rows += [f"| `{folder}/{name}/` | {text} |" for name, text in sentences.items() if text]
    return "\n".join(rows) + "\n"
