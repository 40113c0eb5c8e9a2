"""A broker with fronts of ours before it, for requests between brokers that are to be refused.

A broker that leads a share-partition and is its share coordinator, too, still writes the state over
the network, to the address that it advertises to other brokers. What stands at that address can
answer in its place.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from random import Random

from fixtures.interface.capability import Capability
from fixtures.interface.names import innermost
from fixtures.machine.maven import clients_jar
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.fronts import Fronts, Weather
from fixtures.proxies.rules import Act, Rule, Way, state_write_refused
from fixtures.targets import TargetOptions
from fixtures.wire.errors import ErrorCode
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from suites import clusters
from suites.broker.share import Share, world
from suites.options import RunOptions

STATE_WRITES = frozenset({"WriteShareGroupState"})


@dataclass(frozen=True, slots=True)
class Proxied:
    """A check's share of a cluster, and what stands before its brokers."""

    share: Share
    fronts: Fronts

    @contextlib.contextmanager
    def state_writes_refused(self) -> Iterator[Rule]:
        """Refuse every state write for as long as the block runs, as a coordinator that loads does.

        Nothing of what is refused is stored, and the leader repeats it. Gives the rule, which
        counts.
        """
        refusal = state_write_refused(int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        rule = Rule(apis=STATE_WRITES, way=Way.REQUEST, act=Act.REFUSE, refusal=refusal)
        self._set(rule)
        try:
            yield rule
        finally:
            self._set()

    def _set(self, *rules: Rule) -> None:
        def change(weather: Weather) -> None:
            weather.rules = list(rules)

        for node in self.share.cluster.brokers:
            self.fronts.change(self.fronts.door(node, INTERNAL), change)


@contextlib.asynccontextmanager
async def fronted(
    options: RunOptions, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Proxied]:
    """Give a world of its own on one broker of Kafka's with fronts before it.

    Raises:
        OutOfReach: the target is not one whose brokers talk to each other over addresses of ours.
    """
    clusters.require(options, Capability.PROXIED)
    version = innermost(options.target).version
    with contextlib.ExitStack() as stack:
        schemas = Schemas.from_jar(await asyncio.to_thread(clients_jar, version))
        fronts = stack.enter_context(Fronts(schemas))
        own = clusters.own_cluster(options, TargetOptions(advertise=fronts.stand_before))
        target = await asyncio.to_thread(stack.enter_context, own)
        async with world(target.info, rng, transcripts) as share:
            yield Proxied(share, fronts)
