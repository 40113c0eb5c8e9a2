"""Cases of the sweep whose responses have fields at their edges, or cannot be decoded at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from suites.client.sweep.cases import LASTING, ONCE, TEN, THREE, Case, Step, all_errors, with_rhythm

HUGE = 2**31 - 1

_FIELDS: dict[str, dict[str, Step]] = {
    "ShareFetch": {
        "hints-of-zeros": {"do": "hints", "leader": 0, "epoch": 0},
        "hints-as-defined": {"do": "hints", "leader": -1, "epoch": -1},
        "hint-to-nobody": {"do": "hints", "leader": 99, "epoch": 1000, "code": 6},
        "hint-of-an-old-epoch": {"do": "hints", "leader": 1, "epoch": 0, "code": 6},
        "no-partitions": {"do": "omit-partitions"},
        "strangers": {"do": "strangers"},
        "lock-of-zero": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": 0},
        "lock-below-zero": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": -1},
        "huge-lock": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": HUGE},
        "ranges-twice": {"do": "repeat-ranges"},
        "ranges-overlap": {"do": "ranges", "shape": "overlap"},
        "ranges-beyond": {"do": "ranges", "shape": "beyond"},
        "ranges-reversed": {"do": "ranges", "shape": "reversed"},
        "ranges-missing": {"do": "ranges", "shape": "none"},
    },
    "ShareAcknowledge": {
        "hints-of-zeros": {"do": "hints", "leader": 0, "epoch": 0},
        "hint-to-nobody": {"do": "hints", "leader": 99, "epoch": 1000, "code": 6},
        "no-partitions": {"do": "omit-partitions"},
        "strangers": {"do": "strangers"},
        "lock-of-zero": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": 0},
        "huge-lock": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": HUGE},
    },
    "ShareGroupHeartbeat": {
        "strangers": {"do": "strangers"},
        "interval-of-zero": {"do": "field", "name": "heartbeat_interval_ms", "value": 0},
        "interval-below-zero": {"do": "field", "name": "heartbeat_interval_ms", "value": -1},
        "no-member-id": {"do": "field", "name": "member_id", "value": None},
        "epoch-goes-back": {"do": "field", "name": "member_epoch", "value": 1},
    },
    "Metadata": {
        "no-brokers": {"do": "field", "name": "brokers", "value": []},
        "no-topics": {"do": "field", "name": "topics", "value": []},
        "leader-is-nobody": {"do": "leaders", "leader": 99},
        "no-leader": {"do": "leaders", "leader": -1},
        "epoch-goes-back": {"do": "leaders", "epoch": 0},
        "no-cluster-id": {"do": "field", "name": "cluster_id", "value": None},
    },
    "FindCoordinator": {"nobody": {"do": "field", "name": "coordinators", "value": []}},
    "ApiVersions": {"no-apis": {"do": "field", "name": "api_keys", "value": []}},
}
"""For each API what becomes of its fields, by name."""

_LASTS = {"hints-of-zeros", "hints-as-defined", "huge-lock", "lock-of-zero", "no-cluster-id"}
"""What brokers may do for ever, and a client has to live with."""

_BATCHES = (
    "codec",
    "magic-0",
    "magic-1",
    "magic-3",
    "crc",
    "count",
    "negative-count",
    "length",
    "negative-length",
    "truncated",
    "empty",
)
_FRAMES = ("garbage", "truncated", "header", "correlation")
_FIRST = {"Metadata", "FindCoordinator", "ApiVersions"}


def all_cases() -> list[Case]:
    """Return every case of the sweep: of error codes, and of edges."""
    return [*all_errors(), *_edges()]


def _edges() -> Iterator[Case]:
    for api, fields in _FIELDS.items():
        for name, step in fields.items():
            yield from _rhythms(api, f"fields/{name}", step, lasting=name in _LASTS)
    for flaw in _BATCHES:
        step = {"do": "batch", "flaw": flaw}
        yield from _rhythms("ShareFetch", f"batch/{flaw}", step, unreadable=True)
    for api in _FIELDS:
        for flaw in _FRAMES:
            yield from _frames(api, flaw)


def _rhythms(
    api: str, what: str, step: Step, *, lasting: bool = False, **fields: Any
) -> Iterator[Case]:
    for rhythm in (THREE, LASTING) if lasting else (THREE,):
        yield Case(
            name=f"{api}/{what}/{rhythm}",
            steps=with_rhythm({"on": api, **step}, rhythm),
            lasting=rhythm == LASTING,
            joining=api in _FIRST,
            **fields,
        )


def _frames(api: str, flaw: str) -> Iterator[Case]:
    for rhythm in (ONCE, TEN):
        yield Case(
            name=f"{api}/frame/{flaw}/{rhythm}",
            steps=with_rhythm({"on": api, "do": "frame", "flaw": flaw}, rhythm),
            joining=api in _FIRST,
        )
