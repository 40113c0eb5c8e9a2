"""Settings of client libraries by their own names: what each may be, and what shows it.

A table ``NAME.toml`` is about the library whose adapter says that it is NAME; comments cite the
documentation. ``values`` are documented and have to take effect: each names what then shows on the
wire. ``either`` may take effect or be refused, for the documentation leaves it open. ``refused``
and ``foreign`` have to be refused by an error that names the setting, or calls it what ``called``
says; a setting of which only that is looked at stands in one of the tables of these names. What is
``untested`` says why. A framework's table is ``like`` that of the client under it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from packaging.version import Version

from spec.tables import parse, record


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str  # The library's own name.
    # What shows it: a field of a request such as ``ShareFetch.max_wait_ms``, or an effect of
    # ``suites/client/settings.py``; nothing if only refusals can be seen.
    shows: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)  # Documented, each with what shows
    # The same for values of which the documentation says nothing, such as other capitals.
    either: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()  # Values that the documentation does not allow.
    foreign: bool = False  # Whether it is one of consumer groups, which share groups do not have.
    called: str = ""  # What its errors call it, if that is not its name.
    beside: Mapping[str, str] = field(default_factory=dict)  # Settings that have to be there, too.
    since: str = ""  # The first version that has it.
    key: str = ""  # The adapter protocol's key for it, if the adapter passes it by no other name.


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    documentation: str  # Where they are documented.
    settings: tuple[Setting, ...]  # Those that are tested.
    untested: Mapping[str, str]  # The others, each with the reason.


def settings_of(name: str, version: str = "") -> Settings | None:
    """Return the settings of the library that an adapter's hello names, of one version if given."""
    file = resources.files(__package__) / f"{name}.toml"
    if not file.is_file():
        return None
    raw = parse(file.read_text(encoding="utf-8"), f"{name}.toml")
    found = [
        record(Setting, fields, f"{name}.toml: {each}", name=each)
        for each, fields in raw.get("setting", {}).items()
    ]
    found += [
        Setting(name=each, foreign=table == "foreign", refused=tuple(values))
        for table in ("refused", "foreign")
        for each, values in raw.get(table, {}).items()
    ]
    untested = {each: why for why, names in raw.get("untested", {}).items() for each in names}
    if base := settings_of(raw.get("like", "")):
        found += [one for one in base.settings if one.name not in untested]
        untested = {**base.untested, **untested}
    return Settings(
        documentation=raw["documentation"],
        settings=tuple(one for one in found if not version or _has(version, one.since)),
        untested=untested,
    )


def _has(version: str, since: str) -> bool:
    return not since or Version(version.partition("+")[0]) >= Version(since)
