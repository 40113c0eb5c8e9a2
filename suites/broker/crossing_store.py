"""State keys whose requests name other keys, too: :mod:`.crossing` for checks of state RPCs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fixtures.wire.codec import Struct
from spec.verdict import OutOfReach, Undecided
from suites.broker.statestore import StateKey, Store

SHIFT = 1000
"""By how much the offsets of the neighbours differ from the check's own."""

NOT_THERE = 1000
"""A partition that no topic has."""

SPREAD = 12
"""Partitions of a topic among which one is looked for that the same coordinator serves."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The neighbours of a key: another partition of its topic, and topics before and behind."""

    before: StateKey
    same: StateKey
    behind: StateKey


class CrossedKey(StateKey):
    """A key that stands in the middle of every list: of three topics, and of three partitions.

    The partition behind it does not exist, and the others have a state of their own.
    """

    def __init__(self, key: StateKey, beside: Beside) -> None:
        super().__init__(key.share, key.group, key.topic_id, key.partition)
        self.beside = beside

    def wanted(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the topics that a request names."""
        own = [
            {"partition": self.beside.same.partition} | _shifted(fields),
            {"partition": self.partition} | fields,
            {"partition": NOT_THERE} | _shifted(fields),
        ]
        before, behind = (
            {
                "topic_id": key.topic_id,
                "partitions": [{"partition": key.partition} | _shifted(fields)],
            }
            for key in (self.beside.before, self.beside.behind)
        )
        return [before, {"topic_id": self.topic_id, "partitions": own}, behind]

    def own(self, response: Struct) -> Struct:
        """Return this key's result in a response.

        Raises:
            Undecided: there is none.
        """
        for topic in response.results:
            for part in topic.partitions:
                if (topic.topic_id, part.partition) == (self.topic_id, self.partition):
                    result: Struct = part
                    return result
        raise Undecided(f"a response has no result for {self.text}")


def _shifted(fields: dict[str, Any]) -> dict[str, Any]:
    found = dict(fields)
    if found.get("start_offset", -1) >= 0:
        found["start_offset"] += SHIFT
    if "state_batches" in found:
        found["state_batches"] = [
            one | {name: one[name] + SHIFT for name in ("first_offset", "last_offset")}
            for one in found["state_batches"]
        ]
    return found


class CrossedStore(Store):
    """Makes keys with neighbours."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.share)
        self._keys = store._keys  # they are all forgotten in the end
        self.met: set[str] = set()

    async def keys(self, partitions: int, group: str | None = None) -> list[StateKey]:
        """Return keys of a new topic that were never initialised, with neighbours that were.

        Raises:
            OutOfReach: no neighbour has the coordinator of a key.
        """
        create = self.share.admin.create_topic
        topic = await create(partitions + SPREAD)
        others = [await create(SPREAD) for _ in range(2)]
        group = group or self.share.cluster.fresh_name("g")
        found: list[StateKey] = []
        for index in range(partitions):
            key = StateKey(self.share, group, topic.id, index)
            before, behind = [await self._near(key, other.id, range(SPREAD)) for other in others]
            spare = range(partitions, partitions + SPREAD)
            same = await self._near(key, topic.id, spare)
            await self._heard_of(key)
            self._keys.append(key)
            found.append(CrossedKey(key, Beside(before, same, behind)))
        self.met |= {"second topic", "many in one request"}
        return found

    async def _near(self, key: StateKey, topic_id: UUID, partitions: range) -> StateKey:
        """Return a neighbour on a topic that the coordinator of a key serves, with a state."""
        home = await key.node()
        for index in partitions:
            found = StateKey(self.share, key.group, topic_id, index)
            if await found.node() == home:
                await self._heard_of(found)
                self._keys.append(found)
                if (error := await found.initialize(0, SHIFT)) != "NONE":
                    raise Undecided(f"initialising a neighbour was answered {error}")
                return found
        raise OutOfReach(f"the coordinator of {key.text} serves no partition beside it")
