"""The tables of docs/chaos.md: of the faults and scenarios there are, and of what was played.

They are filled in when the documentation is built. ``python -m tools.documents.chaos RUN ...``
judges runs, and records their verdicts by release.
"""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from chaos.faults import FAULTS
from chaos.run import RECORD as CHAOS
from fixtures.interface.names import KafkaName, parse_target
from fixtures.targets import UsageFault
from reports.analysis.files import open_history
from reports.oracle.judge import Verdicts, judge
from reports.results import ChaosRun, InjectedFault
from shareproof.chaos.verdicts import read as read_run
from suites.chaos.scenarios import SCENARIOS
from suites.options import named_ledger

RECORD = Path(__file__).parents[2] / "evidence" / "scenarios.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionCounts:
    struck: int
    hit: int
    healed: int

    def __add__(self, other: Self) -> Self:
        theirs = asdict(other)
        return replace(self, **{name: count + theirs[name] for name, count in asdict(self).items()})


_NONE = InjectionCounts(struck=0, hit=0, healed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    name: str  # The scenario, or ``seed`` and the seed of a drawn schedule.
    release: str  # Of Kafka.
    on: str  # The day on which it was played.
    seed: int  # What its load was drawn from.
    verdict: str  # Of the whole run, as a scenario's.
    rules: tuple[str, ...]  # Those that are behind the verdict if it is no pass.
    faults: Mapping[str, InjectionCounts]  # What broke, by kind.


def read(file: Path = RECORD) -> list[Played]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [
        Played(
            **{
                **one,
                "rules": tuple(one["rules"]),
                "faults": {kind: InjectionCounts(**seen) for kind, seen in one["faults"].items()},
            }
        )
        for one in map(json.loads, lines)
    ]


def write(runs: Sequence[Played], file: Path = RECORD) -> None:
    ordered = sorted(runs, key=lambda one: (one.name, _order(one.release)))
    lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in ordered)
    file.write_text("".join(lines), encoding="utf-8")


def merged(known: Sequence[Played], new: Sequence[Played]) -> list[Played]:
    kept = {(one.name, one.release): one for one in (*known, *new)}
    return list(kept.values())


def judged(run: Path) -> Played:
    record = read_run(run)
    history = open_history(run)
    target = parse_target(history.run["target"]["name"])
    if not isinstance(target, KafkaName) or target.mutant:
        raise UsageFault(f"{run}: {history.run['target']['name']} is no release as published.")
    ledger = named_ledger(history.run["target"]["ledger"])
    verdict, rules = verdict_of(record, judge(history.folder), ledger.expectations(target.version))
    return Played(
        name=record.scenario or f"seed {record.seed}",
        release=target.version,
        on=datetime.fromtimestamp(history.run["started"], UTC).date().isoformat(),
        seed=record.seed,
        verdict=verdict,
        rules=rules,
        faults=counts_by_fault(record.faults),
    )


def verdict_of(
    record: ChaosRun, found: Verdicts, known: Collection[str]
) -> tuple[str, tuple[str, ...]]:
    broken = sorted(rule for rule, at in found.items() if any(bad for _, bad in at.values()))
    if unexpected := [rule for rule in broken if rule not in known]:
        return "fail", tuple(unexpected)
    if record.trouble:
        return "error", ()
    idle = [rule for rule in dict.fromkeys(record.owed) if rule not in found]
    if idle or record.verdict != "pass":
        return "vacuous", tuple(idle)
    return ("known failure", tuple(broken)) if broken else ("pass", ())


def counts_by_fault(faults: Sequence[InjectedFault]) -> dict[str, InjectionCounts]:
    found: dict[str, InjectionCounts] = {}
    for one in faults:
        seen = InjectionCounts(struck=1, hit=int(bool(one.hit)), healed=int(bool(one.healed)))
        found[one.fault] = found.get(one.fault, _NONE) + seen
    return found


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


PAGE = Path("docs") / "chaos.md"
_MANY = 10


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
    columns = _well_played(runs)
    found = {
        (one.name, one.release): f"{one.verdict} {', '.join(one.rules)}".strip() + f" ({one.on})"
        for one in runs
    }
    rows = (
        (f"`{name}`", *(found.get((name, release), "not played") for release in columns))
        for name in SCENARIOS
    )
    return _table(("scenario", *columns), rows)


def struck(runs: Sequence[Played]) -> str:
    columns, rows = _well_played(runs), []
    for kind in FAULTS:
        cells = [f"`{kind}`"]
        for release in columns:
            seen = [o.faults[kind] for o in runs if o.release == release and kind in o.faults]
            total = sum(seen, _NONE)
            counts = f"{total.hit} of {total.struck} hit, {total.healed} healed"
            cells.append(counts if seen else "not played")
        rows.append(tuple(cells))
    return _table(("fault", *columns), rows)


def _well_played(runs: Sequence[Played]) -> list[str]:
    names = {
        release: {one.name for one in runs if one.release == release}
        for release in sorted({one.release for one in runs}, key=_order, reverse=True)
    }
    return [release for release, played in names.items() if len(played) >= _MANY]


def filled(page: str) -> str:
    runs = read()
    tables = {
        "faults": faults(),
        "scenarios": scenarios(),
        "played": played(runs),
        "struck": struck(runs),
    }
    for name, table in tables.items():
        page = page.replace(f"<!-- {name} -->", table.rstrip())
    return page


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        for run in sorted(file.parent for file in folder.rglob(CHAOS)):
            one = judged(run)
            print(f"{run}: {one.name} on {one.release}: {one.verdict} {', '.join(one.rules)}")
            write(merged(read(), [one]))
