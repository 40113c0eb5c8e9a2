"""Settings: each takes effect on the wire or is refused by name, and is never silently ignored.

A trial opens a consumer with one setting at one value, polls, and looks at the wire. What shows
that a setting took effect is a field of a request, or what is sent when.
"""

import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any

from fixtures.clients.adapter import AdapterHang, Refused
from fixtures.clients.handle import Handle
from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Exchange
from spec.settings import Setting, Settings
from suites.client.harness import Harness, refusal
from suites.client.wire import HEARTBEAT, SHARE, acked

TAKES_EFFECT, REFUSED, FOREIGN = "CLI-124", "CLI-125", "CLI-94"
RULES = (TAKES_EFFECT, REFUSED, FOREIGN)
CLOSES = 20.0  # Seconds within which a consumer has to close whose settings nobody uses.
SOON = 10.0  # Seconds until an open client has sent its first fetch, and what shows a setting.
SILENT = 2.5  # Seconds beyond the first fetch in which what must not come does not come.
SLACK = 6.0  # Seconds that something may come late: heartbeats and timers of a busy machine.
EARLY = 0.75  # The part of a time that counts as waited for: Kafka's clients vary it by 20 %.
TELEMETRY = (71, 72)  # The keys of GetTelemetrySubscriptions and PushTelemetry.


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    setting: Setting  # The setting.
    value: str  # Its value.
    rule: str  # What it is judged by.
    wanted: Any = None  # What has to show on the wire; None if the value has to be refused.
    may_refuse: bool = False  # Whether a refusal is as good.

    @property
    def name(self) -> str:
        return f"{self.setting.name}={self.value}"


def trials(settings: Settings) -> list[Trial]:
    found = []
    for one in settings.settings:
        make = partial(Trial, setting=one)
        found += [make(value=v, rule=TAKES_EFFECT, wanted=w) for v, w in one.values.items()]
        for value, wanted in one.either.items():
            found.append(make(value=value, rule=TAKES_EFFECT, wanted=wanted, may_refuse=True))
        found += [make(value=v, rule=FOREIGN if one.foreign else REFUSED) for v in one.refused]
    return found


# --- Effects on the wire ------------------------------------------------------------------------


class Attempt:
    def __init__(self, harness: Harness, handle: Handle) -> None:
        self.harness, self.handle = harness, handle
        self.errors: list[Refused] = []
        self._since = len(harness.tap.exchanges)

    @property
    def exchanges(self) -> list[Exchange]:
        return self.harness.tap.exchanges[self._since :]

    def of(self, *apis: str) -> list[Exchange]:
        return [one for one in self.exchanges if one.api in apis]

    @property
    def fetches(self) -> list[Exchange]:
        """Its fetches that ask for records, and do not only acknowledge, forget or close."""
        return [
            one
            for one in self.of("ShareFetch")
            if one.request["share_session_epoch"] >= 0 and one.request.get("max_records") != 0
        ]

    async def until(
        self, done: Callable[[], object], within: float = SOON, kind: str | None = "accept"
    ) -> bool:
        polled = await self.harness.polls(
            self.handle, lambda _: done(), within, kind=kind, seconds=0.5
        )
        self.errors += polled.errors
        return bool(done())


Shown = tuple[bool, str]  # Whether it took effect, and what showed.
Look = Callable[[Attempt, Any], Awaitable[Shown]]


def field_of(shows: str) -> Look:
    """Return what looks for a value of a request's field: a client may send others before."""
    api, _, name = shows.partition(".")

    async def look(one: Attempt, wanted: Any) -> Shown:
        def seen() -> set[Any]:
            asked = one.fetches if api == "ShareFetch" else one.of(api)
            return {each.request.get(name) for each in asked}

        def done() -> bool:
            return wanted in seen() if wanted is not None else bool(one.fetches)

        await one.until(done)
        return wanted in seen(), f"{shows} was {_listed(seen())}"

    return look


async def client_id(one: Attempt, wanted: Any) -> Shown:
    """The name in the header of each request."""
    await one.until(lambda: one.fetches)
    found = {each.client_id for each in one.exchanges}
    return found == {wanted}, f"requests were sent by {_listed(found)}"


async def acknowledges(one: Attempt, wanted: Any) -> Shown:
    """Whether the next poll accepts what the last one gave."""

    def accepted() -> bool:
        return any(ack.kind == AckType.ACCEPT for ack in acked(one.of(*SHARE)))

    def delivered() -> bool:
        return any((each.response or {}).get("responses") for each in one.fetches)

    await one.until(delivered, kind=None)
    await one.until(accepted, SILENT, kind=None)
    told = "accepted what the last one gave" if accepted() else "accepted nothing"
    return accepted() == wanted and delivered(), f"polls {told}"


async def telemetry(one: Attempt, wanted: Any) -> Shown:
    """Whether it asks for subscriptions to its metrics, where a cluster offers them."""
    api = "GetTelemetrySubscriptions"
    await one.until(lambda: one.of(api) if wanted else one.fetches)
    asked = await one.until(lambda: one.of(api), SILENT)
    return asked == wanted, f"{api} {'was' if asked else 'was not'} sent"


