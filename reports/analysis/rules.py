"""Invariants as data: each is a small SQL file with its id, level, source and sentence on top.

A file returns one row for every case that puts its rule to the test, with the columns ``queue``,
``log``, ``offset``, ``since``, ``until``, ``detail`` and, last, ``broken``. It can be run alone. A
file that reads one view and filters it can also be told together with the others over that view, so
that the history is read once: its select list ends with ``<expression> AS broken``, and its
exercised cases are what its WHERE lets through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from spec.requirement import Level, SpecError

_HEAD = re.compile(r"^-- (id|level|source|needs|about): (.+)$")
_PLAIN = re.compile(
    r"SELECT\n(?P<told>.* AS detail),\n(?P<broken>.*) AS broken\n"
    r"FROM (?P<view>\w+)\nWHERE\s(?P<exercised>.*)\Z",
    re.DOTALL,
)

WHOLE = "whole"
"""What a rule needs whose witness is something missing: a history of which nothing was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """A rule that is a question to each row of a view.

    ``told`` is what a witness says of such a row: the columns before ``broken``.
    """

    view: str
    exercised: str
    broken: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """One rule over a whole history; ``simple`` is None for a query that stands alone.

    ``about`` names the table whose rows put the rule to the test: where it is empty, nothing does.
    """

    id: str
    level: Level
    source: str
    sentence: str
    sql: str
    file: str
    needs_whole: bool = False
    about: str = ""
    simple: Simple | None = None


def load_invariants() -> list[Invariant]:
    """Return every invariant, by id.

    Raises:
        SpecError: a file lacks what it must say.
    """
    folder = resources.files("reports") / "analysis" / "invariants"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return [
        parse(file.read_text(encoding="utf-8"), file.name)
        for file in files
        if file.name.endswith(".sql")
    ]


def parse(text: str, where: str) -> Invariant:
    """Read one invariant.

    Raises:
        SpecError: it lacks what it must say; ``where`` names it in the message.
    """
    comments = [line for line in text.splitlines() if line.startswith("--")]
    heads = {found[1]: found[2] for line in comments if (found := _HEAD.match(line))}
    prose = [line[3:] for line in comments if not _HEAD.match(line)]
    if missing := {"id", "level", "source"} - heads.keys():
        raise SpecError(f"{where} does not say its {', '.join(sorted(missing))}")
    if not prose:
        raise SpecError(f"{where} does not say its rule in a sentence")
    sql = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
    plain = _PLAIN.search(sql)
    return Invariant(
        id=heads["id"],
        level=Level(heads["level"]),
        source=heads["source"],
        sentence=" ".join(prose),
        sql=sql,
        file=where,
        needs_whole=heads.get("needs") == WHOLE,
        about=heads.get("about", ""),
        simple=Simple(**plain.groupdict()) if plain and _is_flat(sql) else None,
    )


def _is_flat(sql: str) -> bool:
    return len(re.findall(r"^(SELECT|FROM|WHERE)\b", sql, re.MULTILINE)) == 3


def by_view(rules: Iterable[Invariant]) -> dict[str, list[Invariant]]:
    """Return the rules that are questions to each row of a view, by view."""
    views: dict[str, list[Invariant]] = {}
    for rule in rules:
        if rule.simple is not None:
            views.setdefault(rule.simple.view, []).append(rule)
    return views
