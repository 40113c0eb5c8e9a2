"""The realm of a check: users of its own, what each of them may do, and queues to do it to.

Everything is made by a super user over the ordinary client listener. What is judged comes from
users who log in. The stage has one broker, so that a user who may not even look for a coordinator
can still be seen refused by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from fixtures.clients.acls import Acls, Entry, Operation, Resource
from fixtures.clients.cluster import Cluster
from fixtures.clients.member import Session
from fixtures.clients.users import create_user, set_quotas
from fixtures.interface.info import ClusterInfo
from fixtures.wire.codec import Struct
from fixtures.wire.connection import Connection
from fixtures.wire.security import Security
from suites.broker.secure.settings import LISTENERS, SECURED
from suites.broker.share import Queue, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who has logged in; ``cluster`` is the cluster as this user sees it."""

    name: str
    cluster: Cluster
    realm: Realm

    async def call(self, api: str, **fields: Any) -> Struct:
        """Send a request over the user's one shared connection."""
        return await (await self.cluster.any()).call(api, **fields)

    async def connection(self) -> Connection:
        """Return the shared connection."""
        return await self.cluster.any()

    async def session(self, group: str) -> Session:
        """Return a share session, not yet opened, of a member id that never joined."""
        member_id = self.realm.share.member_id()
        node = min(self.cluster.brokers)
        return Session(await self.cluster.dial(node, member_id), group, member_id)

    async def allow(self, operation: Operation, resource: Resource, *names: str) -> None:
        """Let the user do something to resources of one type."""
        await self.grant(*(self.entry(operation, resource, name) for name in names))

    async def grant(self, *entries: Entry) -> None:
        """Make entries; they are in force on return."""
        await self.realm.grant(*entries)

    async def revoke(self, *entries: Entry) -> None:
        """Take entries away; they are no longer in force on return."""
        await self.realm.acls.delete(*entries)

    def entry(self, operation: Operation, resource: Resource, name: str, **options: bool) -> Entry:
        """Return an entry about this user, not yet made."""
        return Entry(user=self.name, operation=operation, resource=resource, name=name, **options)


class Realm:
    """Makes users for one check."""

    def __init__(self, share: Share, info: ClusterInfo, ca: str, stack: AsyncExitStack) -> None:
        self.share = share
        self.info = info
        self.ca = ca
        self.acls = Acls(share.cluster)
        self.transcript = share.cluster.transcript
        self._stack = stack

    def entrance(self, listener: str, **login: Any) -> ClusterInfo:
        """Return the cluster by way of a listener, with a login or still without."""
        protocol = LISTENERS[listener]
        mechanism = "SCRAM-SHA-256" if protocol.startswith("SASL_") else ""
        return self.info.at(
            listener,
            Security(**{"protocol": protocol, "ca": self.ca, "mechanism": mechanism} | login),
        )

    async def user(self, *, listener: str = SECURED, mechanism: str = "", name: str = "") -> User:
        """Return a new user, who has logged in and may do nothing yet."""
        name, mechanism = name or self.share.cluster.fresh_name("u"), mechanism or "SCRAM-SHA-256"
        entrance = self.entrance(listener)
        login = await create_user(self.share.cluster, name, mechanism, entrance=entrance)
        return await self.visitor(self.info.at(listener, login), name)

    async def visitor(self, info: ClusterInfo, name: str) -> User:
        """Return somebody who needs no account made: the login is in ``info``."""
        base = self.share.cluster
        cluster = Cluster(info, schemas=base.schemas, transcript=self.transcript, rng=base.rng)
        await self._stack.enter_async_context(cluster)
        await cluster.any()
        return User(name=name, cluster=cluster, realm=self)

    async def users(self, count: int) -> list[User]:
        """Return several new users, one after the other: where one is refused, no other is made."""
        return [await self.user() for _ in range(count)]

    async def grant(self, *entries: Entry) -> None:
        """Make entries; they are in force on return."""
        await self.acls.create(*entries)

    async def hold_to(self, user: User, quotas: Mapping[str, float]) -> None:
        """Hold a user to quotas; they are in force on return."""
        await set_quotas(self.share.cluster, user.name, quotas)

    def look_at(self, group: str) -> None:
        """Look whether users find a group where they ask: here is one broker only."""

    async def queues(self, count: int, **options: Any) -> list[Queue]:
        """Return several queues, each with a topic and a group of its own."""
        made = (self.share.queue(**options) for _ in range(count))
        return list(await asyncio.gather(*made))


async def may_use(user: User, group: str, topics: Iterable[str]) -> None:
    """Let a user do all that a consumer does, and that is READ, with a group and topics."""
    await user.grant(
        user.entry(Operation.READ, Resource.GROUP, group),
        *(user.entry(Operation.READ, Resource.TOPIC, topic) for topic in topics),
    )
