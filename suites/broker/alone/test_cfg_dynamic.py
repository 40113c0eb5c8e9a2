"""Which broker keys a running broker takes, and that it leaves the others as they are."""

from fixtures.clients.configs import Setting, alter, describe
from spec.configs import load_configs
from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

EVERYWHERE = ""  # The resource name of the default of all brokers.


def _other(config: Config, current: str | None) -> str:
    value = current or config.default
    match config.type:
        case "BOOLEAN":
            return "false" if value == "true" else "true"
        case "INT" | "SHORT":
            number = int(value)
            return str(number - 1 if config.high == number else number + 1)
        case _:
            return f"{value}x"


async def _shown(env: Env, name: str, resource: str = "") -> Setting | None:
    node = min(env.cluster.brokers)
    wanted = resource or str(node)
    found = await describe(env.cluster, BROKER_RESOURCE, wanted, node=node, keys=[name])
    return found.get(name)


async def _until_shown(env: Env, name: str, value: str) -> str | None:
    seen = await poll(lambda: _shown(env, name), lambda seen: seen and seen.value == value)
    return seen.value if seen else None


def _keys(lone: SingleBroker, *, dynamic: bool) -> list[Config]:
    known = load_configs(lone.target.version, Scope.BROKER).values()
    return [config for config in known if config.dynamic == dynamic]


@check("CFG-28", timeout=120)
async def test_static_keys_stay(lone: SingleBroker, judge: Judge) -> None:
    env = lone.env
    for config in _keys(lone, dynamic=False):
        before = await _shown(env, config.name)
        value = _other(config, before.value if before else None)
        for resource in (str(lone.node), EVERYWHERE):
            response = await alter(env.cluster, BROKER_RESOURCE, resource, {config.name: value})
            refused = response.error_code != ErrorCode.NONE
            judge.holds(refused, f"{config.name}={value} was taken at run time")
        after = await _shown(env, config.name)
        judge.equal(before, after, f"{config.name} after the attempt to alter it")
    judge.saw(keys=len(_keys(lone, dynamic=False)))


@check("CFG-09")
async def test_dynamic_keys_change(lone: SingleBroker, judge: Judge) -> None:
    env = lone.env
    for config in _keys(lone, dynamic=True):
        before = await _shown(env, config.name)
        value = _other(config, before.value if before else None)
        for resource in (str(lone.node), EVERYWHERE):
            where = f"for broker {resource}" if resource else "for all brokers"
            response = await alter(env.cluster, BROKER_RESOURCE, resource, {config.name: value})
            code = error_name(response.error_code)
            judge.equal("NONE", code, f"response to {config.name}={value} {where}")
            shown = await _until_shown(env, config.name, value)
            judge.equal(value, shown, f"{config.name} {where}")
            await alter(env.cluster, BROKER_RESOURCE, resource, {config.name: None})
            if before:
                shown = await _until_shown(env, config.name, str(before.value))
                judge.equal(before.value, shown, f"{config.name} taken back {where}")


@check("CFG-03")
async def test_defaults_serve_share_groups(lone: SingleBroker, judge: Judge) -> None:
    # What our brokers are given are listeners, replication factors and shorter times; a cluster
    # of 4.1 is formatted with share.version beside that, and later ones are not.
    level = await lone.level()
    judge.holds(level >= 1, f"share.version is {level} after formatting by default")
    given = lone.target.info.properties
    switches = [name for name in given if name.endswith(("share.enable", "rebalance.protocols"))]
    judge.equal([], switches, "switches for share groups among the properties")

    queue, consumer = await lone.env.with_consumer(reset=None)
    await consumer.fetch(max_wait_ms=0)
    offsets: list[int] = []
    async for _ in attempts(WITHIN):
        await queue.produce(1)
        offsets = consumer.sound(await consumer.fetch()).offsets
        if offsets:
            break
    if not offsets:
        raise await consumer.stopped("a group without any configuration gets no records")
    part = await consumer.ack(*(accept(offset) for offset in offsets))
    judge.equal("NONE", error_name(part.ack_error), "response to the acknowledgement")
