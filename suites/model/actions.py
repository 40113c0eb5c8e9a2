"""What can be done in a lock-step run, as plain data, so that a run can be kept and replayed.

An action names members by seat and offsets by what a seat holds at that moment. So every prefix and
every selection of a script is a script again, which is what shrinking needs.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path


class Do(StrEnum):
    PRODUCE = "produce"
    FETCH = "fetch"
    RACE = "race"
    ACK = "ack"
    ACK_ON_FETCH = "ack-on-fetch"
    INTRUDE = "intrude"
    CLOSE = "close"
    DROP = "drop"
    LEAVE = "leave"
    WAIT = "wait"
    DELETE = "delete"
    CUT = "cut"
    MOVE = "move"
    LIMIT = "limit"
    LOOK = "look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    do: Do
    seat: int = 0  # Which member does it.
    other: int = 0  # The second member of a RACE, and whose records an INTRUDE acknowledges.
    # Records to produce or to fetch, record batches to DELETE, records to CUT from the log's start,
    # milliseconds to WAIT, or the new delivery limit.
    n: int = 0
    mode: int = 0  # The acquire mode of a fetch (KIP-1206).
    wait: int = 0  # Milliseconds that a fetch may wait for records.
    # Acknowledge types, for the first of the records that the seat holds. A CLOSE may have some.
    types: tuple[int, ...] = ()

    def __str__(self) -> str:
        return json.dumps({k: v for k, v in asdict(self).items() if v or k == "do"})


_KNOWN = {field.name for field in fields(Action)}


def to_text(script: Iterable[Action]) -> str:
    return "".join(f"{action}\n" for action in script)


def from_text(text: str) -> list[Action]:
    actions: list[Action] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            try:
                actions.append(_action(json.loads(line)))
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(f"line {number} is no action: {error}") from None
    return actions


def _action(raw: dict[str, object]) -> Action:
    if strange := sorted(raw.keys() - _KNOWN):
        raise ValueError(f"there is no {', '.join(strange)}")
    kind, types = raw.pop("do", None), raw.pop("types", ())
    if not isinstance(types, list | tuple) or not all(isinstance(one, int) for one in types):
        raise ValueError("types are a list of numbers")
    numbers = {name: value for name, value in raw.items() if isinstance(value, int)}
    if numbers.keys() != raw.keys():
        raise ValueError(f"{', '.join(sorted(raw.keys() - numbers.keys()))} must be a number")
    return Action(do=Do(str(kind)), types=tuple(types), **numbers)


def read_script(file: Path) -> list[Action]:
    return from_text(file.read_text(encoding="utf-8"))
