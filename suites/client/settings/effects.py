"""What shows on the wire that a setting took effect: a field of a request, or what is sent when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from statistics import median
from types import MappingProxyType
from typing import Any

from fixtures.clients.adapter import Refused
from fixtures.clients.cluster import attempts
from fixtures.clients.handle import Handle
from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Exchange
from suites.broker.share import Queue
from suites.client.harness import Harness
from suites.client.wire import HEARTBEAT, SHARE, acked

SOON = 10.0
"""Seconds until a client that was opened has sent its first fetch, and what shows a setting."""

SILENT = 2.5
"""Seconds beyond the first fetch in which what must not come does not come."""

SLACK = 6.0
"""Seconds that something may come late: heartbeats and timers of a busy machine."""

EARLY = 0.75
"""The part of a time after which it counts as waited for: Kafka's clients vary theirs by 20 %."""

TELEMETRY = (71, 72)
"""The keys of GetTelemetrySubscriptions and PushTelemetry."""


@dataclass(slots=True)
class Try:
    """One consumer that is open, and what came of it.

    Attributes:
        since: How many exchanges there were before it.
        accepts: Whether the application accepts what it is given.
        errors: What its polls were refused with.
    """

    harness: Harness
    handle: Handle
    queue: Queue
    since: int
    accepts: bool = True
    errors: list[Refused] = field(default_factory=list)

    @property
    def exchanges(self) -> list[Exchange]:
        """What it has sent."""
        return self.harness.tap.exchanges[self.since :]

    def of(self, *apis: str) -> list[Exchange]:
        """Return its requests of some APIs."""
        return [one for one in self.exchanges if one.api in apis]

    @property
    def fetches(self) -> list[Exchange]:
        """Its fetches that ask for records, and do not only acknowledge, forget or close."""
        return [
            one
            for one in self.of("ShareFetch")
            if one.request["share_session_epoch"] >= 0 and one.request.get("max_records") != 0
        ]

    async def until(self, done: Callable[[], object], within: float = SOON) -> bool:
        """Poll until something came true; an error of a poll is kept, and ends nothing."""
        async for _ in attempts(within):
            try:
                found = await self.handle.poll(0.5)
                if found and self.accepts:
                    await self.handle.acknowledge(found)
            except Refused as error:
                self.errors.append(error)
                if len(self.errors) > 3:
                    await asyncio.sleep(0.2)  # whoever fails at once is not asked in a loop
            if done():
                return True
        return False


Shown = tuple[bool, str]
"""Whether it took effect, and what showed."""
Look = Callable[[Try, Any], Awaitable[Shown]]


def field_of(shows: str) -> Look:
    """Return what looks for a value of a request's field.

    A client may send others before: @kafkats/client opens a session by a fetch that does not wait.
    """
    api, _, name = shows.partition(".")

    async def look(one: Try, wanted: Any) -> Shown:
        def seen() -> set[Any]:
            asked = one.fetches if api == "ShareFetch" else one.of(api)
            return {each.request.get(name) for each in asked}

        def done() -> bool:
            return wanted in seen() if wanted is not None else bool(one.fetches)

        await one.until(done)
        return wanted in seen(), f"{shows} was {_listed(seen())}"

    return look


async def client_id(one: Try, wanted: Any) -> Shown:
    """The name in the header of each request."""
    await one.until(lambda: one.fetches)
    found = {each.client_id for each in one.exchanges}
    return found == {wanted}, f"requests were sent by {_listed(found)}"


async def acknowledges(one: Try, wanted: Any) -> Shown:
    """Whether the next poll accepts what the last one gave."""
    one.accepts = False

    def accepted() -> bool:
        return any(ack.kind == AckType.ACCEPT for ack in acked(one.of(*SHARE)))

    def delivered() -> bool:
        return any((each.response or {}).get("responses") for each in one.fetches)

    await one.until(delivered)
    await one.until(accepted, SILENT)
    told = "accepted what the last one gave" if accepted() else "accepted nothing"
    return accepted() == wanted and delivered(), f"polls {told}"


async def telemetry(one: Try, wanted: Any) -> Shown:
    """Whether it asks for subscriptions to its metrics, where a cluster offers them."""

    def asked() -> bool:
        return bool(one.of("GetTelemetrySubscriptions"))

    await one.until(asked if wanted else lambda: one.fetches)
    await one.until(asked, SILENT)
    told = "was" if asked() else "was not"
    return asked() == wanted, f"GetTelemetrySubscriptions {told} sent"


