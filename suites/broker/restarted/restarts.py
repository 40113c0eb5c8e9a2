"""The lives of a broker that dies and rises again, and the worlds that checks have in each."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from random import Random

from fixtures.interface.info import ClusterInfo
from fixtures.interface.target import Handle
from fixtures.wire.frame import Transcript
from spec.verdict import OutOfReach
from suites.broker.env import Env, open_env
from suites.broker.failover.cluster import GuestCluster

PRUNE = "share.coordinator.state.topic.prune.interval.ms"
_PRUNED_WITHIN = 5000  # milliseconds


@dataclass(frozen=True, slots=True)
class Restarts:
    """The lives of all brokers there are: a world of topics and groups for each of them."""

    _info: ClusterInfo
    _brokers: Sequence[Handle]
    _rng: Random
    _transcripts: list[Transcript]

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[Env]:
        async with open_env(self._info, self._rng, self._transcripts) as env:
            yield env

    async def die(self, *, orderly: bool = False) -> None:
        ends = [each.stop if orderly else each.kill for each in self._brokers]
        await asyncio.gather(*map(asyncio.to_thread, ends))

    async def rise(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(each.start) for each in self._brokers))
        if len(self._brokers) > 1:
            async with self.life() as env:
                await GuestCluster(env, self._brokers).caught_up()


async def prunes_soon(env: Env) -> None:
    """Look whether the log of the state topic is pruned while a check can wait for it."""
    interval = int((await env.admin.broker_configs())[PRUNE])
    if interval > _PRUNED_WITHIN:
        raise OutOfReach(f"the share coordinator prunes its log every {interval} ms only")
