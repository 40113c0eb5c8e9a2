"""The release whose message definitions and Java classes the self-tests work with."""

from functools import cache
from typing import Any

from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import DEFAULT_VERSION
from fixtures.machine.maven import clients_jar
from fixtures.wire.schema import MessageSpec, Schemas

RELEASE = DEFAULT_VERSION


def cluster_info(version: str = RELEASE, **facts: Any) -> ClusterInfo:
    known = {"name": f"kafka:{version}", "ledger": "apache-kafka", "bootstrap": ()}
    known |= {"schema_jar": "", "prefix": "sp-"}
    return ClusterInfo(version=version, **{**known, **facts})


@cache
def schemas() -> Schemas:
    return Schemas.from_jar(clients_jar(RELEASE))


@cache
def messages() -> tuple[MessageSpec, ...]:
    found = (schemas().message(name) for name in sorted(schemas().texts))
    return tuple(spec for spec in found if spec.valid.low <= spec.valid.high)


@cache
def message_versions() -> tuple[tuple[MessageSpec, int], ...]:
    return tuple(
        (spec, version)
        for spec in messages()
        for version in range(spec.valid.low, spec.valid.high + 1)
    )
