"""The faults, each with a probe for its effect and one for its end; ``KINDS`` has them by name."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults import (
    clock,
    compact,
    disconnect,
    fill,
    frame,
    in_sync,
    kill,
    lead,
    link,
    nap,
    pause,
    roll,
    setting,
    stop,
    topics,
    trim,
    upgrade,
)
from chaos.faults.fault import Fault, Kind, by_name

__all__ = ["KINDS", "Fault", "Kind"]

KINDS: Mapping[str, Kind] = by_name(
    [
        *kill.KINDS,
        *stop.KINDS,
        *pause.KINDS,
        *fill.KINDS,
        *disconnect.KINDS,
        *lead.KINDS,
        *in_sync.KINDS,
        *nap.KINDS,
        *link.KINDS,
        *frame.KINDS,
        *compact.KINDS,
        *trim.KINDS,
        *topics.KINDS,
        *setting.KINDS,
        *clock.KINDS,
        *roll.KINDS,
        *upgrade.KINDS,
    ]
)
