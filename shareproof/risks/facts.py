"""What ``shareproof risks`` reads of a cluster.

It writes nothing, and nothing comes to be by it: FindCoordinator, which creates topics, is not
sent, and Metadata may create none.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fixtures.clients.admin import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from fixtures.clients.cluster import Cluster
from fixtures.clients.configs import Source
from fixtures.interface.info import ClusterInfo
from fixtures.targets.leftovers import Refused, call, go_on
from fixtures.wire.codec import Struct, WireError
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import OutOfReach

STATE, TRANSACTIONS = "__share_group_state", "__transaction_state"
_BATCH = 200  # names in a request
_OURS = ("share.", "group.share.", "share.coordinator.", "errors.deadletterqueue.")
_OTHERS = {
    *("connections.max.idle.ms", "authorizer.class.name", "cleanup.policy", "retention.ms"),
    *("retention.bytes", "min.insync.replicas", "unclean.leader.election.enable"),
    "max.message.bytes",
}
_NAMES = ("group_id", "resource_name", "name")
_SOFTWARE = ("name", "version")
_LIMITS = {"consumer_byte_rate", "request_percentage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic; ``replicas`` are those of the partition that has fewest."""

    partitions: int
    replicas: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A share group; ``most`` of its members are assigned the same partition.

    ``configs`` are in force, ``own`` are the names of those that the group has of its own.
    """

    members: int = 0
    most: int = 0
    topics: tuple[str, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()

    @property
    def letters(self) -> str:
        """The dead-letter topic; empty for none."""
        return self.configs.get("errors.deadletterqueue.topic.name", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was read: finalized levels of features, configurations by broker, and so on.

    ``release`` is such as ``4.3.1``, or ``4.3`` where only the line is known, or empty. ``topics``
    are those that groups read or write, and Kafka's own; ``missing`` those that are not there.
    ``quotas`` limit fetches, by client. ``unread`` says what could not be read, and why.
    """

    target: str
    release: str = ""
    levels: Mapping[str, int] = field(default_factory=dict)
    brokers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    quotas: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


async def read(info: ClusterInfo, release: str = "") -> Facts:
    """Read a running cluster; ``release`` is what somebody says that it is."""
    async with Cluster(info) as cluster:
        reader = _Reader(cluster)
        groups = await reader.groups()
        named = {name for group in groups.values() for name in (*group.topics, group.letters)}
        topics, missing = await reader.topics(sorted({STATE, TRANSACTIONS, *named} - {""}))
        return Facts(
            target=info.name,
            release=release or info.version,
            levels=await reader.levels(),
            brokers=await reader.brokers(),
            topics=topics,
            missing=tuple(missing),
            groups=groups,
            quotas=await reader.quotas(),
            unread=tuple(dict.fromkeys(reader.unread)),
        )


