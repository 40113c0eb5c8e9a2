"""What checks of configurations share: the table of the release, bounds, and values beyond them."""

from __future__ import annotations

from dataclasses import dataclass

from fixtures.clients.configs import describe_broker, describe_group
from spec.configs import Config, Scope, load_configs
from spec.verdict import OutOfReach
from suites.broker.share import Share

LOCK = "share.record.lock.duration.ms"
HEARTBEAT = "share.heartbeat.interval.ms"
SESSION = "share.session.timeout.ms"
RESET = "share.auto.offset.reset"


def table(share: Share, scope: Scope) -> dict[str, Config]:
    """Return the keys that the release under test has.

    Raises:
        OutOfReach: nobody knows which release it is.
    """
    version = share.cluster.info.version
    if not version:
        raise OutOfReach("which keys there should be depends on a release that nobody knows")
    return load_configs(version, scope)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest and the largest value of a group's key; ``high`` is ``None`` for no limit."""

    low: int
    high: int | None

    @property
    def beyond(self) -> list[str]:
        """The values just outside."""
        below = [str(self.low - 1)]
        return below if self.high is None else [*below, str(self.high + 1)]


async def broker_values(share: Share) -> dict[str, str]:
    """Return the values of one broker's keys, those of the release's table where it hides them."""
    known = {name: config.default for name, config in table(share, Scope.BROKER).items()}
    shown = await describe_broker(share.cluster, min(share.cluster.brokers))
    return known | {name: setting.value for name, setting in shown.items() if setting.value}


def bounds(config: Config, broker: dict[str, str]) -> Bounds:
    """Return the range of a group's key under a broker with these values."""
    limits = [int(broker[name]) for name in config.bounds if name in broker]
    low, high = (limits[0], limits[1]) if len(limits) == 2 else (0, None)
    return Bounds(max(low, config.low or 0), high if config.high is None else config.high)


def wrong(config: Config, limits: Bounds) -> list[str]:
    """Return values that a group's key does not take: of another type, or outside its range."""
    match config.type:
        case "INT":
            return ["many", "1.5", *limits.beyond]
        case "BOOLEAN":
            return ["maybe", "1"]
        case "ENUM":
            return ["neither", config.choice[0][:-1]]
        case _:
            return []


async def everywhere(share: Share, group: str) -> dict[int, dict[str, str]]:
    """Return a group's configurations as each broker shows them."""
    return {
        node: await describe_group(share.cluster, group, node) for node in share.cluster.brokers
    }
