"""What the programs of the findings share: what they are given, and how they print a step."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fixtures.interface.info import ClusterInfo
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.targets import Target
from fixtures.wire.security import PLAINTEXT

DIRECT = "DIRECT"
"""The listener that leads past the proxies."""

_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a program plays on; ``proxies`` stand between brokers where the program needs them."""

    target: Target
    scenario: str
    proxies: FrameProxies | None

    @property
    def frame_proxies(self) -> FrameProxies:
        """The proxies between brokers."""
        assert self.proxies is not None, "the program's entry must ask for proxies"
        return self.proxies

    @property
    def info(self) -> ClusterInfo:
        """The cluster, past the proxies if there are some."""
        return self.target.info.at(DIRECT, PLAINTEXT) if self.proxies else self.target.info


def say(*what: object) -> None:
    """Print a step with the seconds since the program began."""
    print(f"{time.monotonic() - _BEGAN:6.2f} s ", *what, flush=True)
