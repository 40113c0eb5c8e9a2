"""Judges one case of the sweep by what the application did and by what went over the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Exchange
from suites.client.sweep.cases import Case
from suites.client.sweep.playing import BACK, TOLD, Story
from suites.client.wire import Acked, acked, busiest

BEHIND, LOST, RATE, TOLD_OF, RECOVERS = "CLI-110", "CLI-111", "CLI-112", "CLI-113", "CLI-114"
"""The rules that every case is held against."""

MOST = 25
"""Requests of one API to one broker within a second.

retry.backoff.ms is 100 ms by default, 80 ms with its jitter: 13 requests within a second. A client
may have two reasons to ask, such as a retry and a poll.
"""

ROW = 6
"""Attempts in a row, each at once after the error before.

reconnect.backoff.ms is 50 ms by default and doubles each time, so that the first few are quick.
"""


AT_ONCE = 0.05
"""Seconds after an error in which nobody who waits sends again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a case showed of a rule; ``broken`` says what is wrong, or nothing if the rule holds."""

    rule: str
    broken: str = ""
    witness: tuple[str, ...] = ()
    responses: int = 0


def judge(case: Case, story: Story) -> list[Finding]:
    """Return what a case showed of each rule; nothing if its script never came to anything."""
    met = len(story.met)
    if not met:
        return []
    found = []
    for rule, look in _LOOKS.items():
        if rule == TOLD_OF and not case.owed:
            continue
        broken, witness = look(case, story)
        sentence = f"{case.name}: {broken}" if broken else ""
        found.append(Finding(rule=rule, broken=sentence, witness=witness, responses=met))
    return found


Look = Callable[[Case, Story], tuple[str, tuple[str, ...]]]
_FINE = ("", ())


def _behind(case: Case, story: Story) -> tuple[str, tuple[str, ...]]:
    """Nothing is accepted, rejected or called a gap but by the application."""
    wrong = [one for one in acked(story.shared) if _unsaid(one, case, story)]
    if not wrong:
        return _FINE
    said = f"{len(wrong)} acknowledgements that the application did not make"
    return said, tuple(map(str, wrong[:3]))


def _unsaid(one: Acked, case: Case, story: Story) -> bool:
    if one.kind == AckType.ACCEPT:
        since = story.accepted.get((one.partition, one.offset))
        return since is None or one.by.sent < since
    if one.kind == AckType.GAP:
        return one.error == 0 and (one.partition, one.offset) in story.produced
    return one.kind == AckType.REJECT and not case.unreadable


def _lost(case: Case, story: Story) -> tuple[str, tuple[str, ...]]:
    """Every record reached the application, and what is reported as done is done."""
    if story.recovered is not None and not case.unreadable:
        never = sorted(story.produced - story.delivered)
        if never:
            return f"never delivered, and gone: {never}", ()
    done = Counter((one.partition, one.offset) for one in acked(story.shared) if one.error == 0)
    said = Counter(
        (one.partition, offset)
        for one in story.settled
        if one.error is None
        for offset in one.offsets or ()
    )
    false = sorted(place for place, times in said.items() if times > done[place])
    if false:
        return "reported as done, and no response says so", (f"partition and offset: {false}",)
    return _FINE


def _rate(_case: Case, story: Story) -> tuple[str, tuple[str, ...]]:
    asked: dict[tuple[str, int], list[Exchange]] = {}
    for one in story.exchanges:
        if story.began <= one.sent <= story.ended:
            asked.setdefault((one.api, one.node), []).append(one)
    for (api, node), mine in asked.items():
        most, row = busiest(mine), _row(mine)
        if most > MOST:
            return f"{most} {api} requests within a second to broker {node}, {MOST} at most", ()
        if row > ROW:
            return f"{row} {api} requests in a row without a pause, {ROW} at most", ()
    return _FINE


def _row(mine: list[Exchange]) -> int:
    """Return how many attempts in a row came at once behind an error; good responses end a row."""
    most = row = 0
    for before, after in pairwise(mine):
        failed = bool(before.scripted) and _has_error(before.response)
        row = row + 1 if failed and after.sent - before.responded < AT_ONCE else 0
        most = max(most, row)
    return most


def _has_error(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(
            (name.endswith("error_code") and inner) or _has_error(inner)
            for name, inner in value.items()
        )
    return isinstance(value, list) and any(map(_has_error, value))


def _told(_case: Case, story: Story) -> tuple[str, tuple[str, ...]]:
    """The application is told of an error that does not pass by itself."""
    if story.told or any(one.error for one in story.settled):
        return _FINE
    return f"the application was told nothing within {TOLD:g} s", ()


def _recovers(_case: Case, story: Story) -> tuple[str, tuple[str, ...]]:
    if story.stuck:
        return story.stuck, ()
    if story.recovered is None:
        told = ", ".join(sorted({name for _, name in story.told})) or "nothing"
        return f"{BACK:g} s after its end: {story.left}", (f"the application was told {told}",)
    return _FINE


_LOOKS: Mapping[str, Look] = MappingProxyType(
    {BEHIND: _behind, LOST: _lost, RATE: _rate, TOLD_OF: _told, RECOVERS: _recovers}
)
RULES = tuple(_LOOKS)
"""The rules of the sweep."""
