"""A cluster that refuses some requests, for checks that run on it as on a foreign one.

The reference broker stands behind a proxy that responds to some requests itself, as a broker does
that has an authorizer, policies and quotas, and that may not name some APIs.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fixtures.interface.info import ClusterInfo
from fixtures.interface.target import TargetOptions
from fixtures.proxies.alter import Alteration
from fixtures.proxies.exchange import Body, Exchange
from fixtures.targets import open_target, started
from fixtures.targets.altered import ProxyThread
from fixtures.wire.errors import ErrorCode

TOPIC, BROKER, GROUP = 2, 4, 32
PREFIX = "team-"

Refusal = Callable[[Body], int]
"""Takes a part of a request, and returns the error that it is refused with, or 0."""


def _always(code: int) -> Refusal:
    return lambda _part: code


def _of(kind: int, code: int) -> Refusal:
    return lambda part: code if part["resource_type"] == kind else 0


def _named_otherwise(*prefixes: str) -> Refusal:
    return lambda part: (
        0 if part["name"].startswith(prefixes) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    throttled: int = 0
    """How often requests for mutations are refused by a quota before they are not."""
    empty_fetches: int = 0
    """Milliseconds of throttling that every ShareFetch is told, and gets no records."""


_DENIED = _always(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_ADMIN = frozenset(
    {
        *("AlterPartitionReassignments", "ElectLeaders", "DescribeQuorum", "AlterClientQuotas"),
        *("DescribeClientQuotas", "UpdateFeatures", "CreateAcls", "DescribeAcls", "DeleteAcls"),
        *("ListConfigResources", "CreatePartitions", "DeleteRecords"),
    }
)

RESTRICTIONS: Mapping[str, Restriction] = {
    "nothing": Restriction(),
    "group-configs": Restriction(
        refused={
            "IncrementalAlterConfigs": _of(GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
            "DescribeConfigs": _of(GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        }
    ),
    "fixed-limits": Restriction(
        refused={"IncrementalAlterConfigs": _always(ErrorCode.POLICY_VIOLATION)}
    ),
    "broker-configs": Restriction(
        refused={"DescribeConfigs": _of(BROKER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)}
    ),
    "admin": Restriction(absent=_ADMIN),
    "names": Restriction(refused={"CreateTopics": _named_otherwise(PREFIX)}),
    "prefixes": Restriction(refused={"CreateTopics": _named_otherwise(PREFIX, f"dlq.{PREFIX}")}),
    "quotas": Restriction(throttled=3),
    "byte-rate": Restriction(empty_fetches=1000),
}
"""Restrictions by name."""

_MUTATIONS = ("CreateTopics", "DeleteTopics")


class _Restricted:
    def __init__(self, restriction: Restriction) -> None:
        self._restriction = restriction
        self._throttled = dict.fromkeys(_MUTATIONS, restriction.throttled)

    def alteration(self) -> Alteration:
        throttled = set(_MUTATIONS) if self._restriction.throttled else set()
        if self._restriction.empty_fetches:
            throttled.add("ShareFetch")
        return Alteration(
            name="restricted",
            sentence="Some requests are refused.",
            apis=frozenset({*self._restriction.refused, *throttled, "ApiVersions"}),
            on_request=self._on_request,
            on_response=self._on_response,
        )

    def _on_request(self, exchange: Exchange) -> Body | None:
        if self._throttled.get(exchange.api):
            self._throttled[exchange.api] -= 1
            return _refuse(exchange, _always(ErrorCode.THROTTLING_QUOTA_EXCEEDED))
        refused = self._restriction.refused.get(exchange.api)
        return _refuse(exchange, refused) if refused else None

    def _on_response(self, exchange: Exchange, response: Body) -> None:
        if exchange.api == "ApiVersions":
            numbers = {name: key for key, name in exchange.schemas.apis.items()}
            gone = {numbers[name] for name in self._restriction.absent}
            kept = [each for each in response["api_keys"] if each["api_key"] not in gone]
            response["api_keys"] = kept
        elif exchange.api == "ShareFetch" and self._restriction.empty_fetches:
            response |= {"throttle_time_ms": self._restriction.empty_fetches, "responses": []}


def _refuse(exchange: Exchange, refused: Refusal) -> Body | None:
    name = "topics" if "topics" in exchange.request else "resources"
    parts = exchange.request[name]
    codes = [refused(part) for part in parts]
    if not codes or not all(codes):
        return None
    listed = {"CreateTopics": "topics", "DescribeConfigs": "results"}.get(exchange.api, "responses")
    kept = ("name", "resource_type", "resource_name")
    return {
        listed: [
            {**{key: part[key] for key in kept if key in part}, "error_code": code}
            for part, code in zip(parts, codes, strict=True)
        ]
    }


@contextlib.contextmanager
def restricted(
    *names: str, brokers: int = 1, properties: Mapping[str, str] | None = None
) -> Iterator[ClusterInfo]:
    options = TargetOptions(brokers=brokers, steady=brokers > 3, properties=properties or {})
    with started(open_target("reference", options)) as target, contextlib.ExitStack() as fronts:
        info = target.info
        for name in names:
            front = ProxyThread(info, _Restricted(RESTRICTIONS[name]).alteration())
            fronts.callback(front.stop)
            info = front.start()
        yield info
