"""Measure the size and form of the source tree: ``python -m tools.figures [--json] [ROOT]``.

The tables are those of an audit: lines by kind of file, and for each top-level folder its Python
files, their lengths, and the lengths of their functions. Only files that git tracks count.
A function is as long as the lines from its ``def`` to the end of its body, with its docstring.
"""

import argparse
import ast
import io
import json
import statistics
import subprocess
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1]
KINDS = {
    ".py": "Python", ".json": "JSON", ".jsonl": "JSON Lines", ".toml": "TOML", ".sql": "SQL",
    ".md": "Markdown", ".java": "Java", ".lock": "lock files", ".sum": "lock files",
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def length(node: Any) -> int:
    return int(node.end_lineno - node.lineno + 1)


def spread(lengths: Sequence[int]) -> str:
    ordered = sorted(lengths) or [0]
    median, ninth = int(statistics.median(ordered)), ordered[len(ordered) * 9 // 10]
    return f"{median} / {ninth} / {ordered[-1]}"


def measured(root: Path, path: Path) -> dict[str, Any]:
    text = (root / path).read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    scopes = (ast.Module, ast.ClassDef, *FUNCTIONS)
    owners = [one for one in nodes if isinstance(one, scopes)]
    docstrings = sum(length(one.body[0]) for one in owners if ast.get_docstring(one) is not None)
    comments = sum(
        token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )
    lines = text.splitlines()
    blank = sum(not line.strip() for line in lines)
    return {
        "path": str(path),
        "lines": len(lines),
        "code": len(lines) - blank - docstrings - comments,
        "docstrings": docstrings,
        "comments": comments,
        "functions": [length(one) for one in nodes if isinstance(one, FUNCTIONS)],
        "classes": sum(isinstance(one, ast.ClassDef) for one in nodes),
    }


def table(sources: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        "| folder (Python) | files / lines | file median / p90 / max "
        "| function median / p90 / max |",
        "|---|---|---|---|",
    ]
    folders: dict[str, list[Mapping[str, Any]]] = {}
    for one in sources:
        top, _, inside = one["path"].partition("/")
        folders.setdefault(top if inside else ".", []).append(one)
    for folder, found in sorted(
        folders.items(), key=lambda item: -sum(o["lines"] for o in item[1])
    ):
        lengths = [one["lines"] for one in found]
        functions = [each for one in found for each in one["functions"]]
        size = f"{len(found)} / {sum(lengths):,}"
        rows.append(f"| {folder} | {size} | {spread(lengths)} | {spread(functions)} |")
    total = Counter[str]()
    for one in sources:
        total.update({k: one[k] for k in ("code", "docstrings", "comments", "classes")})
    closing = (
        f"Python: {len(sources)} files, {total['classes']} classes; lines of code "
        f"{total['code']:,}, of docstrings {total['docstrings']:,}, of comments "
        f"{total['comments']:,}."
    )
    return [*rows, "", closing]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=HOME, help="the root of a git tree")
    parser.add_argument("--json", action="store_true", help="print each Python file as JSON")
    options = parser.parse_args()
    listed = subprocess.check_output(["git", "-C", options.root, "ls-files", "-z"], text=True)
    paths = [Path(name) for name in listed.split("\0") if name and (options.root / name).is_file()]
    sources = [measured(options.root, path) for path in paths if path.suffix == ".py"]
    if options.json:
        print(json.dumps(sources))
        return
    counts: Counter[str] = Counter()
    for path in paths:
        data = (options.root / path).read_bytes()
        if b"\0" not in data:  # else it is no text
            kind = "lock files" if path.name == "lock.txt" else KINDS.get(path.suffix, "other")
            counts[kind] += data.count(b"\n")
    by_kind = ", ".join(f"{name} {lines:,}" for name, lines in counts.most_common())
    print(f"{sum(counts.values()):,} lines in {len(paths):,} files: {by_kind}.\n")
    print("\n".join(table(sources)))


if __name__ == "__main__":
    main()
