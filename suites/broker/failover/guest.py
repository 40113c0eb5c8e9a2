"""The stage on somebody's cluster: leaders move by requests of the admin API, and move back.

Of the internal topics only partitions that a check's own group uses are moved. Replicas trade
places, none is added or removed, and the order that was found is restored after the check.

Brokers are broken by their owner's hooks only, and only where that loses nothing: of three brokers
that are in sync, each with a replica of every partition of the internal topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fixtures.clients.cluster import SHARE, share_key
from fixtures.interface.handle import Handle
from fixtures.targets.hooks import Hooks, hooked_brokers
from fixtures.wire.codec import Struct
from spec.verdict import OutOfReach, Undecided
from suites.broker.failover.failover_cluster import FailoverCluster
from suites.broker.failover.placing import INTERNAL, described
from suites.broker.share import Share

NO_HOOKS = "needs hooks that break brokers: give --hooks FILE"

Place = tuple[str, int]
"""A topic and a partition."""


class GuestCluster(FailoverCluster):
    """Brokers that nobody may break but by hooks; make it by :meth:`of`."""

    def __init__(self, share: Share, brokers: Sequence[Handle] = ()) -> None:
        super().__init__(share, brokers)
        self._found: Mapping[Place, Struct] = {}

    @classmethod
    async def of(cls, share: Share, hooks: Hooks | None = None) -> GuestCluster:
        """Look at what will have to be restored.

        Raises:
            OutOfReach: there are too few brokers, coordinators are found in another way, or what
                hooks break would not get whole.
        """
        if len(share.cluster.brokers) < 3:
            raise OutOfReach("a coordinator can be moved about where there are three brokers")
        topic = await share.admin.create_topic()
        # Asking for coordinators makes the internal topics where nobody has used them yet.
        await share.cluster.coordinator(share.cluster.info.prefix)
        await share.cluster.coordinator(share_key(share.cluster.info.prefix, topic.id, 0), SHARE)
        stage = cls(share, hooked_brokers(share.cluster, hooks) if hooks else ())
        stage._found = await stage._partitions()
        if {name for name, _ in stage._found} != set(INTERNAL):
            raise OutOfReach(f"no topics {' and '.join(INTERNAL)} say which broker coordinates")
        if stage.brokers:
            await stage._expendable()
        return stage

    async def _expendable(self) -> None:
        """Look whether a broker can be away without loss.

        Raises:
            OutOfReach: it cannot.
        """
        nodes = set(self.nodes)
        if len(nodes) != 3 or any(set(_order(each)) != nodes for each in self._found.values()):
            raise OutOfReach(
                "brokers are broken where there are three, each with all of the internal topics"
            )
        try:
            await self.caught_up()
        except Undecided as reason:
            raise OutOfReach(f"no broker is broken before all is well: {reason}") from None

    async def mend(self) -> None:
        """Give every partition of the internal topics the order of replicas and the leader it had.

        Raises:
            EnvironmentFault, Undecided: that did not come about.
        """
        if self.brokers:
            await self.revive()
        await self._poll("the leaders that were found leading again", self._restored)
        if self.brokers:
            await self.answering()

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
