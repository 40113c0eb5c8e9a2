"""The configurations of share groups as data: what each release has, by default and at most.

The files of :mod:`spec.releases` hold them; the fields of a config are those of :class:`Config`.
"""

from dataclasses import dataclass
from enum import StrEnum

from spec.releases import ReleaseLine, line_of, numbers
from spec.tables import record


class Scope(StrEnum):
    BROKER = "broker"
    GROUP = "group"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    name: str  # The key.
    scope: Scope  # Where it is set.
    type: str  # As DescribeConfigs names it; ``ENUM`` is a STRING with a fixed choice.
    default: str  # As a text.
    low: int | None = None  # The smallest number that its definition allows, ``None`` for any.
    high: int | None = None  # The largest one.
    dynamic: bool = False  # Whether a running broker takes a new value.
    bounds: tuple[str, ...] = ()  # The broker keys that limit a group's value from below and above.
    broker: str = ""  # The broker key that a group without a value goes by.
    choice: tuple[str, ...] = ()  # The values of an ENUM.
    internal: bool = False  # Whether it is described only where it is set.


def load_configs(release: str, scope: Scope | None = None) -> dict[str, Config]:
    """Return a release's keys by name, all or those of one scope; raises SpecError."""
    numbers(release)
    return configs_of(line_of(release), scope)


def configs_of(line: ReleaseLine, scope: Scope | None = None) -> dict[str, Config]:
    return {
        name: record(Config, raw, f"config {name}", name=name, scope=each)
        for each in Scope
        if scope in {None, each}
        for name, raw in line.configs[each].items()
    }
