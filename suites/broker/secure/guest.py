"""The realm on somebody's cluster: users who log in as the owner of the cluster says.

``--second-config`` has the login of somebody who may do nothing. Where it is one by SCRAM, a check
makes users of its own, who come by the same listener. Otherwise there is this one principal.

Users ask one broker, the first. So topics are led by it, and groups have names that it coordinates.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Any

from fixtures.clients.access import access_of
from fixtures.clients.acls import EVERY, THE_CLUSTER, Entry
from fixtures.clients.admin import Admin
from fixtures.clients.bounds import bounds_of
from fixtures.clients.cluster import Cluster, Topic
from fixtures.clients.users import create_user
from fixtures.interface.info import ClusterInfo
from fixtures.wire.errors import ErrorCode
from fixtures.wire.frame import Transcript
from fixtures.wire.placing import partition_of
from fixtures.wire.schema import Schemas
from fixtures.wire.security import SCRAM
from spec.verdict import OutOfReach
from suites.broker.failover.placing import OFFSETS, described, leaders
from suites.broker.secure.realm import Realm, User
from suites.broker.secure.settings import SECURED
from suites.broker.share import Share

NO_SECOND = "needs a second principal: give --second-config FILE"


class HomeCluster(Cluster):
    """A cluster whose first broker coordinates all groups that get their names here."""

    _coordinators: tuple[int, ...] = ()

    async def settle(self) -> None:
        """Look who coordinates which groups."""
        await self.coordinator(super().fresh_name("g"))
        self._coordinators = leaders((await described(await self.any(), OFFSETS))[0])

    def fresh_name(self, kind: str = "q") -> str:
        """Return a name as any cluster does; of a group, one that the first broker coordinates."""
        name = super().fresh_name(kind)
        while kind == "g" and not self.at_home(name):
            name = super().fresh_name(kind)
        return name

    def at_home(self, group: str) -> bool:
        """Return whether the first broker coordinates a group."""
        every = self._coordinators
        return not every or every[partition_of(group, len(every))] == min(self.brokers)


class HomeAdmin(Admin):
    """Creates topics that the first broker leads."""

    async def create_topic(
        self,
        partitions: int = 1,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        **options: Any,
    ) -> Topic:
        """Create a topic as any admin does, with its partitions on the first broker."""
        placed = assignments or [[min(self.cluster.brokers)]] * partitions
        return await super().create_topic(partitions, assignments=placed, **options)


@contextlib.asynccontextmanager
async def at_home(
    info: ClusterInfo, rng: Random, transcripts: list[Transcript], schemas: Schemas
) -> AsyncIterator[Share]:
    """Connect one check to a cluster of which it uses the first broker."""
    transcript = Transcript()
    transcripts.append(transcript)
    async with HomeCluster(info, schemas=schemas, transcript=transcript, rng=rng) as cluster:
        await cluster.any()
        share = Share(cluster, rng, await bounds_of(cluster), await access_of(cluster))
        if len(cluster.brokers) > 1:
            await cluster.settle()
            share.admin = HomeAdmin(cluster)
        yield share


class GuestRealm(Realm):
    """Makes users on somebody's cluster; what they were allowed is taken back by :meth:`leave`."""

    def __init__(self, share: Share, second: ClusterInfo, stack: AsyncExitStack) -> None:
        super().__init__(share, second, "", stack)
        self.transcript = Transcript()
        self.transcript.refusals_expected = True
        self._makes = second.security.mechanism in SCRAM
        self._users = 0
        self._granted: list[Entry] = []
        if not second.security.user:
            raise OutOfReach("the second principal's name is not known: it needs PLAIN or SCRAM")

    def entrance(self, listener: str, **login: Any) -> ClusterInfo:
        """Refuse: listeners are the owner's to set up.

        Raises:
            OutOfReach: always.
        """
        del listener, login
        raise OutOfReach("needs a listener for each way to log in")

    async def user(self, *, listener: str = SECURED, mechanism: str = "", name: str = "") -> User:
        """Return a user who may do nothing yet: a new one, or the second principal.

        Raises:
            OutOfReach: a certain listener or mechanism is wanted, a second user where none can be
                made, or users may do something that nobody allowed them.
        """
        if listener != SECURED or mechanism:
            self.entrance(listener)
        login, self._users = self.info.security, self._users + 1
        if self._makes:
            name = name or self.share.cluster.fresh_name("u")
            login = await create_user(self.share.cluster, name, login.mechanism, entrance=self.info)
        elif self._users > 1:
            raise OutOfReach("needs several users, and they can be made for SCRAM only")
        user = await self.visitor(self.info.logged_in(login), login.user)
        await self._powerless(user)
        return user

    async def _powerless(self, user: User) -> None:
        """Look whether a user is refused what nobody allowed."""
        topic = await self.share.admin.create_topic()
        response = await user.call("Metadata", topics=[{"name": topic.name}])
        if response.topics[0].error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise OutOfReach(
                "the second principal may do what nobody allowed it: needs an authorizer, and a "
                "principal without permissions"
            )

    async def grant(self, *entries: Entry) -> None:
        """Make entries, of the kind that can be taken back.

        Raises:
            OutOfReach: they would let the owner's own principal do something to everything.
        """
        wide = [each for each in entries if each.name in {EVERY, THE_CLUSTER} and not each.deny]
        if wide and not self._makes:
            raise OutOfReach("needs a user of its own, and users can be made for SCRAM only")
        self._granted += entries
        await super().grant(*entries)

    async def hold_to(self, user: User, quotas: Mapping[str, float]) -> None:
        """Hold a user to quotas, unless it is the owner's.

        Raises:
            OutOfReach: it is.
        """
        if not self._makes:
            raise OutOfReach("needs a user of its own, and users can be made for SCRAM only")
        await super().hold_to(user, quotas)

    def look_at(self, group: str) -> None:
        """Look whether users find a group where they ask.

        Raises:
            OutOfReach: another broker coordinates it.
        """
        cluster = self.share.cluster
        if isinstance(cluster, HomeCluster) and not cluster.at_home(group):
            raise OutOfReach("needs groups with names of its own, coordinated by one broker")

    async def leave(self) -> None:
        """Take back what users were allowed."""
        if self._granted:
            await self.acls.delete(*dict.fromkeys(self._granted))