class _Reader:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.unread: list[str] = []

    async def _ask(
        self, what: str, api: str, parts: str, node: int | None = None, **fields: Any
    ) -> list[Struct]:
        """Return the parts of a response that have no error; note those that have, or all."""
        try:
            response = await call(self._cluster, api, node, **fields)
        except (Refused, CallFailed, WireError, OutOfReach) as fault:
            self.unread.append(f"{what}: {fault}")
            await go_on(self._cluster, fault)
            return []
        found = []
        for part in getattr(response, parts) or ():
            code = getattr(part, "error_code", 0)
            if code and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                name = next(iter(getattr(part, n) for n in _NAMES if hasattr(part, n)), what)
                self.unread.append(f"{what} {name}: {error_name(code)}")
            else:
                found.append(part)
        return found

    async def levels(self) -> dict[str, int]:
        ours: dict[str, Any] = {f"client_software_{key}": "shareproof" for key in _SOFTWARE}
        found = await self._ask("levels", "ApiVersions", "finalized_features", **ours)
        return {one.name: one.max_version_level for one in found}

    async def brokers(self) -> dict[str, dict[str, str]]:
        found = {}
        for node in sorted(self._cluster.brokers):
            for one in await self._described(BROKER_RESOURCE, "broker", [str(node)], node):
                found[one.resource_name] = _shown(one)
        return found

    async def groups(self) -> dict[str, Group]:
        found: dict[str, Group] = {}
        for node in sorted(self._cluster.brokers):
            what = f"groups of broker {node}:"
            kinds: dict[str, Any] = {"states_filter": [], "types_filter": ["share"]}
            listed = await self._ask(what, "ListGroups", "groups", node, **kinds)
            for names in _some([group.group_id for group in listed]):
                asked = {"group_ids": names}
                described = await self._ask(what, "ShareGroupDescribe", "groups", node, **asked)
                members = {one.group_id: one.members for one in described}
                found |= {name: _group(members.get(name, ())) for name in names}
        what, kinds = "groups with configurations", {"resource_types": [GROUP_RESOURCE]}
        known = await self._ask(what, "ListConfigResources", "config_resources", **kinds)
        names = sorted({*found, *(one.resource_name for one in known)})
        for one in await self._described(GROUP_RESOURCE, "group", names):
            stored = (config.name for config in one.configs if config.config_source == Source.GROUP)
            own = tuple(sorted(name for name in stored if name.startswith(_OURS)))
            if one.resource_name in found or own:
                group = found.get(one.resource_name, Group())
                found[one.resource_name] = replace(group, configs=_shown(one), own=own)
        return found

    async def topics(self, names: Sequence[str]) -> tuple[dict[str, Topic], list[str]]:
        found: dict[str, Topic] = {}
        missing = []
        for some in _some(names):
            asked: dict[str, Any] = {"topics": [{"name": name} for name in some]}
            create = {"allow_auto_topic_creation": False}
            for topic in await self._ask("topic", "Metadata", "topics", **asked, **create):
                if topic.error_code:
                    missing.append(topic.name)
                else:
                    fewest = min((len(one.replica_nodes) for one in topic.partitions), default=0)
                    found[topic.name] = Topic(partitions=len(topic.partitions), replicas=fewest)
        for one in await self._described(TOPIC_RESOURCE, "topic", sorted(found)):
            found[one.resource_name] = replace(found[one.resource_name], configs=_shown(one))
        return found, missing

    async def quotas(self) -> dict[str, str]:
        every: dict[str, Any] = {"components": [], "strict": False}
        found: dict[str, str] = {}
        for entry in await self._ask("quotas", "DescribeClientQuotas", "entries", **every):
            who = ", ".join(f"{e.entity_type} {e.entity_name or '<default>'}" for e in entry.entity)
            limits = [f"{one.key}={one.value:g}" for one in entry.values if one.key in _LIMITS]
            found |= {who: ", ".join(limits)} if limits else {}
        return found

    async def _described(
        self, resource: int, kind: str, names: Sequence[str], node: int | None = None
    ) -> list[Struct]:
        found, every = [], {"resource_type": resource, "configuration_keys": None}
        for some in _some(names):
            asked = {"resources": [{**every, "resource_name": name} for name in some]}
            what = f"configurations of {kind}"
            found += await self._ask(what, "DescribeConfigs", "results", node, **asked)
        return found


def _some(names: Sequence[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), _BATCH):
        yield list(names[at : at + _BATCH])


def _group(members: Sequence[Struct]) -> Group:
    held: Counter[tuple[str, int]] = Counter()
    for member in members:
        for topic in member.assignment.topic_partitions:
            held.update((topic.topic_name, partition) for partition in topic.partitions)
    topics = {name for member in members for name in member.subscribed_topic_names}
    most = max(held.values(), default=0)
    return Group(members=len(members), most=most, topics=tuple(sorted(topics)))


def _shown(described: Struct) -> dict[str, str]:
    return {
        config.name: config.value
        for config in described.configs
        if config.value is not None and (config.name.startswith(_OURS) or config.name in _OTHERS)
    }
