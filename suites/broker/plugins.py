"""A broker with a class of ours on its class path, for what only a plugin shows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from random import Random

from fixtures.interface.capability import Capability
from fixtures.plugins import plugin_options
from fixtures.targets import TargetOptions
from fixtures.wire.frame import Transcript
from spec.verdict import EnvironmentFault, OutOfReach
from suites import clusters
from suites.broker.share import Share, world
from suites.options import RunOptions


@contextlib.asynccontextmanager
async def plugged(
    options: RunOptions,
    plugin: str,
    properties: Mapping[str, str],
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Share]:
    """Give a world of its own on one broker that has ``plugin``, with these broker properties.

    Raises:
        OutOfReach: the target is somebody else's or no Java program, or the class cannot be made
            here.
    """
    clusters.require(options, Capability.OWN_CLUSTER, Capability.JVM)
    try:
        jvm = await asyncio.to_thread(plugin_options, plugin, options.version)
    except EnvironmentFault as fault:
        raise OutOfReach(f"{plugin} cannot be made here: {fault}") from None
    with contextlib.ExitStack() as stack:
        own = clusters.own_cluster(options, TargetOptions(properties=properties, jvm=jvm))
        target = await asyncio.to_thread(stack.enter_context, own)
        async with world(target.info, rng, transcripts) as share:
            yield share
