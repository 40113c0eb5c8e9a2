"""Two lists that the requirements must reach: upstream's behaviours and publicly known defects.

``catalogue.toml`` holds what Apache Kafka's own tests cover, ``defects.toml`` what went wrong in
public; each entry names the rules that would notice. Ids are unique because TOML keys are.
"""

from dataclasses import dataclass
from importlib import resources

from spec.tables import SpecError, parse, record


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One behaviour or defect. ``star``: upstream has no test of it through a real cluster."""

    id: str
    area: str
    label: str
    rules: tuple[str, ...]
    star: bool = False
    bug: tuple[str, ...] = ()


def entries_of(text: str) -> dict[str, Entry]:
    """Return the entries of one file by id, in its order."""
    entries: dict[str, Entry] = {}
    for area, table in parse(text, "a list of behaviours").items():
        for identity, raw in table.items():
            if identity in entries:
                raise SpecError(f"{identity} is listed twice")
            entries[identity] = record(Entry, raw, identity, id=identity, area=area)
    return entries


def _load(name: str) -> dict[str, Entry]:
    return entries_of((resources.files("spec") / name).read_text(encoding="utf-8"))


def load_catalogue() -> dict[str, Entry]:
    """Return every behaviour that upstream tests, or should, by id such as ``ACK-9``."""
    return _load("catalogue.toml")


def load_defects() -> dict[str, Entry]:
    """Return every publicly known defect by our short id such as ``B14``."""
    return _load("defects.toml")
