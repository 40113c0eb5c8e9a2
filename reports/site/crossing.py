"""Tables of who by what: implementations by release, client libraries by broker."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from reports.results import Client
from reports.site.archive import Run

Sides = Callable[[Run], tuple[str, str]]
"""From a run to its row and its column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    """A table. ``cells`` has a run by row and column, where there is one."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Run]

    @property
    def neighbours(self) -> tuple[tuple[Run, Run], ...]:
        """Each run with the one in the column before it, row by row."""
        return tuple(
            pair
            for row in self.rows
            for pair in pairwise(
                self.cells[row, column] for column in self.columns if (row, column) in self.cells
            )
        )


def by_release(run: Run) -> tuple[str, str]:
    """Return the implementation of a broker, and the release whose rules it was asked for."""
    target = run.results.target
    return target.name.removesuffix(f":{target.version}"), target.version


def by_broker(run: Run) -> tuple[str, str]:
    """Return a client library with its version, and the broker that it faced."""
    client = _client(run)
    return f"{client.name} {client.version}", client.facing


def by_version(run: Run) -> tuple[str, str]:
    """Return a client library with the broker that it faced, and its version."""
    client = _client(run)
    return f"{client.name} facing {client.facing}", client.version


def _client(run: Run) -> Client:
    if run.results.client is None:
        raise ValueError(f"{run.folder}: no client was tested")
    return run.results.client


def cross(runs: Iterable[Run], sides: Sides) -> Cross:
    """Return the table of some runs; what comes later wins a cell that two could have."""
    cells = {sides(run): run for run in runs}
    return Cross(
        rows=tuple(sorted({row for row, _ in cells}, key=_naturally)),
        columns=tuple(sorted({column for _, column in cells}, key=_naturally)),
        cells=cells,
    )


def _naturally(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which 4.10.0 comes after 4.9.0."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts if part]
