"""The realm of a check: users of its own, what each of them may do, and queues to do it to.

Everything is made by a super user over the ordinary client listener: it stays as it is, and is for
setting up and for looking. What is judged comes from users who log in by the other listeners. The
stage has one broker, so that a user who may not even look for a coordinator can still be seen
refused by it.

On somebody's cluster ``--second-config`` has the login of somebody who may do nothing. Where it is
one by SCRAM, a check makes users of its own, who come by the same listener. Otherwise there is this
one principal. Users ask one broker, the first. So topics are led by it, and groups have names that
it coordinates.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fixtures.clients.acls import EVERY, THE_CLUSTER, Acls, Entry, Operation, Resource
from fixtures.clients.admin import Admin
from fixtures.clients.cluster import RETRIABLE, Cluster, Topic, eventually
from fixtures.clients.member import Member, Session
from fixtures.clients.users import create_user, set_quotas
from fixtures.interface.info import ClusterInfo
from fixtures.wire.codec import Struct
from fixtures.wire.connection import Connection
from fixtures.wire.errors import ErrorCode
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from fixtures.wire.security import SCRAM, Security
from fixtures.wire.state_records import partition_of
from spec.verdict import OutOfReach
from suites.broker.env import Env, Queue, open_env
from suites.broker.failover.cluster import OFFSETS, described, leaders
from suites.broker.groups import codes_in

SECURED, TLS, BARE_TLS, RENEWED = "SECURED", "TLS", "BARE_TLS", "RENEWED"

LISTENERS = {SECURED: "SASL_PLAINTEXT", TLS: "SASL_SSL", BARE_TLS: "SSL", RENEWED: "SASL_PLAINTEXT"}
LOGIN_LASTS = 2.5
"""Seconds after which a login at ``RENEWED`` has to be renewed; a broker wants one in between."""

PLAIN_USER, PLAIN_PASSWORD = "plain", "plain-secret"
"""The one user of mechanism PLAIN: its users stand in the broker's own configuration."""

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{PLAIN_USER}="{PLAIN_PASSWORD}";'
)
_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


