"""Asks a target whether it really lacks a feature that its profile declares absent."""

from __future__ import annotations

from fixtures.clients.cluster import Cluster
from fixtures.clients.features import ADMINISTRATION, PROBES, no_administration
from fixtures.interface.info import ClusterInfo


async def refusal(info: ClusterInfo, probe: str) -> str | None:
    """Return the sentence in which the target refuses a feature, or None if it has it."""
    if probe == ADMINISTRATION:
        return await no_administration(info)
    if probe not in PROBES:
        raise LookupError(f"the profile names the probe {probe!r}, which does not exist")
    async with Cluster(info) as cluster:
        await cluster.any()
        return await PROBES[probe](cluster)
