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
    """One key as one release has it.

    Attributes:
        name: The key.
        scope: Where it is set.
        type: As DescribeConfigs names it; ``ENUM`` is a STRING with a fixed choice.
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


def load_configs(release: str, scope: Scope | None = None) -> dict[str, Config]:
    """Return the keys that a release has by name, all or those of one scope.

    Raises:
        SpecError: a table is malformed, or ``release`` is no release.
    """
    numbers(release)
    return configs_of(line_of(release), scope)


def configs_of(line: ReleaseLine, scope: Scope | None = None) -> dict[str, Config]:
    return {
        name: record(Config, raw, f"config {name}", name=name, scope=each)
        for each in Scope
        if scope in {None, each}
        for name, raw in line.configs[each].items()
    }
