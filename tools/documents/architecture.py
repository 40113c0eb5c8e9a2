"""The picture and the table of docs/architecture.md, made from the imports there are.

``python -m tools.documents.architecture`` writes the picture, and the table is filled in when the
documentation is built. The picture has one row for each layer of
the import contract in ``pyproject.toml`` and one arrow for each pair of folders of which one
imports the other. The table takes its sentences from the first line of each package's docstring.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
WIDTH, LEFT, RIGHT = 900, 150, 720
HIGH, APART = 58, 34
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c2128}.name{font-weight:700}"
    ".parts{font-size:11px;fill:#57606a}rect{fill:#f6f8fa;stroke:#8c959f}"
    "path{fill:none;stroke:#57606a}.far{stroke:#a8b1bb}"
)


def layers() -> list[list[str]]:
    """Return the folders of each layer of the import contract, the highest layer first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        one
        for one in project["tool"]["importlinter"]["contracts"]
        if one["type"] == "layers" and "spec" in one["layers"]
    )
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def imports(folders: Sequence[str]) -> set[tuple[str, str]]:
    import grimp  # only the picture needs it, and it is no part of what builds the pages

    sys.path.insert(0, str(ROOT))
    try:
        graph = grimp.build_graph(*folders, cache_dir=None)
    finally:
        sys.path.remove(str(ROOT))
    found = {
        (importer.partition(".")[0], imported.partition(".")[0])
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    }
    return {(importer, imported) for importer, imported in found if importer != imported}


def packages(folder: str) -> list[str]:
    return sorted(path.parent.name for path in (ROOT / folder).glob("*/__init__.py"))


def sentence(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    return " ".join((text or "").partition("\n\n")[0].split())


def table() -> str:
    rows = ["| folder | what it holds |", "|---|---|"]
    for folder in (name for layer in layers() for name in layer):
        rows.append(f"| **`{folder}/`** | {sentence(ROOT / folder)} |")
        rows += [
            f"| `{folder}/{name}/` | {sentence(ROOT / folder / name)} |"
            for name in packages(folder)
            if sentence(ROOT / folder / name)
        ]
    return "\n".join(rows) + "\n"


def picture() -> str:
    rows = layers()
    height = len(rows) * (HIGH + APART) - APART + 40
    boxes = dict(_boxes(rows))
    edges = sorted(imports([name for row in rows for name in row]))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        "<title>Which folder imports which</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" style="fill:#57606a"/></marker>'
        "</defs>",
        f'<rect width="{WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>',
        *_arrows(edges, boxes, rows),
        *(_box(name, *place) for name, place in boxes.items()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _boxes(rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for row, names in enumerate(rows):
        width = (RIGHT - LEFT - 20 * (len(names) - 1)) // len(names)
        for column, name in enumerate(names):
            yield name, (LEFT + column * (width + 20), 20 + row * (HIGH + APART), width)


def _box(name: str, left: int, top: int, width: int) -> str:
    shown = ", ".join(packages(name))
    most = (width - 24) * 10 // 58
    if len(shown) > most:
        shown = shown[:most].rpartition(",")[0] + " …"
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{HIGH}" rx="6"/>'
        f'<text class="name" x="{left + 12}" y="{top + 23}">{escape(name)}/</text>'
        f'<text class="parts" x="{left + 12}" y="{top + 43}">{escape(shown)}</text>'
    )


def _arrows(
    edges: Sequence[tuple[str, str]],
    boxes: dict[str, tuple[int, int, int]],
    rows: Sequence[Sequence[str]],
) -> Iterator[str]:
    """Yield an arrow for each edge: straight to the next layer, and beside the boxes further."""
    layer = {name: number for number, names in enumerate(rows) for name in names}
    for importer, imported in edges:
        left, top, width = boxes[importer]
        to_left, to_top, to_width = boxes[imported]
        apart = layer[imported] - layer[importer]
        if apart == 1:
            x = (max(left, to_left) + min(left + width, to_left + to_width)) // 2
            yield f'<path marker-end="url(#end)" d="M{x} {top + HIGH}V{to_top - 1}"/>'
        else:
            begin = top + 18 + 4 * apart
            end = to_top + 12 + 6 * layer[importer]
            left_side = not left + width == to_left + to_width == RIGHT
            away = 34 * abs(apart) + 6 * layer[importer]
            start, stop = (left, to_left - 1) if left_side else (RIGHT, RIGHT + 1)
            out = LEFT - away if left_side else RIGHT + away
            yield (
                f'<path class="far" marker-end="url(#end)" d="M{start} {begin}'
                f'C{out} {begin} {out} {end} {stop} {end}"/>'
            )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
