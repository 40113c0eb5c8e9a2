"""The pages of clients and brokers: what is broken is ordered by rank, and linked."""

from __future__ import annotations

from pathlib import Path

from tests.fake import ROOT
from tools.matrix import RANKS, rank_of

PAGES = ("clients.md", "brokers.md")


def rows(name: str) -> list[list[str]]:
    """Return the cells of the rows about rules."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8").partition("## Rules")[2]
    table = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def test_ranks_are_those_of_the_findings() -> None:
    names = [page.stem for page in (ROOT / "docs" / "findings").glob("[0-9]*.md")]
    assert {rank_of(name) for name in names} <= set(RANKS)
    assert rank_of("090-kafkats-starts-use-up-deliveries") == "loss"
    assert rank_of("no-such-finding") == rank_of("") == ""


def test_rows_are_sorted_by_rank_and_link_what_is_there() -> None:
    for name in PAGES:
        found = rows(name)
        ranks = [RANKS.index(row[0]) for row in found]
        assert ranks == sorted(ranks)
        links = [link for row in found for link in row[-1].split("](")[1:]]
        assert all((Path(ROOT) / "docs" / link.split(")")[0]).exists() for link in links)
        assert all("**fail**" in row or {"unknown", "vacuous"} & set(row) for row in found)
