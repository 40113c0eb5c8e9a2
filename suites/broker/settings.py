"""Configurations and quotas: the table of the release, bounds and values beyond, members held back.

Since KIP-219 a broker that throttles answers at once, says for how long it will not listen, and
does not listen. The connection of the share session has a client id of its own, so that a quota
meets this one member and nobody else.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fixtures.clients.configs import describe_broker, describe_group
from fixtures.clients.member import Response, Session
from fixtures.clients.users import set_quotas
from spec.configs import Config, Scope, load_configs
from spec.verdict import OutOfReach
from suites.broker.env import Consumer, Env

LOCK = "share.record.lock.duration.ms"
HEARTBEAT = "share.heartbeat.interval.ms"
SESSION = "share.session.timeout.ms"
RESET = "share.auto.offset.reset"


def table(env: Env, scope: Scope) -> dict[str, Config]:
    version = env.cluster.info.version
    if not version:
        raise OutOfReach("which keys there should be depends on a release that nobody knows")
    return load_configs(version, scope)


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The smallest and the largest value of a group's key; ``high`` is ``None`` for no limit."""

    low: int
    high: int | None

    @property
    def beyond(self) -> list[str]:
        below = [str(self.low - 1)]
        return below if self.high is None else [*below, str(self.high + 1)]


async def broker_values(env: Env) -> dict[str, str]:
    known = {name: config.default for name, config in table(env, Scope.BROKER).items()}
    shown = await describe_broker(env.cluster, min(env.cluster.brokers))
    return known | {name: setting.value for name, setting in shown.items() if setting.value}


def bounds(config: Config, broker: dict[str, str]) -> ValueRange:
    limits = [int(broker[name]) for name in config.bounds if name in broker]
    low, high = (limits[0], limits[1]) if len(limits) == 2 else (0, None)
    return ValueRange(max(low, config.low or 0), high if config.high is None else config.high)


def wrong(config: Config, limits: ValueRange) -> list[str]:
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


async def everywhere(env: Env, group: str) -> dict[int, dict[str, str]]:
    return {n: await describe_group(env.cluster, group, n) for n in env.cluster.brokers}


LITTLE = 0.0001
"""A request quota that any request exceeds, in percent of one thread; it delays for a second."""


@asynccontextmanager
async def held_to(env: Env, consumer: Consumer, **quotas: float) -> AsyncIterator[None]:
    """Hold a consumer to quotas, on a new connection whose client id has the run's prefix."""
    if "AlterClientQuotas" not in (await env.cluster.any()).versions:
        raise OutOfReach("the broker has no client quotas")
    name = env.cluster.fresh_name("q")
    topic, partition = consumer.where
    connected = await env.cluster.dial(topic.leaders[partition], name)
    consumer.session = Session(connected, consumer.session.group, consumer.member_id)
    await set_quotas(env.cluster, name, quotas, kind="client-id")
    try:
        yield
    finally:
        await set_quotas(env.cluster, name, dict.fromkeys(quotas), kind="client-id")


def delay(response: Response) -> int:
    return int(response.raw.throttle_time_ms)
