"""What there is when a request of the sweep is sent, and the request as a good client sends it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from fixtures.clients.cluster import Topic
from fixtures.wire.state_records import share_key
from spec.tables import parse

_FILE = "sweep.toml"
TABLES = parse((resources.files("spec") / _FILE).read_text(encoding="utf-8"), _FILE)
REQUESTS: Mapping[str, Mapping[str, dict[str, Any]]] = TABLES["requests"]

PARTITIONS, RECORDS = 2, 12
"""Partitions of each of the two topics, and records in each partition."""

MEMBER, EMPTY, NEW, STATE, CONSUMER = "member", "empty", "new", "state", "consumer"

Body = dict[str, Any]
Place = tuple[str, int, int]  # The name of a topic, a partition, and an offset.


@dataclass(kw_only=True)
class Scene:
    """The groups, the member and the topics of a case, and which offsets are to come afterwards."""

    group: str = "g"
    member: str = "m"
    topics: tuple[Topic, ...] = tuple(
        Topic(name=f"t{n}", id=uuid.UUID(int=9 + n), leaders=(1, 1)) for n in range(2)
    )
    epoch: int = 1
    session: int = 1
    starts: dict[tuple[str, int], int] = field(default_factory=dict)  # As an answer said.
    gone: set[Place] = field(default_factory=set)  # Must not come again.
    free: set[Place] = field(default_factory=set)  # May come.

    @property
    def other(self) -> str:
        return f"{self.group}-b"

    @property
    def all(self) -> set[Place]:
        offsets = range(RECORDS)
        return {(t.name, n, o) for t in self.topics for n in t.partitions for o in offsets}

    @property
    def due(self) -> set[Place]:
        return self.all - self.gone - self.free

    def named(self, topic: str | uuid.UUID) -> str:
        """Return the name of a topic that is named by its name or id; empty for a strange one."""
        return next((one.name for one in self.topics if topic in (one.name, one.id)), "")

    def request(self, api: str, what: str) -> Body:
        words = TABLES["constants"] | vars(self) | {"other": self.other}
        for n, topic in enumerate(self.topics, 1):
            key = share_key(self.group, topic.id, 0)
            words |= {f"topic{n}": topic.name, f"id{n}": topic.id, f"key{n}": key}
        body: Body = _filled(REQUESTS[api][what], words)
        return {name: value for name, value in body.items() if name != "scene"}


def _filled(value: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(inner, words) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, words) for inner in value]
    if isinstance(value, str) and value.startswith("$"):
        return _filled(words[value[1:]], words)
    return value
