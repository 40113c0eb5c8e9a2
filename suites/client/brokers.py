"""The cluster behind the hostile broker: three nodes of the reference broker."""

from __future__ import annotations

from fixtures.targets import Target, TargetOptions, open_target

MOST_DELIVERIES = 25
"""The highest delivery count limit that a cluster may allow a group.

Behind a scripted error brokers have acquired records, of which the client does not hear. One that
opens a new session after each error uses up a delivery of them each time.
"""


def hostile_target() -> Target:
    """Return the cluster, not started yet."""
    allowed = {"group.share.max.delivery.count.limit": str(MOST_DELIVERIES)}
    return open_target("reference", TargetOptions(brokers=3, properties=allowed))
