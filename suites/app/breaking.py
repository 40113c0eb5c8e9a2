"""What breaks around the clients of a cluster, for tests that are no coroutines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fixtures.clients.cluster import Topic
from fixtures.hostile.script import ScriptStep
from suites.app.blocking import Queue, ShareCluster


class Chaos:
    """What breaks around the clients of a cluster."""

    def __init__(self, cluster: ShareCluster) -> None:
        self.cluster = cluster

    def move_leader(self, queue: Queue, partition: int = 0) -> int:
        """Make another broker the leader of a partition; return its id."""
        others = set(self.cluster.share.cluster.brokers) - {queue.made.leaders[partition]}
        moved = self.cluster.share.admin.move_leader(queue.made, min(others), partition)
        queue.made = self.cluster.run(moved)
        return min(others)

    @contextlib.contextmanager
    def frozen(self, queue: Queue, partition: int = 0) -> Iterator[None]:
        """Freeze the broker that leads a partition: its connections stay, and nothing passes."""
        self.cluster.freezer.freeze(queue.made.leaders[partition])
        try:
            yield
        finally:
            self.cluster.run(self._thaw())

    async def _thaw(self) -> None:
        self.cluster.freezer.thaw()

    def lose_responses(self, times: int = 1) -> ScriptStep:
        """Close the connection instead of responding to the next acknowledgements."""
        on = ["ShareAcknowledge", "ShareFetch"]
        return self.cluster.step(on=on, when={"has": "acks"}, do="close", times=times)

    def refuse_writes(self, topic: Topic, times: int = 1) -> None:
        """Let the next writes to a topic fail."""
        self.cluster.refuser.topic, self.cluster.refuser.left = topic, times

    def close_connections(self) -> None:
        """Close every connection: share sessions, and the locks they hold, end."""

        async def close() -> int:
            return self.cluster.tap.close_connections()

        self.cluster.run(close())
