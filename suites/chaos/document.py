"""The tables of docs/chaos.md, made from the faults and scenarios there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from chaos.faults import KINDS
from suites.chaos.scenarios import SCENARIOS

PAGE = Path("docs") / "chaos.md"


def faults() -> str:
    """Return the table of faults."""
    rows = (
        (f"`{kind.name}`", kind.sentence, f"{kind.lasts[0]:g}-{kind.lasts[1]:g} s")
        for kind in KINDS.values()
    )
    return _table(("fault", "what it does", "lasts"), rows)


def scenarios() -> str:
    """Return the table of scenarios."""
    rows = (
        (f"`{one.name}`", one.sentence, ", ".join(rule[4:] for rule in one.rules))
        for one in SCENARIOS.values()
    )
    return _table(("scenario", "what happens", "INV rules that it must exercise"), rows)


def renewed(page: str) -> str:
    """Return the page with its tables made anew; they stand between comments that name them."""
    tables: Mapping[str, str] = {"faults": faults(), "scenarios": scenarios()}
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, _, rest = page.partition(begin)
        _, _, tail = rest.partition(end)
        page = f"{head}{begin}{table}{end}{tail}"
    return page


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