def broker_properties(keystore: Path) -> dict[str, str]:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The brokers talk to each other without names, too.
        "super.users": "User:ANONYMOUS",
        f"listener.name.{RENEWED.lower()}.connections.max.reauth.ms": str(int(LOGIN_LASTS * 1000)),
    }
    for listener, protocol in LISTENERS.items():
        prefix = f"listener.name.{listener.lower()}"
        if protocol.startswith("SASL_"):
            properties[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(_MECHANISMS)
            for mechanism in _MECHANISMS:
                jaas = _PLAIN if mechanism == "PLAIN" else _SCRAM
                properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = jaas
        if protocol.endswith("SSL"):
            properties |= {
                f"{prefix}.ssl.keystore.type": "PEM",
                f"{prefix}.ssl.keystore.location": str(keystore),
            }
    return properties


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who has logged in; ``cluster`` is the cluster as this user sees it."""

    name: str
    cluster: Cluster
    realm: Realm

    async def call(self, api: str, **fields: Any) -> Struct:
        """Send a request, again while any part of its response is a passing error."""

        async def ask() -> Struct | None:
            response = await (await self.cluster.any()).call(api, **fields)
            return None if RETRIABLE & set(codes_in(response)) else response

        return await eventually(f"a response to {api} of {self.name}", ask)

    async def connection(self) -> Connection:
        return await self.cluster.any()

    async def session(self, group: str) -> Session:
        """Return a share session, not yet opened, of a member that joins only if it has to."""
        member = Member(self.cluster, group, self.realm.env.member_id())
        return await member.new_session(min(self.cluster.brokers))

    async def allow(self, operation: Operation, resource: Resource, *names: str) -> None:
        await self.grant(*(self.entry(operation, resource, name) for name in names))

    async def grant(self, *entries: Entry) -> None:
        await self.realm.grant(*entries)

    async def revoke(self, *entries: Entry) -> None:
        await self.realm.acls.delete(*entries)

    def entry(self, operation: Operation, resource: Resource, name: str, **options: bool) -> Entry:
        return Entry(user=self.name, operation=operation, resource=resource, name=name, **options)


class Realm:
    def __init__(self, env: Env, info: ClusterInfo, ca: str, stack: AsyncExitStack) -> None:
        self.env, self.info, self.ca = env, info, ca
        self.acls = Acls(env.cluster)
        self.transcript = env.cluster.transcript
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
        name, mechanism = name or self.env.cluster.fresh_name("u"), mechanism or "SCRAM-SHA-256"
        entrance = self.entrance(listener)
        login = await create_user(self.env.cluster, name, mechanism, entrance=entrance)
        return await self.visitor(self.info.at(listener, login), name)

    async def visitor(self, info: ClusterInfo, name: str) -> User:
        """Return somebody who needs no account made: the login is in ``info``."""
        base = self.env.cluster
        cluster = Cluster(info, schemas=base.schemas, transcript=self.transcript, rng=base.rng)
        await self._stack.enter_async_context(cluster)
        await cluster.any()
        return User(name=name, cluster=cluster, realm=self)

    async def users(self, count: int) -> list[User]:
        return [await self.user() for _ in range(count)]

    async def grant(self, *entries: Entry) -> None:
        await self.acls.create(*entries)

    async def hold_to(self, user: User, quotas: Mapping[str, float]) -> None:
        await set_quotas(self.env.cluster, user.name, quotas)

    def look_at(self, group: str) -> None:
        """Look whether users find a group where they ask: here is one broker only."""

    async def queues(self, count: int, **options: Any) -> list[Queue]:
        made = (self.env.queue(**options) for _ in range(count))
        return list(await asyncio.gather(*made))


async def may_use(user: User, group: str, topics: Iterable[str]) -> None:
    await user.grant(
        user.entry(Operation.READ, Resource.GROUP, group),
        *(user.entry(Operation.READ, Resource.TOPIC, topic) for topic in topics),
    )


NO_SECOND = "needs a second principal: give --second-config FILE"


class HomeCluster(Cluster):
    """A cluster whose first broker coordinates all groups that get their names here."""

    _coordinators: tuple[int, ...] = ()

    async def settle(self) -> None:
        await self.coordinator(super().fresh_name("g"))
        self._coordinators = leaders((await described(await self.any(), OFFSETS))[0])

    def fresh_name(self, kind: str = "q") -> str:
        """Return a name as any cluster does; of a group, one that the first broker coordinates."""
        name = super().fresh_name(kind)
        while kind == "g" and not self.at_home(name):
            name = super().fresh_name(kind)
        return name

    def at_home(self, group: str) -> bool:
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
        placed = assignments or [[min(self.cluster.brokers)]] * partitions
        return await super().create_topic(partitions, assignments=placed, **options)


@contextlib.asynccontextmanager
async def at_home(
    info: ClusterInfo, rng: Random, transcripts: list[Transcript], schemas: Schemas
) -> AsyncIterator[Env]:
    async with open_env(info, rng, transcripts, schemas, kind=HomeCluster) as env:
        cluster = env.cluster
        if isinstance(cluster, HomeCluster) and len(cluster.brokers) > 1:
            await cluster.settle()
            env.admin = HomeAdmin(cluster)
        yield env


class GuestRealm(Realm):
    """Makes users on somebody's cluster; what they were allowed is taken back by :meth:`leave`."""

    def __init__(self, env: Env, second: ClusterInfo, stack: AsyncExitStack) -> None:
        super().__init__(env, second, "", stack)
        self.transcript = Transcript()
        self.transcript.refusals_expected = True
        self._makes = second.security.mechanism in SCRAM
        self._users = 0
        self._granted: list[Entry] = []
        if not second.security.user:
            raise OutOfReach("the second principal's name is not known: it needs PLAIN or SCRAM")

    def entrance(self, listener: str, **login: Any) -> ClusterInfo:
        """Refuse: listeners are the owner's to set up."""
        del listener, login
        raise OutOfReach("needs a listener for each way to log in")

    async def user(self, *, listener: str = SECURED, mechanism: str = "", name: str = "") -> User:
        """Return a user who may do nothing yet: a new one, or the second principal."""
        if listener != SECURED or mechanism:
            self.entrance(listener)
        login, self._users = self.info.security, self._users + 1
        if self._makes:
            name = name or self.env.cluster.fresh_name("u")
            login = await create_user(self.env.cluster, name, login.mechanism, entrance=self.info)
        elif self._users > 1:
            raise OutOfReach("needs several users, and they can be made for SCRAM only")
        user = await self.visitor(self.info.logged_in(login), login.user)
        topic = await self.env.admin.create_topic()
        response = await user.call("Metadata", topics=[{"name": topic.name}])
        if response.topics[0].error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise OutOfReach(
                "the second principal may do what nobody allowed it: needs an authorizer, and a "
                "principal without permissions"
            )
        return user

    async def grant(self, *entries: Entry) -> None:
        wide = [each for each in entries if each.name in {EVERY, THE_CLUSTER} and not each.deny]
        if wide and not self._makes:
            raise OutOfReach("needs a user of its own, and users can be made for SCRAM only")
        self._granted += entries
        await super().grant(*entries)

    async def hold_to(self, user: User, quotas: Mapping[str, float]) -> None:
        if not self._makes:
            raise OutOfReach("needs a user of its own, and users can be made for SCRAM only")
        await super().hold_to(user, quotas)

    def look_at(self, group: str) -> None:
        cluster = self.env.cluster
        if isinstance(cluster, HomeCluster) and not cluster.at_home(group):
            raise OutOfReach("needs groups with names of its own, coordinated by one broker")

    async def leave(self) -> None:
        if self._granted:
            await self.acls.delete(*dict.fromkeys(self._granted))
