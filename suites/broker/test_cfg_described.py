"""What an administrator is shown of the configurations, key by key of the release's table."""

from fixtures.clients.configs import TYPES, Setting, Source, describe
from suites.broker.kit import *


def _missing(found: dict[str, Setting], known: dict[str, Config]) -> list[str]:
    """Return the keys of the table that are not shown; a broker may have more of its own."""
    wanted = {name for name, config in known.items() if not config.internal}
    return sorted(wanted - found.keys())


@check("CFG-18", fast=True)
async def test_group_keys(env: Env, judge: Judge) -> None:
    group = env.cluster.fresh_name("g")
    known = table(env, Scope.GROUP)
    broker = await broker_values(env)
    found = await describe(env.cluster, GROUP_RESOURCE, group)
    judge.equal([], _missing(found, known), "keys that are not shown")
    for name, config in known.items():
        if name not in found:
            continue
        setting = found[name]
        in_force = broker.get(config.broker, config.default) if config.broker else config.default
        judge.equal(in_force, setting.value, f"{name} of a group that sets nothing")
        kind = "STRING" if config.type == "ENUM" else config.type
        judge.equal(kind, TYPES[setting.type], f"type of {name}")
        own = setting.source == Source.GROUP
        judge.holds(not own, f"{name} is shown as the group's own, which set nothing")
        defaults = {
            in_force: "documentation of DescribeConfigs: what holds where the group sets nothing",
            config.default: "documentation of group configs: the column of defaults",
        }
        judge.one_of(defaults, setting.default, f"default shown of {name}")

    lock = _settable_lock(env)
    await env.admin.group_config(group, {LOCK: lock})
    setting = (await describe(env.cluster, GROUP_RESOURCE, group))[LOCK]
    seen = (setting.value, setting.source)
    judge.equal((lock, Source.GROUP), seen, f"{LOCK} and its source, once set")


@check("CFG-27", fast=True)
async def test_configured_groups_are_listed(env: Env, judge: Judge) -> None:
    group = env.cluster.fresh_name("g")
    judge.equal(False, group in await _listed(env), "whether it is listed before")
    await env.admin.group_config(group, {LOCK: _settable_lock(env)})
    names = await poll(lambda: _listed(env), lambda names: group in names)
    judge.equal(True, group in names, "whether a configured group is listed")


def _settable_lock(env: Env) -> str:
    # Where nobody may set it, the bounds are the value there is, and asking for that sets nothing.
    return "20001" if LOCK in env.cluster.fixed else str(env.bounds.lock(20_001))


async def _listed(env: Env) -> list[str]:
    connection = await env.cluster.any()
    response = await connection.call("ListConfigResources", resource_types=[GROUP_RESOURCE])
    return [resource.resource_name for resource in response.config_resources]


@check("CFG-26", fast=True)
async def test_broker_keys(env: Env, judge: Judge) -> None:
    known = table(env, Scope.BROKER)
    for node in sorted(env.cluster.brokers):
        found = await describe(env.cluster, BROKER_RESOURCE, str(node), node=node)
        judge.equal([], _missing(found, known), f"keys not shown by {node}")
        for name, config in known.items():
            if name in found:
                setting = found[name]
                judge.equal(config.type, TYPES[setting.type], f"type of {name}")
                judge.equal(config.default, setting.default, f"default of {name}")
        judge.saw(keys=len(found.keys() & known.keys()))