async def metadata(one: Try, wanted: Any) -> Shown:
    """Metadata is asked for that often, in milliseconds, while nothing happens."""
    await one.until(lambda: one.fetches)
    before, began = len(one.of("Metadata")), time.monotonic()

    def count() -> int:
        return len(one.of("Metadata")) - before

    came = await one.until(lambda: count() >= 3, 3 * (wanted or 500) / 1000 + SLACK)
    took = time.monotonic() - began
    return came, f"{count()} Metadata requests in {took:.1f} s"


async def leaves(one: Try, wanted: Any) -> Shown:
    """Whoever does not poll leaves the group after so many milliseconds."""
    await one.until(lambda: one.fetches)
    limit = (wanted or 0) / 1000 + SLACK

    def left() -> bool:
        return any(each.request["member_epoch"] < 0 for each in one.of(HEARTBEAT))

    gone = await one.harness.until(left, limit)
    return gone, f"it {'left' if gone else 'did not leave'} within {limit:g} s without a poll"


async def gives_up(one: Try, wanted: Any) -> Shown:
    """A fetch without a response is given up after so many milliseconds."""
    await one.until(lambda: any(isfinite(each.responded) for each in one.fetches))
    steps = one.harness.play({"on": "ShareFetch", "do": "drop"})

    def lost() -> list[Exchange]:
        return [each for each in one.of("ShareFetch") if each.scripted]

    def later() -> list[Exchange]:
        return [each for each in one.of("ShareFetch") if lost() and each.sent > lost()[0].sent]

    limit = (wanted or 0) / 1000 + SLACK
    came = await one.until(later, limit)
    one.harness.tap.script.drop(steps)
    if not came:
        return False, f"{limit:g} s after a fetch without a response there was no other"
    waited = 1000 * (later()[0].sent - lost()[0].sent)
    return waited >= EARLY * (wanted or 0), f"{waited:.0f} ms after such a fetch there was another"


def gaps_of(api: str) -> Look:
    """Return what looks at the times between attempts that fail; ``wanted`` are two bounds."""

    async def look(one: Try, wanted: Any) -> Shown:
        low, high = wanted or (0, 0)
        await one.until(lambda: len(_later_gaps(one, api)) >= 3, 3 * SOON)
        found = _later_gaps(one, api)
        if len(found) < 3:
            return False, f"{len(found) + 2} attempts in {3 * SOON:g} s"
        told = f"the median time between two {api} was {median(found):.0f} ms"
        return low <= median(found) <= high, told

    return look


def _later_gaps(one: Try, api: str) -> list[float]:
    """Return the milliseconds between attempts at one broker, but for the first two of them."""
    nodes: dict[int, list[float]] = {}
    for each in one.of(api):
        nodes.setdefault(each.node if api == "ApiVersions" else 0, []).append(each.sent)
    rows: Iterator[list[float]] = iter(nodes.values())
    return [1000 * (after - before) for row in rows for before, after in list(pairwise(row))[2:]]


_FAILING = {"applied": False, "times": 0}
EFFECTS: Mapping[str, tuple[Look, Sequence[Mapping[str, Any]]]] = MappingProxyType(
    {
        "client id": (client_id, ()),
        "acknowledges": (acknowledges, ()),
        "telemetry": (
            telemetry,
            (
                {"on": "ApiVersions", "do": "with-apis", "keys": list(TELEMETRY), "times": 0},
                {"on": "GetTelemetrySubscriptions", "do": "telemetry", **_FAILING},
            ),
        ),
        "metadata": (metadata, ()),
        "leaves": (leaves, ()),
        "gives up": (gives_up, ()),
        "retries": (
            gaps_of("FindCoordinator"),
            (
                {
                    "on": "FindCoordinator",
                    "do": "error",
                    "code": "COORDINATOR_NOT_AVAILABLE",
                    **_FAILING,
                },
            ),
        ),
        "reconnects": (gaps_of("ApiVersions"), ({"on": "ApiVersions", "do": "close", "times": 0},)),
    }
)
"""Effects that are not a field, each with the script that it needs from the start."""


def effect(shows: str) -> tuple[Look, Sequence[Mapping[str, Any]]]:
    """Return what looks for an effect, and the script that it needs."""
    if shows in EFFECTS:
        return EFFECTS[shows]
    return field_of(shows or "ShareFetch.group_id"), ()


def _listed(values: set[Any]) -> str:
    return ", ".join(sorted(map(str, values))) or "never sent"
