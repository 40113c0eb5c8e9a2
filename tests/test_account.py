"""The account of a client: what it accuses, and what it leaves open."""

from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clients.handle import Call
from suites.client.account import GIVEN, SENT, TOLD, account
from tests.exchanges import TOPIC, exchange

METADATA: Any = SimpleNamespace(
    api="Metadata",
    client_id="c",
    responded=0.0,
    scripted="",
    response={"topics": [{"topic_id": TOPIC, "name": "t"}]},
)
AWAY = 3
PLACE = {"topic": "t", "partition": 0, "offset": 0}


def call(op: str, began: float, took: float = 0.3, **fields: Any) -> Call:
    result = fields.pop("result", {"records": []} if op == "poll" else {})
    return Call(op=op, fields=fields, began=began, ended=began + took, result=result)


OPEN = call("open", 0.0, config={"mode": "explicit", "callback": "record"})
CLOSE = call("close", 20.0)
GAVE = call("poll", 1.2, result={"records": [PLACE]})
ACCEPT = call("acknowledge", 1.6, type="accept", records=[PLACE])
EMPTY = [call("poll", 2.0 + n / 2) for n in range(5)]


def fetched(at: float, number: int, **more: Any) -> Any:
    return exchange(at, api="ShareFetch", number=number, got=[(0, 1)], **more)


def accepted(at: float, number: int, **more: Any) -> Any:
    return exchange(at, number=number, acks=[(0, 1)], **more)


def callbacks_of(at: float, times: int) -> list[Any]:
    one = {"topic": "t", "partition": 0, "offsets": [0] * times, "error": None}
    return [SimpleNamespace(at=at, partitions=[one])] if times else []


FETCHED = fetched(1.0, 1)
TAKEN = accepted(2.0, 2)
REFUSED = accepted(2.0, 2, error=121)
UNANSWERED = exchange(1.5, api="ShareFetch", number=2, answered=False)
COMMIT = call("commit_sync", 2.0, result={"partitions": []})


@pytest.mark.parametrize(
    ("broken", "calls", "exchanges", "times"),
    [
        (GIVEN, [OPEN, *EMPTY, CLOSE], [FETCHED], 0),
        (SENT, [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN, accepted(2.5, 3)], 1),
        (SENT, [OPEN, GAVE, ACCEPT, COMMIT], [FETCHED], 0),
        (TOLD, [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN], 0),
        (TOLD, [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN], 2),
        # Nothing is wrong, or not known to be.
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN], 1),
        ("", [OPEN, *EMPTY[:2], CLOSE], [FETCHED], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, UNANSWERED], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, exchange(1.5, number=2, connection=2)], 0),
        ("", [OPEN, *EMPTY, CLOSE], [fetched(1.0, 1, scripted="ranges beyond")], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, exchange(1.6, number=2, acks=[(0, 2)])], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, exchange(1.6, number=2, epoch=-1)], 0),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN, fetched(2.1, 3), accepted(2.5, 4)], 2),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, REFUSED, accepted(2.5, 3)], 1),
        ("", [OPEN, GAVE, ACCEPT], [FETCHED], 0),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [fetched(1.0, 1, node=AWAY)], 0),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, accepted(2.0, 2, answered=False)], 0),
    ],
)  # fmt: skip
def test_account(broken: str, calls: list[Call], exchanges: list[Any], times: int) -> None:
    adapter = SimpleNamespace(has=lambda _: True)
    handle: Any = SimpleNamespace(
        name="c", calls=calls, adapter=adapter, callbacks=callbacks_of(3.0, times)
    )
    made = account([handle], [METADATA, *exchanges], {AWAY: 1.9})
    assert [one.rule for one in made.breaches] == [broken] * bool(broken)
