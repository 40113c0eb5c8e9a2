"""Lists that the rules must reach: upstream's behaviours, known defects, past ones; and findings.

``catalogue.toml`` holds what Apache Kafka's own tests cover, ``defects.toml`` what went wrong in
public; each entry names the rules that would notice. Ids are unique because TOML keys are.
``track_record.toml`` says which rule shows which publicly known defect, on which release, and on
which later release the same rule holds. ``python -m tools.campaign releases`` runs both sides, and
``evidence/noticed.jsonl`` has what it saw.

Findings are defects of published releases with a page in ``docs/findings``. ``findings.toml`` is
the one place that ranks them and says where they apply; which rules a finding breaks on which
release is in the ledgers. ``risks.toml`` has configurations that users regret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from spec.tables import SpecError, parse, record


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    id: str
    area: str
    label: str
    rules: tuple[str, ...]
    star: bool = False
    bug: tuple[str, ...] = ()


def entries_of(text: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for area, table in parse(text, "a list of behaviours").items():
        for identity, raw in table.items():
            if identity in entries:
                raise SpecError(f"{identity} is listed twice")
            rules = raw.get("rules", "") if isinstance(raw, dict) else ""
            if not isinstance(rules, str):
                raise SpecError(f"{identity}: rules are ids in one text, not {rules!r}")
            named = {**raw, "rules": rules.split()} if rules else raw
            entries[identity] = record(Entry, named, identity, id=identity, area=area)
    return entries


def _load(name: str) -> dict[str, Entry]:
    return entries_of((resources.files("spec") / name).read_text(encoding="utf-8"))


def load_catalogue() -> dict[str, Entry]:
    return _load("catalogue.toml")


def load_defects() -> dict[str, Entry]:
    return _load("defects.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    bug: str  # the public report, such as ``KAFKA-19953``; empty where none is known.
    title: str  # what went wrong, in one line.
    rule: str  # the rule that notices.
    seen: str  # a release that has the defect.
    mended: str = ""  # a release that does not; empty while there is none.
    finding: str = ""  # the page in ``docs/findings``, if there is one.
    scenario: str = ""  # the chaos scenario that shows it; empty where a check of the rule does.
    seed: int = 1  # that of the scenario's run.

    @property
    def command(self) -> str:
        target = f"--target kafka:{self.seen}"
        if self.scenario:
            return f"shareproof chaos {target} --scenario {self.scenario} --seed {self.seed}"
        return f"shareproof broker {target} --only {self.rule} --ledger strict"


def past_of(text: str) -> list[Past]:
    raw = parse(text, "track_record.toml").get("past", [])
    entries = [record(Past, one, f"track_record.toml: {one}") for one in raw]
    pairs = [(entry.rule, entry.seen) for entry in entries]
    if twice := {pair for pair in pairs if pairs.count(pair) > 1}:
        raise SpecError(f"listed twice: {sorted(twice)}")
    return entries


def load_track_record() -> list[Past]:
    return past_of((resources.files("spec") / "track_record.toml").read_text(encoding="utf-8"))


RANKS = ("loss", "duplicate", "stall", "overload", "wrong response", "cosmetic")
"""What users see at worst, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    id: str
    rank: str
    what: str
    rules: str
    seen: str = ""
    components: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    demoted: str = ""
    versions: str | None = None
    where: str = ""
    avoid: str = ""
    tried: str = ""

    @property
    def number(self) -> str:
        first = self.id.partition("-")[0]
        return first if first.isdigit() else self.id


@cache
def load_risks(file: str = "risks.toml") -> Mapping[str, Risk]:
    by_rank = parse((resources.files("spec") / file).read_text(encoding="utf-8"), file)
    if strange := by_rank.keys() - set(RANKS):
        raise SpecError(f"{file}: {min(strange)} is no rank; there are {', '.join(RANKS)}")
    return MappingProxyType(
        {
            name: record(Risk, raw, f"{file}: {name}", id=name, rank=rank)
            for rank in RANKS
            for name, raw in by_rank.get(rank, {}).items()
        }
    )


def load_findings() -> Mapping[str, Risk]:
    return load_risks("findings.toml")


def rank_of(page: str) -> str:
    finding = load_findings().get(page)
    return finding.rank if finding else ""