async def metadata(one: Attempt, wanted: Any) -> Shown:
    """Metadata is asked for that often, in milliseconds, while nothing happens."""
    await one.until(lambda: one.fetches)
    before, began = len(one.of("Metadata")), time.monotonic()
    limit = 3 * (wanted or 500) / 1000 + SLACK
    came = await one.until(lambda: len(one.of("Metadata")) >= before + 3, limit)
    took, count = time.monotonic() - began, len(one.of("Metadata")) - before
    return came, f"{count} Metadata requests in {took:.1f} s"


async def leaves(one: Attempt, wanted: Any) -> Shown:
    """Whoever does not poll leaves the group after so many milliseconds."""
    await one.until(lambda: one.fetches)
    limit = (wanted or 0) / 1000 + SLACK

    def left() -> bool:
        return any(each.request["member_epoch"] < 0 for each in one.of(HEARTBEAT))

    gone = await one.harness.until(left, limit)
    return gone, f"it {'left' if gone else 'did not leave'} within {limit:g} s without a poll"


async def gives_up(one: Attempt, wanted: Any) -> Shown:
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

    async def look(one: Attempt, wanted: Any) -> Shown:
        low, high = wanted or (0, 0)
        await one.until(lambda: len(_later_gaps(one, api)) >= 3, 3 * SOON)
        found = _later_gaps(one, api)
        if len(found) < 3:
            return False, f"{len(found) + 2} attempts in {3 * SOON:g} s"
        told = f"the median time between two {api} was {median(found):.0f} ms"
        return low <= median(found) <= high, told

    return look


def _later_gaps(one: Attempt, api: str) -> list[float]:
    nodes: dict[int, list[float]] = {}
    for each in one.of(api):
        nodes.setdefault(each.node if api == "ApiVersions" else 0, []).append(each.sent)
    pairs = [list(pairwise(row))[2:] for row in nodes.values()]
    return [1000 * (after - before) for row in pairs for before, after in row]


_ALWAYS = {"applied": False, "times": 0}
# Effects that are not a field, each with the script that it needs from the start.
EFFECTS: Mapping[str, tuple[Look, Sequence[Mapping[str, Any]]]] = {
    "client id": (client_id, ()),
    "acknowledges": (acknowledges, ()),
    "telemetry": (
        telemetry,
        (
            {"on": "ApiVersions", "do": "with-apis", "keys": list(TELEMETRY), "times": 0},
            {"on": "GetTelemetrySubscriptions", "do": "telemetry", **_ALWAYS},
        ),
    ),
    "metadata": (metadata, ()),
    "leaves": (leaves, ()),
    "gives up": (gives_up, ()),
    "retries": (
        gaps_of("FindCoordinator"),
        ({"on": "FindCoordinator", "do": "error", "code": "COORDINATOR_NOT_AVAILABLE", **_ALWAYS},),
    ),
    "reconnects": (gaps_of("ApiVersions"), ({"on": "ApiVersions", "do": "close", "times": 0},)),
}


def _listed(values: set[Any]) -> str:
    return ", ".join(sorted(map(str, values))) or "never sent"


# --- A trial ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    refusals: tuple[str, ...] = ()  # What calls were refused with.
    works: bool = False  # Whether the wanted effect showed.
    shown: str = ""  # What showed, in words.


async def play(harness: Harness, trial: Trial) -> Outcome:
    queue = await harness.queue(1)
    handle = harness.handle()
    shows = trial.setting.shows if trial.wanted is not None or "." in trial.setting.shows else ""
    look, script = EFFECTS.get(shows) or (field_of(shows or "ShareFetch.group_id"), ())
    steps = harness.play(*script)
    one = Attempt(harness, handle)
    works, shown = False, ""
    try:
        # A setting is given as the adapter takes it: by its own name, or by the protocol's key.
        key, value = trial.setting.key, trial.value
        named = {key: int(value) if value.isdigit() else value}
        extra = {**trial.setting.beside, trial.setting.name: value}
        config = named if key else {"extra": extra}
        await handle.open(harness.config(handle, queue.group, **config))
        await handle.subscribe(queue.topic.name)
        works, shown = await look(one, trial.wanted)
    except Refused as error:
        one.errors.append(error)
    finally:
        harness.tap.script.drop(steps)
    with contextlib.suppress(AdapterHang):
        await refusal(handle.close(harness.close_limit, within=CLOSES))
    refusals = tuple(f"{error.name}: {error.message}" for error in one.errors)
    return Outcome(refusals=refusals, works=works, shown=shown)


def broken(trial: Trial, outcome: Outcome) -> str:
    # A refusal names the setting in any spelling: ``maxWaitMs`` is ``max.wait.ms``.
    setting = trial.setting
    known = {_letters(name) for name in (setting.name, setting.called)} - {""}
    named = any(name in _letters(one) for one in outcome.refusals for name in known)
    if outcome.works and trial.wanted is not None:
        return ""
    if named and (trial.wanted is None or trial.may_refuse):
        return ""
    if named:
        return f"{trial.name}: refused, although it is documented"
    if outcome.refusals and not outcome.shown:
        return f"{trial.name}: refused by an error that does not name the setting"
    if trial.wanted is None:
        return f"{trial.name}: not refused; {outcome.shown}"
    return f"{trial.name}: no effect; {outcome.shown}"


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
