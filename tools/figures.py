"""Measure the size and form of the source tree: ``python -m tools.figures [--json] [FOLDER]``.

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
import sys
import tokenize
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HOME = Path(__file__).parents[1]
KINDS = {
    ".py": "Python",
    ".json": "JSON",
    ".jsonl": "JSON Lines",
    ".toml": "TOML",
    ".md": "Markdown",
    ".java": "Java",
    ".sql": "SQL",
    ".lock": "lock files",
    ".sum": "lock files",
}
LOCKS = {"lock.txt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median, the 90th percentile and the largest of some lengths, in lines."""

    median: int
    p90: int
    longest: int

    def __str__(self) -> str:
        return f"{self.median} / {self.p90} / {self.longest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One Python file: its length, and what its lines are, in lines."""

    path: Path
    lines: int
    code: int
    docstrings: int
    comments: int
    functions: tuple[int, ...]
    classes: int


def tracked(root: Path) -> list[Path]:
    asked = ["git", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(asked, capture_output=True, check=True, text=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (root / name).is_file()]


def spread(lengths: Sequence[int]) -> Spread:
    if not lengths:
        return Spread(median=0, p90=0, longest=0)
    ordered = sorted(lengths)
    count = len(ordered)
    return Spread(
        median=int(statistics.median(ordered)), p90=ordered[count * 9 // 10], longest=ordered[-1]
    )


def measured(root: Path, path: Path) -> Source:
    """Measure one Python file."""
    text = (root / path).read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(
        (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
        for node in nodes
        if isinstance(node, scopes) and ast.get_docstring(node, clean=False) is not None
    )
    comments = sum(
        token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )
    lines = text.splitlines()
    blank = sum(not line.strip() for line in lines)
    return Source(
        path=path,
        lines=len(lines),
        code=len(lines) - blank - docstrings - comments,
        docstrings=docstrings,
        comments=comments,
        functions=tuple(
            (node.end_lineno or 0) - node.lineno + 1
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
    )


def kind(path: Path) -> str:
    return "lock files" if path.name in LOCKS else KINDS.get(path.suffix, "other")


def kinds(root: Path, paths: Sequence[Path]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in paths:
        data = (root / path).read_bytes()
        if b"\0" not in data:
            counts[kind(path)] += data.count(b"\n")
    return counts


def by_folder(sources: Sequence[Source]) -> dict[str, list[Source]]:
    folders: dict[str, list[Source]] = {}
    for one in sources:
        top = one.path.parts[0] if len(one.path.parts) > 1 else "."
        folders.setdefault(top, []).append(one)
    return dict(sorted(folders.items(), key=lambda item: -sum(one.lines for one in item[1])))


def tables(counts: Counter[str], files: int, sources: Sequence[Source]) -> str:
    """Return the figures as Markdown."""
    total = sum(counts.values())
    by_kind = ", ".join(f"{name} {lines:,}" for name, lines in counts.most_common())
    rows = [
        "| folder (Python) | files / lines | file median / p90 / max "
        "| function median / p90 / max |",
        "|---|---|---|---|",
    ]
    for folder, found in by_folder(sources).items():
        lengths = [one.lines for one in found]
        functions = [length for one in found for length in one.functions]
        rows.append(
            f"| {folder} | {len(found)} / {sum(lengths):,} | {spread(lengths)} "
            f"| {spread(functions)} |"
        )
    code, docstrings, comments = (
        sum(getattr(one, name) for one in sources) for name in ("code", "docstrings", "comments")
    )
    classes = sum(one.classes for one in sources)
    closing = (
        f"Python: {len(sources)} files, {classes} classes; lines of code {code:,}, of docstrings "
        f"{docstrings:,}, of comments {comments:,}."
    )
    return "\n".join([f"{total:,} lines in {files:,} files: {by_kind}.", "", *rows, "", closing])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=HOME, help="the root of a git tree")
    parser.add_argument("--json", action="store_true", help="print each Python file as JSON")
    asked = parser.parse_args(arguments)
    paths = tracked(asked.root)
    sources = [measured(asked.root, path) for path in paths if path.suffix == ".py"]
    if asked.json:
        print(json.dumps([asdict(one) for one in sources], default=str))
    else:
        print(tables(kinds(asked.root, paths), len(paths), sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
