"""Asks a target whether it really lacks a feature that its profile declares absent."""

from __future__ import annotations

from fixtures.targets.info import ClusterInfo


async def refusal(info: ClusterInfo, probe: str) -> str | None:
    """Return the sentence in which the target refuses a feature, or None if it has it.

    Raises:
        LookupError: nobody wrote such a probe.
    """
    # Imported here, so that a run without features in doubt does not need the clients.
    from fixtures.clients.features import PROBES  # noqa: PLC0415

    from fixtures.clients.cluster import Cluster  # noqa: PLC0415

    if probe not in PROBES:
        raise LookupError(f"the profile names the probe {probe!r}, which does not exist")
    async with Cluster(info) as cluster:
        sentence: str | None = await PROBES[probe](cluster)
        return sentence
