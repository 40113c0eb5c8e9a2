"""The stage on somebody's cluster: leaders move by requests of the admin API, and move back.

Of the internal topics only partitions that a check's own group uses are moved. Replicas trade
places, none is added or removed, and the order that was found is restored after the check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fixtures.clients.cluster import SHARE, share_key
from fixtures.wire.codec import Struct
from spec.verdict import OutOfReach
from suites.broker.failover.failover_cluster import FailoverCluster
from suites.broker.failover.placing import INTERNAL, described
from suites.broker.share import Share

Place = tuple[str, int]
"""A topic and a partition."""


class GuestCluster(FailoverCluster):
    """Brokers that nobody may break; make it by :meth:`of`."""

    def __init__(self, share: Share) -> None:
        super().__init__(share, ())
        self._found: Mapping[Place, Struct] = {}

    @classmethod
    async def of(cls, share: Share) -> GuestCluster:
        """Look at what will have to be restored.

        Raises:
            OutOfReach: there are too few brokers, or coordinators are found in another way.
        """
        if len(share.cluster.brokers) < 3:
            raise OutOfReach("a coordinator can be moved about where there are three brokers")
        topic = await share.admin.create_topic()
        # Asking for coordinators makes the internal topics where nobody has used them yet.
        await share.cluster.coordinator(share.cluster.info.prefix)
        await share.cluster.coordinator(share_key(share.cluster.info.prefix, topic.id, 0), SHARE)
        stage = cls(share)
        stage._found = await stage._partitions()
        if {name for name, _ in stage._found} != set(INTERNAL):
            raise OutOfReach(f"no topics {' and '.join(INTERNAL)} say which broker coordinates")
        return stage

    async def mend(self) -> None:
        """Give every partition of the internal topics the order of replicas and the leader it had.

        Raises:
            Undecided: that did not come about.
        """
        await self._poll("the leaders that were found leading again", self._restored)

    async def _restored(self) -> bool:
        now = await self._partitions()
        astray = [p for p, was in self._found.items() if _order(now[p]) != _order(was)]
        unled = [p for p, was in self._found.items() if now[p].leader_id != was.leader_id]
        connection = await self.cluster.any()
        if astray:
            await connection.call("AlterPartitionReassignments", topics=self._moves(astray))
        elif unled:
            named = [{"topic": name, "partitions": [index]} for name, index in unled]
            await connection.call("ElectLeaders", election_type=0, topic_partitions=named)
        return not astray and not unled

    def _moves(self, astray: list[Place]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "partitions": [{"partition_index": index, "replicas": _order(self._found[place])}],
            }
            for place in astray
            for name, index in [place]
        ]

    async def _partitions(self) -> dict[Place, Struct]:
        topics = await described(await self.cluster.any(), *INTERNAL)
        return {(topic.name, p.partition_index): p for topic in topics for p in topic.partitions}


def _order(partition: Struct) -> list[int]:
    return list(partition.replica_nodes)
