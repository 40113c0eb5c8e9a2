"""Asks a target whether it really lacks a feature that its ledger declares absent."""

from fixtures.clients.cluster import Cluster
from fixtures.clients.features import ADMINISTRATION, PROBES, no_administration
from fixtures.interface.info import ClusterInfo


async def refusal(info: ClusterInfo, probe: str) -> str | None:
    if probe == ADMINISTRATION:
        return await no_administration(info)
    if probe not in PROBES:
        raise LookupError(f"the ledger names the probe {probe!r}, which does not exist")
    async with Cluster(info) as cluster:
        await cluster.any()
        return await PROBES[probe](cluster)
