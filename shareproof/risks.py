"""Which risks a cluster has: findings that apply to its release, and configurations of its own.

``shareproof risks`` reads a cluster and writes nothing, and nothing comes to be by it:
FindCoordinator, which creates topics, is not sent, and Metadata may create none.

A risk is named by its id in ``spec/risks.toml``, a finding by its ``where`` in ``findings.toml``.
What is seen in a cluster of each is a table.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from fixtures.clients.admin import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from fixtures.clients.cluster import Cluster
from fixtures.clients.configs import Source
from fixtures.interface.info import ClusterInfo
from fixtures.targets.leftovers import Refused, call, go_on
from fixtures.wire.codec import Struct, WireError
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode, error_name
from reports.html import PAGE, filled
from spec.catalogue import RANKS, Risk, load_findings, load_risks
from spec.ledger import Ledger, covers
from spec.releases import line_of
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
                found |= {name: _group_of(members.get(name, ())) for name in names}
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


def _group_of(members: Sequence[Struct]) -> Group:
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


Seen = Iterator[tuple[str, str]]
"""Ids, each with a value that makes it so."""

POLL = 500
"""``max.poll.records`` of a consumer by default: no broker knows its own."""
_FULL = 0.9
_WEEK = 7 * 24 * 3_600_000  # ms
_RETRIED = 45_000  # ms; a leader repeats a state write for half a minute before it gives up
_RESET, _ISOLATION = "share.auto.offset.reset", "share.isolation.level"
_UNCLEAN, _POLICY = "unclean.leader.election.enable", "cleanup.policy"
_LETTERS, _AUTHORIZER = "errors.deadletterqueue.", "authorizer.class.name"
_STATE = "share.coordinator.state.topic."


def look(facts: Facts) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, list[str]]] = {}
    for one, said in (*_state_topic(facts), *_cluster(facts)):
        found.setdefault(one, {})[said] = []
    for name, group in facts.groups.items():
        for one, said in (*_group(facts, group), *_letters(facts, group)):
            found.setdefault(one, {}).setdefault(said, []).append(name)
    return {one: tuple(map(_told, seen, seen.values())) for one, seen in found.items()}


def _told(said: str, groups: list[str], most: int = 3) -> str:
    more = f" and {len(groups) - most} more" if len(groups) > most else ""
    return f"{said}: group {', '.join(sorted(groups)[:most])}{more}" if groups else said


def _number(facts: Facts, key: str, group: Group | None = None) -> int:
    """Return a number of a group, or else the smallest that a broker shows; 0 where none does."""
    own = group.configs.get(key) if group else None
    key = f"group.{key}" if group else key
    shown = [own] if own else [configs[key] for configs in facts.brokers.values() if key in configs]
    return min(map(int, shown), default=0)


def _state_topic(facts: Facts) -> Seen:
    topic, there = facts.topics.get(STATE), len(facts.brokers)
    replicas, least = (_number(facts, _STATE + end) for end in ("replication.factor", "min.isr"))
    if topic:
        replicas, least = topic.replicas, int(topic.configs.get("min.insync.replicas", 0))
    if 0 < replicas < 3:
        yield "state-topic-replicas", f"replicas of {STATE}: {replicas}"
    if least == 1:
        yield "state-topic-min-isr", f"min.insync.replicas of {STATE}: 1"
    if least > replicas > 0 or least == replicas > 1:
        yield "state-topic-none-may-be-away", f"in sync: {least} of {replicas} replicas of {STATE}"
    if STATE in facts.missing and replicas > there:
        yield "state-topic-cannot-be-made", f"replicas of {STATE}: {replicas}, brokers: {there}"
    configs = topic.configs if topic else {}
    for key, usual in ((_POLICY, "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")):
        if (shown := configs.get(key, usual)) != usual:
            yield "state-topic-retention", f"{key} of {STATE}: {shown}"
    if configs.get(_UNCLEAN) == "true":
        yield "state-topic-unclean", f"{_UNCLEAN} of {STATE}: true"


def _cluster(facts: Facts) -> Seen:
    if facts.levels and not facts.levels.get("share.version"):
        yield "share-groups-off", "the finalized level of share.version: 0"
    most = _number(facts, "group.share.max.share.sessions")
    members = sum(group.members for group in facts.groups.values())
    if 0 < most * _FULL <= members:
        yield "sessions-nearly-full", f"members: {members}, group.share.max.share.sessions={most}"
    for key in sorted({key for configs in facts.brokers.values() for key in configs}):
        shown = {node: configs[key] for node, configs in facts.brokers.items() if key in configs}
        if len(set(shown.values())) > 1 and key.startswith("group.share."):
            yield "brokers-differ", f"{key} of brokers: {shown}"
        if key == _AUTHORIZER and (name := max(shown.values())):
            yield "authorizer", f"{key}={name}"
    limit = _number(facts, "group.share.delivery.count.limit")
    for who, what in facts.quotas.items():
        yield "quotas", f"{what} of {who}, and share.delivery.count.limit={limit} by default"


def _group(facts: Facts, group: Group) -> Seen:
    configs = group.configs
    if (reset := configs.get(_RESET, "earliest")) != "earliest":
        yield "late resets", f"{_RESET}={reset}"
    if reset == "latest":
        yield "reset-latest", f"{_RESET}={reset}"
    if (isolation := configs.get(_ISOLATION)) == "read_committed":
        yield "read_committed", f"{_ISOLATION}={isolation}"
    elif isolation and TRANSACTIONS in facts.topics:
        yield "aborted-records-are-read", f"{_ISOLATION}={isolation}, and transactions are in use"
    yield from _limits(facts, group)
    for key in group.own:
        ends = (key.replace("share", f"group.share.{end}", 1) for end in ("min", "max"))
        low, high = (_number(facts, end) for end in ends)
        if (value := configs.get(key, "")).isdigit() and low and not low <= int(value) <= high:
            yield "group-value-out-of-bounds", f"{key}={value}, and brokers allow {low} to {high}"
    for topic in _sources(facts, group):
        if "compact" in topic.configs.get(_POLICY, ""):
            yield "compacted topics", "it reads a compacted topic"
        if topic.configs.get(_UNCLEAN) == "true":
            yield "unclean elections", f"it reads a topic with {_UNCLEAN}=true"


def _limits(facts: Facts, group: Group) -> Seen:
    def number(key: str) -> int:
        return _number(facts, f"share.{key}", group)

    lock, idle = number("record.lock.duration.ms"), _number(facts, "connections.max.idle.ms")
    if 0 < idle <= lock:
        said = f"share.record.lock.duration.ms={lock}, connections.max.idle.ms={idle}"
        yield "lock-outlasts-connection", said
    if 0 < lock < _RETRIED:
        yield "short locks", f"share.record.lock.duration.ms={lock}"
    if 0 < (limit := number("delivery.count.limit")) < 3:
        yield "delivery-limit-low", f"share.delivery.count.limit={limit}"
    session, beat = number("session.timeout.ms"), number("heartbeat.interval.ms")
    if 0 < session < 3 * beat:
        said = f"share.session.timeout.ms={session}, share.heartbeat.interval.ms={beat}"
        yield "session-near-heartbeat", said
    locks = number("partition.max.record.locks")
    if group.most > 1 and 0 < locks < group.most * POLL:
        said = f"share.partition.max.record.locks={locks}, and {group.most} members of a partition"
        yield "window-against-members", said
    size = _number(facts, "group.share.max.size")
    if 0 < size * _FULL <= group.members:
        yield "group-nearly-full", f"members: {group.members}, group.share.max.size={size}"


def _letters(facts: Facts, group: Group) -> Seen:
    name, copied = group.letters, group.configs.get(f"{_LETTERS}copy.record.enable")
    if not name:
        return
    yield "dead letters", f"they go to {name}"
    if any(configs.get(_AUTHORIZER) for configs in facts.brokers.values()):
        yield "letters under an authorizer", f"there is an authorizer, and they go to {name}"
    key = f"{_LETTERS}auto.create.topics.enable"
    created = any(configs.get(key) == "true" for configs in facts.brokers.values())
    if name in facts.missing and not created:
        yield "dead-letter-topic-missing", f"there is no topic {name}, and none is made"
    if copied:
        id_ = "copies" if copied == "true" else "dead-letter-without-copy"
        yield id_, f"{_LETTERS}copy.record.enable={copied}"
    if name in group.topics:
        yield "dead-letter-cycle", f"it reads {name}"
    sources = _sources(facts, group)
    compacted = any("compact" in one.configs.get(_POLICY, "") for one in sources)
    if compacted or TRANSACTIONS in facts.topics:
        yield "dead letters of odd offsets", "a compacted source, or transactions are in use"
    if topic := facts.topics.get(name):
        yield from _letter_topic(name, topic, sources)
        largest = [int(one.configs.get("max.message.bytes", 0)) for one in (topic, *sources)]
        if copied == "true" and 0 < largest[0] <= max(largest[1:], default=0):
            yield "copies of large batches", f"max.message.bytes={largest[0]} of {name}"


def _letter_topic(name: str, topic: Topic, sources: list[Topic]) -> Seen:
    if topic.configs.get(f"{_LETTERS}group.enable") == "false":
        yield "dead-letter-topic-not-permitted", f"{_LETTERS}group.enable=false of {name}"
    if "compact" in (policy := topic.configs.get(_POLICY, "")):
        yield "dead-letter-topic-compacted", f"{_POLICY}={policy} of {name}"
    if (kept := _kept(topic)) < min([_WEEK, *map(_kept, sources)]):
        yield "dead-letter-retention", f"retention.ms={kept:g} of {name}"
    if topic.partitions < (most := max((source.partitions for source in sources), default=0)):
        said = f"partitions of {name}: {topic.partitions}, of a source: {most}"
        yield "dead-letter-few-partitions", said


def _sources(facts: Facts, group: Group) -> list[Topic]:
    return [facts.topics[name] for name in group.topics if name in facts.topics]


def _kept(topic: Topic) -> float:
    kept = topic.configs.get("retention.ms", "-1")
    removed = "delete" in topic.configs.get(_POLICY, "delete") and kept != "-1"
    return int(kept) if removed else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A risk of a cluster; ``seen`` is what makes it so, nothing for a defect of every cluster.

    ``avoidable``: this cluster has it, unlike others, and a change of it helps.
    """

    risk: Risk
    seen: tuple[str, ...]
    avoidable: bool


