"""The configurations of share groups as data: what each release has, by default and at most.

``configs.toml`` holds the table; :func:`load_configs` reads it as it is for one release.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

from spec.requirement import SpecError

Line = tuple[int, int]

OLDEST = "4.1"
_LINE = re.compile(r"(\d+)\.(\d+)")
_KEYS = frozenset(
    {
        "type",
        "since",
        "until",
        "default",
        "low",
        "high",
        "dynamic",
        "bounds",
        "broker",
        "choice",
        "internal",
    }
)


class Scope(StrEnum):
    """Where a configuration is set."""

    BROKER = "broker"
    GROUP = "group"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One key as one release has it.

    Attributes:
        name: The key.
        scope: Where it is set.
        type: As DescribeConfigs names it, or ``ENUM``.
        default: As a text.
        low: The smallest number that its definition allows, ``None`` for any.
        high: The largest one.
        dynamic: Whether a running broker takes a new value.
        bounds: The broker keys that limit a group's value from below and above.
        broker: The broker key that a group without a value goes by.
        choice: The values of an ENUM.
        internal: Whether it is described only where it is set.
    """

    name: str
    scope: Scope
    type: str
    default: str
    low: int | None = None
    high: int | None = None
    dynamic: bool = False
    bounds: tuple[str, ...] = ()
    broker: str = ""
    choice: tuple[str, ...] = ()
    internal: bool = False


def release_line(release: str) -> Line:
    """Return major and minor of a release such as ``4.3.1`` or ``4.3``.

    Raises:
        SpecError: it is none.
    """
    found = _LINE.match(release)
    if not found:
        raise SpecError(f"{release!r} is no release")
    return int(found[1]), int(found[2])


def load_configs(release: str, scope: Scope | None = None) -> dict[str, Config]:
    """Return the keys that a release has by name, all or those of one scope.

    Raises:
        SpecError: the table is malformed, or ``release`` is no release.
    """
    text = (resources.files("spec") / "configs.toml").read_text(encoding="utf-8")
    return parse(text, release, scope)


def parse(text: str, release: str, scope: Scope | None = None) -> dict[str, Config]:
    """Return what :func:`load_configs` does, from a table's text."""
    line = release_line(release)
    found: dict[str, Config] = {}
    for where, table in tomllib.loads(text).items():
        if where not in set(Scope):
            raise SpecError(f"configs.toml: {where} is no scope")
        for name, raw in table.items():
            if unknown := set(raw) - _KEYS:
                raise SpecError(f"configs.toml: {name} has unknown keys {sorted(unknown)}")
            if scope in {None, where} and _exists(raw, line):
                found[name] = _config(name, Scope(where), raw, line)
    return found


def _exists(raw: Mapping[str, object], line: Line) -> bool:
    since = release_line(str(raw.get("since", OLDEST)))
    until = raw.get("until")
    return since <= line and (until is None or line <= release_line(str(until)))


def _config(name: str, scope: Scope, raw: Mapping[str, object], line: Line) -> Config:
    default = _at(raw.get("default"), line)
    if default is None or "type" not in raw:
        raise SpecError(f"configs.toml: {name} needs a type and a default")
    dynamic = raw.get("dynamic")
    return Config(
        name=name,
        scope=scope,
        type=str(raw["type"]),
        default=str(default),
        low=_number(_at(raw.get("low"), line), name),
        high=_number(_at(raw.get("high"), line), name),
        dynamic=dynamic is not None and release_line(str(dynamic)) <= line,
        bounds=_texts(raw.get("bounds")),
        broker=str(raw.get("broker", "")),
        choice=_texts(raw.get("choice")),
        internal=raw.get("internal") is True,
    )


def _at(value: object, line: Line) -> object:
    """Return a value, or of a table of values by release the newest that is not too new."""
    if not isinstance(value, Mapping):
        return value
    known = {release_line(str(release)): held for release, held in value.items()}
    fitting = [release for release in known if release <= line]
    return known[max(fitting)] if fitting else None


def _number(value: object, name: str) -> int | None:
    if value is None or isinstance(value, int):
        return value
    raise SpecError(f"configs.toml: {name}: {value!r} is no number")


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
