"""Brokers of a check's own: with a class of ours on the class path, or behind frame proxies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from fixtures.clients.cluster import eventually
from fixtures.interface.capability import Capability
from fixtures.interface.names import innermost
from fixtures.machine.maven import clients_jar
from fixtures.plugins import plugin_options
from fixtures.proxies.broker_proxies import (
    INTERNAL,
    Direction,
    FrameProxies,
    FrameRule,
    state_write_refused,
)
from fixtures.proxies.exchange import Action
from fixtures.targets import TargetOptions
from fixtures.wire.errors import ErrorCode
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault, OutOfReach, Undecided
from suites import clusters
from suites.broker.env import Env, open_env
from suites.options import RunOptions


@contextlib.asynccontextmanager
async def plugged(
    options: RunOptions,
    plugin: str,
    properties: Mapping[str, str],
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Env]:
    clusters.require(options, Capability.OWN_CLUSTER, Capability.JVM)
    try:
        jvm = await asyncio.to_thread(plugin_options, plugin, options.version)
    except EnvironmentFault as fault:
        raise OutOfReach(f"{plugin} cannot be made here: {fault}") from None
    with contextlib.ExitStack() as stack:
        own = clusters.own_cluster(options, TargetOptions(properties=properties, jvm=jvm))
        target = await asyncio.to_thread(stack.enter_context, own)
        async with open_env(target.info, rng, transcripts) as env:
            yield env


STATE_WRITES = frozenset({"WriteShareGroupState"})

LASTING = 300_000  # ms of a lock that outlasts every attempt of a request between brokers
FRONTED = {
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "group.share.max.record.lock.duration.ms": str(LASTING),
}


@dataclass(frozen=True, slots=True)
class Proxied:
    """A check's share of a cluster, and the proxies in front of its brokers.

    A broker that leads a share-partition and is its share coordinator, too, still writes the state
    over the network, to the address that it advertises to other brokers. The proxy at that address
    can respond in its place.
    """

    env: Env
    proxies: FrameProxies

    @contextlib.contextmanager
    def disturbed(self, *rules: FrameRule) -> Iterator[None]:
        """Apply rules to all that brokers send each other, while the block runs."""
        self._set(*rules)
        try:
            yield
        finally:
            self._set()

    @contextlib.contextmanager
    def state_writes_refused(self) -> Iterator[FrameRule]:
        """Refuse every state write while the block runs, as a coordinator that loads does.

        Nothing of it is stored, and the leader repeats it. Gives the rule, which counts.
        """
        refusal = state_write_refused(int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        rule = FrameRule(
            apis=STATE_WRITES, direction=Direction.REQUEST, action=Action.RESPOND, refusal=refusal
        )
        with self.disturbed(rule):
            yield rule

    @staticmethod
    async def met(rule: FrameRule, within: float, before: int = 0) -> None:
        """Wait until a rule has taken more frames than ``before``; raises Undecided."""

        async def ask() -> bool | None:
            return rule.done > before or None

        await eventually(f"frame {before + 1} of {', '.join(rule.apis)}", ask, within)

    def _set(self, *rules: FrameRule) -> None:
        for node in self.env.cluster.brokers:
            self.proxies.set_rules(self.proxies.listener(node, INTERNAL), *rules)


@contextlib.asynccontextmanager
async def fronted(
    options: RunOptions, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Proxied]:
    """Start one Kafka broker behind frame proxies, where brokers advertise what we choose."""
    clusters.require(options, Capability.PROXIED)
    version = innermost(options.target).version
    with contextlib.ExitStack() as stack:
        schemas = Schemas.from_jar(await asyncio.to_thread(clients_jar, version))
        proxies = stack.enter_context(FrameProxies(schemas))
        wanted = TargetOptions(properties=FRONTED, advertise=proxies.advertise)
        own = clusters.own_cluster(options, wanted)
        target = await asyncio.to_thread(stack.enter_context, own)
        async with open_env(target.info, rng, transcripts) as env:
            if len(env.cluster.brokers) > 1:  # another run's, which took the port first
                raise Undecided("brokers that are not ours respond at the address of ours")
            yield Proxied(env, proxies)