def risks_of(facts: Facts, ledger: Ledger) -> tuple[Found, ...]:
    seen = look(facts)
    risks = [risk for risk in load_risks().values() if risk.id in seen]
    for finding in load_findings().values():
        ranges = [known.versions for known in ledger.expected if known.finding == finding.id]
        ranges += [] if finding.versions is None else [finding.versions]
        there = not finding.where or finding.where in seen
        if there and any(_has(versions, facts.release) for versions in ranges):
            risks.append(finding)
    found = []
    for risk in risks:
        values = seen.get(risk.where or risk.id, ())
        found.append(Found(risk=risk, seen=values, avoidable=bool(values and risk.avoid)))
    return tuple(sorted(found, key=lambda one: (RANKS.index(one.risk.rank), not one.avoidable)))


def _has(versions: str, release: str) -> bool:
    if release.count(".") != 1:
        return covers(versions, release) or not release
    return any(covers(versions, one) for one in (f"{release}.0", line_of(release).default))


def lines(facts: Facts, found: Sequence[Found]) -> Iterator[str]:
    yield _heading(facts)
    for rank, risks in groupby(found, key=lambda one: one.risk.rank):
        yield f"\n{rank}"
        for one in risks:
            risk, tried = one.risk, "" if one.risk.tried or not one.risk.seen else " (not tried)"
            yield f"  {risk.id}: {risk.what} ({risk.rules})"
            yield from (f"      seen   {value}" for value in one.seen)
            yield from [f"      do     {risk.avoid}{tried}"] if risk.avoid else ()
            yield from [f"      tried  {risk.tried}"] if risk.tried else ()
    yield ""
    yield from (f"could not be read: {one}" for one in facts.unread)
    yield _counted(found)


def page(facts: Facts, found: Sequence[Found]) -> str:
    style = (PAGE / "report.css").read_text(encoding="utf-8")
    said = {"cluster": _heading(facts), "counted": _counted(found)}
    return filled("risks.html.jinja", facts=facts, found=found, style=style, **said)


def _heading(facts: Facts) -> str:
    release = facts.release or "an unknown release"
    patch = ", of which no patch release can be told: --release" if release.count(".") == 1 else ""
    level = facts.levels.get("share.version")
    share = f", share.version {level}" if level is not None else ""
    counts = f"brokers read: {len(facts.brokers)}, share groups: {len(facts.groups)}"
    return f"{facts.target}: Kafka {release}{patch}{share}; {counts}"


def _counted(found: Sequence[Found]) -> str:
    own = sum(one.avoidable for one in found)
    defects = sum(bool(one.risk.seen) for one in found)
    return f"{len(found)} risks, {defects} of them defects of the release; avoidable here: {own}"
