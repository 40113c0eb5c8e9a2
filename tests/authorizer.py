"""A real broker with an authorizer, and users who may do some things and not others.

``python -m tests.authorizer DIR`` starts it, writes a client.properties for each user into DIR, and
goes on until its standard input ends.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.clients.acls import EVERY, THE_CLUSTER, Acls, Entry, Operation, Resource
from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster
from fixtures.clients.users import create_user
from fixtures.interface.target import Target, TargetOptions
from fixtures.machine.loops import run_blocking
from fixtures.targets import DEFAULT_TARGET, open_target, started
from fixtures.wire.security import Security

PASSWORD = "refusing-s3cret"  # noqa: S105
PREFIX = "team-"  # what names begin with that users with few permissions may use

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_ALL = tuple(
    (Operation.ALL, resource, THE_CLUSTER if resource is Resource.CLUSTER else EVERY)
    for resource in Resource
)

_CLUSTER, _TOPIC, _GROUP = Resource.CLUSTER, Resource.TOPIC, Resource.GROUP

DENIED: Mapping[str, Sequence[tuple[Operation, Resource]]] = {
    "everything": (),
    "no-topics": ((Operation.CREATE, _TOPIC), (Operation.CREATE, _CLUSTER)),
    "no-group-configs": ((Operation.ALTER_CONFIGS, _GROUP),),
    "no-describe-configs": ((Operation.DESCRIBE_CONFIGS, _CLUSTER),),
    "no-admin": (
        *((Operation.ALTER, _CLUSTER), (Operation.ALTER_CONFIGS, _CLUSTER)),
        *((Operation.ALTER, _TOPIC), (Operation.DELETE, _TOPIC)),
        (Operation.CLUSTER_ACTION, _CLUSTER),
    ),
}
"""Users who may do everything but some things."""

ALLOWED: Mapping[str, Sequence[tuple[Operation, Resource]]] = {
    "application": (
        *((Operation.READ, _TOPIC), (Operation.WRITE, _TOPIC)),
        (Operation.READ, _GROUP),
    ),
    "team": ((Operation.ALL, _TOPIC), (Operation.ALL, _GROUP)),
    "nobody": (),
}
"""Users who may do nothing but some things, and only to what begins with ``PREFIX``."""

USERS = (*DENIED, *ALLOWED)

SECOND = "second"
"""A user who may do nothing and logs in by SCRAM, so that others like it can be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusing:
    target: Target
    files: Mapping[str, Path]

    def create_topics(self, prefix: str, count: int) -> None:
        async def create() -> None:
            async with Cluster(self.target.info) as cluster:
                for number in range(count):
                    await Admin(cluster).create_topic(1, name=f"{prefix}1-{number}")

        run_blocking(create())


@contextlib.contextmanager
def refusing(folder: Path, options: TargetOptions | None = None) -> Iterator[Refusing]:
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
    given = options or TargetOptions()
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.users.scram-sha-256.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
        "listener.name.users.plain.sasl.jaas.config": f"{_MODULE} required {users};",
        **given.properties,
    }
    with started(
        open_target(
            DEFAULT_TARGET,
            TargetOptions(
                brokers=given.brokers, properties=properties, listeners={"USERS": "SASL_PLAINTEXT"}
            ),
        )
    ) as target:
        run_blocking(_grant(target))
        files = {name: _file(folder, name, target) for name in (*USERS, SECOND)}
        yield Refusing(target=target, files=files)


def _entries() -> Iterator[Entry]:
    for user, denied in DENIED.items():
        for operation, resource, name in _ALL:
            yield Entry(user=user, operation=operation, resource=resource, name=name)
        for operation, resource in denied:
            name = THE_CLUSTER if resource is Resource.CLUSTER else EVERY
            yield Entry(user=user, operation=operation, resource=resource, name=name, deny=True)
    for user, allowed in ALLOWED.items():
        for operation, resource in allowed:
            yield Entry(
                user=user, operation=operation, resource=resource, name=PREFIX, prefixed=True
            )


async def _grant(target: Target) -> None:
    async with Cluster(target.info) as cluster:
        await Acls(cluster).create(*_entries())


def _file(folder: Path, user: str, target: Target) -> Path:
    mechanism, module, password = "PLAIN", _MODULE, PASSWORD
    if user == SECOND:
        mechanism, module = "SCRAM-SHA-256", _SCRAM_MODULE
        password = run_blocking(scram_user(target, "USERS", SECOND, mechanism)).password
    file = folder / f"{user}.properties"
    servers = ",".join(target.info.listeners["USERS"])
    file.write_text(
        f"bootstrap.servers={servers}\nsecurity.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
    )
    return file


async def scram_user(target: Target, listener: str, name: str, mechanism: str) -> Security:
    entrance = target.info.at(listener, Security(protocol="SASL_PLAINTEXT", mechanism=mechanism))
    async with Cluster(target.info) as cluster:
        return await create_user(cluster, name, mechanism, entrance=entrance)


if __name__ == "__main__":
    with refusing(Path(sys.argv[1])) as running:
        running.create_topics(f"{PREFIX}given-", int(sys.argv[2]) if len(sys.argv) > 2 else 0)
        print(running.files["everything"], flush=True)
        sys.stdin.read()
