"""Tiers: how much of Kafka's protocol an implementation speaks, and the checks it is enough for.

Tier 1 is what a share consumer sends, tier 2 adds administration and what other clients do, tier 3
is everything: failover, the inside of the cluster, clusters of a check's own. A rule is of the
lowest tier that all its checks can be played in.

Which requests a check sends is recorded (``python -m tools.requests``), not declared. The record
leaves out what tier 1 is about: most checks send no more than that.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

REQUESTS = Path(__file__).with_name("requests.json")

CONSUMER = ("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")
"""The APIs of share groups that tier 1 is about (KIP-932: 76, 78, 79)."""

BESIDE = ("ApiVersions", "Metadata", "FindCoordinator", "Produce")
"""What a consumer and a producer beside it need to find their brokers and to have records."""

CONVENIENT = ("CreateTopics", "IncrementalAlterConfigs", "DescribeConfigs")
"""What checks begin with where it is offered. They do without it where that is possible: a topic is
created by its name, and a group begins before the first record."""

PLAIN = frozenset({*CONSUMER, *BESIDE, *CONVENIENT})  # the requests of tier 1

FAILOVER = (
    "AlterPartitionReassignments",
    "ElectLeaders",
    "DescribeQuorum",
    "UpdateFeatures",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
)
"""Requests that move leaders, and those among brokers: only tier 3 has them."""

TIERS = (1, 2, 3)
ALL = TIERS[-1]


def tier_of(requests: Collection[str]) -> int:
    if set(requests) <= PLAIN:
        return 1
    return 3 if set(requests) & set(FAILOVER) else 2


@cache
def recorded() -> Mapping[str, tuple[str, ...]]:
    files = json.loads(REQUESTS.read_text(encoding="utf-8"))
    return {
        f"{file}::{check}": tuple(requests)
        for file, checks in files.items()
        for check, requests in checks.items()
    }


def check_tier(check: str, *, solo: bool = False) -> int:
    requests = recorded().get(check)
    return ALL if solo or requests is None else tier_of(requests)


def rule_tiers(checks: Iterable[tuple[str, bool, Iterable[str]]]) -> dict[str, int]:
    """Return the tier of each rule: the highest of its checks.

    A check is its node id, whether it has a cluster of its own, and its rules.
    """
    found: dict[str, int] = {}
    for check, solo, rules in checks:
        tier = check_tier(check, solo=solo)
        for rule in rules:
            found[rule] = max(tier, found.get(rule, 1))
    return found
