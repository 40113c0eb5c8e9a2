"""The tables of docs/chaos.md: of the faults and scenarios there are, and of what was played.

``python -m tools.documents.chaos [RUN ...]`` puts runs on record and renews the first two. The
other two are filled in when the documentation is built.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaos.faults import FAULTS
from chaos.run import RECORD as CHAOS
from suites.chaos.scenarios import SCENARIOS
from tools.documents import played as record
from tools.documents.played import Played, Strikes

PAGE = Path("docs") / "chaos.md"
_MANY = 10
_NONE = Strikes(struck=0, hit=0, healed=0)


def faults() -> str:
    rows = (
        (
            f"`{kind.name}`",
            kind.sentence,
            ", ".join(sorted(kind.takes)),
            ", ".join(sorted(kind.relies_on)),
            f"{kind.lasts[0]:g}-{kind.lasts[1]:g} s",
        )
        for kind in FAULTS.values()
    )
    return _table(("fault", "what it does", "takes", "relies on", "lasts"), rows)


def scenarios() -> str:
    rows = (
        (f"`{one.name}`", one.sentence, ", ".join(sorted({rule[4:] for rule in one.rules})))
        for one in SCENARIOS.values()
    )
    return _table(("scenario", "what happens", "INV rules that it must exercise"), rows)


def played(runs: Sequence[Played]) -> str:
    """Return the table of what came of each scenario, by release."""
    columns = _well_played(runs)
    found = {(one.name, one.release): one for one in runs}
    rows = (
        (f"`{name}`", *(_came_of(found.get((name, release))) for release in columns))
        for name in SCENARIOS
    )
    return _table(("scenario", *columns), rows)


def struck(runs: Sequence[Played]) -> str:
    """Return the table of how often each kind of fault was seen to hit, by release."""
    columns = _well_played(runs)
    rows = (
        (f"`{kind}`", *(_strikes(runs, kind, release) for release in columns)) for kind in FAULTS
    )
    return _table(("fault", *columns), rows)


def _well_played(runs: Sequence[Played]) -> list[str]:
    """Return the releases on which many scenarios were played; others met a few on purpose."""
    names = {
        release: {one.name for one in runs if one.release == release}
        for release in record.releases(runs)
    }
    return [release for release, played in names.items() if len(played) >= _MANY]


def _came_of(one: Played | None) -> str:
    if one is None:
        return "not played"
    return f"{' '.join((one.verdict, ', '.join(one.rules))).strip()} ({one.on})"


def _strikes(runs: Sequence[Played], kind: str, release: str) -> str:
    seen = [one.faults[kind] for one in runs if one.release == release and kind in one.faults]
    if not seen:
        return "not played"
    total = sum(seen, _NONE)
    return f"{total.hit} of {total.struck} hit, {total.healed} healed"


def filled(page: str) -> str:
    """Return the page with the tables of what was played, in the places of comments."""
    runs = record.read()
    page = page.replace("<!-- played -->", played(runs).rstrip())
    return page.replace("<!-- struck -->", struck(runs).rstrip())


def renewed(page: str) -> str:
    """Return the page with new tables; they stand between comments that name them."""
    for name, table in (("faults", faults()), ("scenarios", scenarios())):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, _, rest = page.partition(begin)
        _, _, tail = rest.partition(end)
        page = f"{head}{begin}{table}{end}{tail}"
    return page


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_down(folders: Sequence[Path]) -> None:
    """Put runs on record, and renew the tables."""
    runs = [file.parent for folder in folders for file in sorted(folder.rglob(CHAOS))]
    for run in runs:
        one = record.played(run)
        print(f"{run}: {one.name} on {one.release}: {one.verdict} {', '.join(one.rules)}")
        record.write(record.merged(record.read(), [one]))
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_down([Path(folder) for folder in sys.argv[1:]])
