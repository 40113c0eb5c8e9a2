"""Two lists that the requirements must reach: upstream's behaviours and publicly known defects.

``catalogue.toml`` holds what Apache Kafka's own tests cover, ``defects.toml`` what went wrong in
public; each entry names the rules that would notice. Ids are unique because TOML keys are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from spec.requirement import SpecError

_KEYS = {"label", "rules", "star", "bug"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One behaviour or defect. ``star``: upstream has no test of it through a real cluster."""

    id: str
    area: str
    label: str
    rules: tuple[str, ...]
    star: bool = False
    bug: tuple[str, ...] = ()


def _strings(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SpecError(f"{where} must be a list of strings")
    if len(set(value)) != len(value):
        raise SpecError(f"{where} names something twice")
    return tuple(value)


def _entry(area: str, identity: str, raw: object) -> Entry:
    if not isinstance(raw, Mapping) or "label" not in raw or "rules" not in raw:
        raise SpecError(f"{identity} needs a label and rules")
    if unknown := set(raw) - _KEYS:
        raise SpecError(f"{identity} has unknown keys {sorted(unknown)}")
    return Entry(
        id=identity,
        area=area,
        label=str(raw["label"]),
        rules=_strings(raw["rules"], f"{identity}: rules"),
        star=raw.get("star", False) is True,
        bug=_strings(raw.get("bug", []), f"{identity}: bug"),
    )


def parse(text: str) -> dict[str, Entry]:
    """Return the entries of one file by id, in its order.

    Raises:
        SpecError: an entry has no label or rules, an unknown key, or a list that is none.
    """
    entries: dict[str, Entry] = {}
    for area, table in tomllib.loads(text).items():
        for identity, raw in table.items():
            if identity in entries:
                raise SpecError(f"{identity} is listed twice")
            entries[identity] = _entry(area, identity, raw)
    return entries


def _load(name: str) -> dict[str, Entry]:
    return parse((resources.files("spec") / name).read_text(encoding="utf-8"))


def load_catalogue() -> dict[str, Entry]:
    """Return every behaviour that upstream tests, or should, by id such as ``ACK-9``."""
    return _load("catalogue.toml")


def load_defects() -> dict[str, Entry]:
    """Return every publicly known defect by our short id such as ``B14``."""
    return _load("defects.toml")
