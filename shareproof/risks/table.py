"""What is seen in a cluster of each risk: of configurations that users regret, and of findings.

A risk is named by its id in ``spec/risks.toml``, a finding by its ``where`` in ``findings.toml``.
"""

from collections.abc import Iterator

from shareproof.risks.facts import STATE, TRANSACTIONS, Facts, Group, Topic

Seen = Iterator[tuple[str, str]]
"""Ids, each with a value that makes it so."""

POLL = 500
"""``max.poll.records`` of a consumer by default: no broker knows its own."""
_FULL = 0.9
_WEEK = 7 * 24 * 3_600_000  # ms
_RETRIED = 45_000  # ms; a leader repeats a state write for half a minute before it gives up
_RESET, _ISOLATION = "share.auto.offset.reset", "share.isolation.level"
_UNCLEAN, _POLICY = "unclean.leader.election.enable", "cleanup.policy"
_LETTERS = "errors.deadletterqueue."
_STATE = "share.coordinator.state.topic."


def look(facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return what is seen by id; groups and topics of which the same is seen stand together."""
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
        if key == "authorizer.class.name" and (name := max(shown.values())):
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
