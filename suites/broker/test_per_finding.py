"""Finding the share coordinator of a share-partition (FindCoordinator, key type SHARE)."""

import base64

from suites.broker.kit import *

ODD_GROUPS = (
    *("g", "a:b", "a:b:c", ":", "::", "trailing:", ":leading", "a:AAAAAAAAAAAAAAAAAAAAAQ:7"),
    *("with space", "tab\there", "line\nbreak", "Grüße", "組", "🦆🦆", "%2F/\\..", "a" * 249),
)
"""Group ids of every kind that a client may choose."""


async def _coordinators(env: Env, node: int, keys: Sequence[str]) -> list[Struct]:
    """Return what one broker says of each key, once it says it of all of them."""

    async def ask() -> list[Struct] | None:
        response = await (await env.cluster.to(node)).call(
            "FindCoordinator", key_type=SHARE, coordinator_keys=list(keys)
        )
        found = {each.key: each for each in response.coordinators}
        if any(each.error_code in RETRIABLE for each in found.values()):
            return None
        return [found[key] for key in keys if key in found]

    return await eventually(f"broker {node} naming coordinators", ask)


@check("PER-31", fast=True)
async def test_everybody_names_the_same(env: Env, judge: Judge) -> None:
    rng = env.rng
    keys = [
        share_key(f"{group}{suffix}", uuid.UUID(bytes=rng.randbytes(16)), rng.randint(0, 99))
        for group in ODD_GROUPS
        for suffix in ("", *(f"{rng.getrandbits(24):x}" for _ in range(15)))
    ]
    topic = await env.cluster.topic(STATE_TOPIC)
    homes = [topic.leaders[partition_of(key, len(topic.leaders))] for key in keys]
    for node in sorted(env.cluster.brokers):
        seen = [(c.key, c.error_code, c.node_id) for c in await _coordinators(env, node, keys)]
        if (await env.cluster.topic(STATE_TOPIC)).leaders != topic.leaders:
            raise Undecided(f"leaders of {STATE_TOPIC} moved meanwhile")
        expected = [(key, 0, home) for key, home in zip(keys, homes, strict=True)]
        judge.equal(expected, seen, f"keys and coordinators as broker {node} has them")
    judge.saw(keys=len(keys), coordinators=len(set(homes)))


@check("PER-32", fast=True)
async def test_malformed_keys(env: Env, judge: Judge) -> None:
    node = min(env.cluster.brokers)
    topic = base64.urlsafe_b64encode(uuid.uuid5(uuid.NAMESPACE_DNS, "t").bytes).decode().rstrip("=")
    for key in (
        *("group", f"group:{topic}", f"{topic}:0", f"group:{topic}:", f"group:{topic}:one"),
        *(f"group:{topic}:99999999999", "group::0", "group:not a topic id:0", f":{topic}:0"),
    ):
        errors = [error_name(one.error_code) for one in await _coordinators(env, node, [key])]
        judge.equal(["INVALID_REQUEST"], errors, f"errors of finding the coordinator of {key!r}")
