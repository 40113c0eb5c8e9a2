"""What is known of each release line of Kafka: one TOML file per line, and nothing about brokers.

A file holds what changed since the line before; configs and behaviour that it does not name stay
as they were. To add a release, add its file. Keys of a file:

default            the release that stands for the line, such as ``4.3.1``
tools              the release whose command line tools suit the line: not every one published them
without_tools      releases of the line that were published without tools
upgrade_from       the release that one upgrades to this line from
off_by_default     features that a new cluster must switch on
removed_configs    configs that the line before still had
[levels]           the highest level of each feature that brokers of the line support (ApiVersions)
[apis]             the lowest and highest version of an API, where a line is told by it
[behaviour]        fields of :class:`spec.model.release.Release`
[configs.SCOPE]    configs, or what changed about them; see :mod:`spec.configs`

Sources: ApiVersions and the ConfigDefs of each release; KIP-932, 1103, 1191, 1240, 1263.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spec.tables import SpecError

EARLY_ACCESS = "4.0"
"""The line that has share groups for early access only, with requests that no other understands."""
_EARLY_LEVELS = (22, 25)
"""The lowest and the highest metadata.version of that line; what is older has no share groups."""
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
_KEYS = {"default", "tools", "without_tools", "upgrade_from", "off_by_default", "removed_configs"}
_SCOPES = {"broker", "group", "topic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLine:
    """One release line, whole: what its file says, on top of what the line before has."""

    name: str  # Major and minor, such as ``4.3``.
    default: str  # The release that stands for the line.
    tools: str  # The release whose command line tools suit it.
    without_tools: tuple[str, ...] = ()  # Releases of the line that have no tools.
    upgrade_from: str = ""  # The release that one upgrades from; empty where there is none.
    off_by_default: tuple[str, ...] = ()  # Features that a new cluster must switch on.
    levels: Mapping[str, int]  # The highest supported level by feature.
    apis: Mapping[str, tuple[int, int]]  # Lowest and highest version by API.
    behaviour: Mapping[str, bool]  # Fields of :class:`spec.model.release.Release`.
    configs: Mapping[str, Mapping[str, Mapping[str, Any]]]  # Fields by scope and name

    @property
    def numbers(self) -> tuple[int, int]:
        return numbers(self.name)


def numbers(version: str) -> tuple[int, int]:
    """Return major and minor of a release such as ``4.3.1`` or ``4.3``; raises SpecError."""
    found = _NUMBERS.match(version)
    if not found:
        raise SpecError(f"{version!r} is no release")
    return int(found[1]), int(found[2])


@cache
def lines() -> Mapping[str, ReleaseLine]:
    """Return the lines by name, the oldest first; raises SpecError."""
    files = Path(__file__).parent.glob("*.toml")
    return parse({file.stem: file.read_text(encoding="utf-8") for file in files})


def parse(texts: Mapping[str, str]) -> Mapping[str, ReleaseLine]:
    """Return the lines of some files, given as texts by the line's name; raises SpecError."""
    found: dict[str, ReleaseLine] = {}
    before: ReleaseLine | None = None
    for name in sorted(texts, key=numbers):
        raw = tomllib.loads(texts[name])
        if unknown := raw.keys() - _KEYS - {"levels", "apis", "behaviour", "configs"}:
            raise SpecError(f"releases/{name}.toml has unknown keys {sorted(unknown)}")
        if lacking := {"default", "tools"} - raw.keys():
            raise SpecError(f"releases/{name}.toml lacks {', '.join(sorted(lacking))}")
        apis = {api: (int(low), int(high)) for api, (low, high) in raw.get("apis", {}).items()}
        before = found[name] = ReleaseLine(
            name=name,
            default=raw["default"],
            tools=raw["tools"],
            without_tools=tuple(raw.get("without_tools", ())),
            upgrade_from=raw.get("upgrade_from", ""),
            off_by_default=tuple(raw.get("off_by_default", ())),
            levels={**(before.levels if before else {}), **raw.get("levels", {})},
            apis={**(before.apis if before else {}), **apis},
            behaviour={**(before.behaviour if before else {}), **raw.get("behaviour", {})},
            configs=_configs(name, raw, before.configs if before else {}),
        )
    return MappingProxyType(found)


def newest() -> ReleaseLine:
    return list(lines().values())[-1]


def line_of(version: str) -> ReleaseLine:
    """Return the line that judges a release: the newest where no file describes it."""
    if not _NUMBERS.match(version):
        return newest()
    wanted = numbers(version)
    return next((line for line in lines().values() if wanted <= line.numbers), newest())


def release_notice(version: str) -> str:
    """Return the sentence for a release that no file describes; empty for one that is known."""
    if not version or not _NUMBERS.match(version):
        return ""
    line, wanted = line_of(version), numbers(version)
    if wanted == line.numbers:
        return ""
    age = "newer" if wanted > line.numbers else "older"
    name = ".".join(map(str, wanted))
    return f"Kafka {name} is {age} than this suite: it is judged by the rules of Kafka {line.name}."


def line_by_levels(features: Mapping[str, int], share_fetch: tuple[int, int] | None) -> str:
    """Return the line whose levels and ShareFetch versions these are; empty if nothing shows it."""
    level = features.get("metadata.version", 0)
    if level > _EARLY_LEVELS[1]:
        fitting = (n for n, line in lines().items() if level <= line.levels["metadata.version"])
        return next(fitting, newest().name)
    if share_fetch is None or share_fetch == (0, 0):
        early = _EARLY_LEVELS[0] <= level or (not level and share_fetch is not None)
        return EARLY_ACCESS if early else ""
    # Not Apache's: metadata.version is a level of its own records, ShareFetch is the contract.
    fitting = (name for name, line in lines().items() if share_fetch <= line.apis["ShareFetch"])
    return next(fitting, newest().name)


def levels_notice(features: Mapping[str, int]) -> str:
    """Return the sentence for a broker whose metadata.version no file knows; empty otherwise."""
    level, known = features.get("metadata.version", 0), newest().levels["metadata.version"]
    if level <= known:
        return ""
    return (
        f"The brokers support metadata.version {level}, which is newer than this suite "
        f"(Kafka {newest().name} has {known}): they are judged by the rules of Kafka "
        f"{newest().name}."
    )


def _configs(
    name: str, raw: Mapping[str, Any], before: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, dict[str, dict[str, Any]]]:
    changed, removed = raw.get("configs", {}), set(raw.get("removed_configs", ()))
    if strange := changed.keys() - _SCOPES:
        raise SpecError(f"releases/{name}.toml: {', '.join(sorted(strange))} is no scope")
    whole: dict[str, dict[str, dict[str, Any]]] = {}
    for scope in sorted(_SCOPES):
        old, new = before.get(scope, {}), changed.get(scope, {})
        names = [each for each in dict.fromkeys((*old, *new)) if each not in removed]
        whole[scope] = {each: {**old.get(each, {}), **new.get(each, {})} for each in names}
    return whole
