"""What the programs of the findings share: what they are given, and how they print a step."""

import random
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from fixtures.interface.info import ClusterInfo
from fixtures.proxies.broker_proxies import INTERNAL, Direction, FrameProxies, FrameRule
from fixtures.targets import Target
from fixtures.wire.security import PLAINTEXT
from suites.broker.env import Env, Queue, open_env
from suites.broker.state import Store, read_result

DIRECT = "DIRECT"  # the listener that leads past the proxies
ONCE = 10**9
_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    target: Target
    scenario: str
    proxies: FrameProxies | None

    def intercept(self, api: str, *nodes: int, once: bool = False, **how: Any) -> FrameRule:
        rule = FrameRule(apis=frozenset({api}), direction=Direction.REQUEST, **how)
        if once:
            rule.nth, rule.seen = ONCE, ONCE - 1
        self._set_rules(nodes, rule)
        return rule

    def let_pass(self, *nodes: int) -> None:
        self._set_rules(nodes)

    def _set_rules(self, nodes: Sequence[int], *rules: FrameRule) -> None:
        assert self.proxies is not None, "the program's entry must ask for proxies"
        for node in nodes:
            self.proxies.set_rules(self.proxies.listener(node, INTERNAL), *rules)

    @property
    def info(self) -> ClusterInfo:
        return self.target.info.at(DIRECT, PLAINTEXT) if self.proxies else self.target.info

    def open_env(self) -> AbstractAsyncContextManager[Env]:
        return open_env(self.info, random.Random(), [])


def say(*what: object) -> None:
    print(f"{time.monotonic() - _BEGAN:6.2f} s ", *what, flush=True)


async def stored(queue: Queue, partition: int = 0) -> str:
    """Return what the share coordinator has: state epoch, start offset, state batches."""
    key = Store(queue.env).of(queue, partition)
    epoch = (await key.summary()).leader_epoch
    error, state_epoch, start, batches = read_result(await key.read(leader_epoch=epoch))
    if error != "NONE":
        return error
    return f"state epoch {state_epoch}, start offset {start}, {[tuple(b) for b in batches]}"
