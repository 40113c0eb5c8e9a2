"""Every list of the share APIs is met with three elements or more, or there is a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from fixtures.interface.names import REFERENCE_VERSION
from fixtures.machine.maven import clients_jar
from fixtures.wire.codec import Struct
from fixtures.wire.frame import Frame, Transcript, decode_request, decode_response
from fixtures.wire.schema import SHARE_APIS, Schemas, StructSpec
from suites.broker.many import LISTS, MANY
from tools.campaign.hunting import cases_of, checks
from tools.campaign.playing import HONEST, play

MET = sorted({check for check in LISTS.values() if "::" in check})
IMPOSSIBLE = "impossible: "


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    """The message definitions of the release that the reference broker keeps to."""
    return Schemas.from_jar(clients_jar(REFERENCE_VERSION))


def lists_of(struct: StructSpec, path: str) -> Iterator[str]:
    """Yield the path of every list in a definition."""
    for field in struct.fields:
        here = f"{path}.{field.name}"
        if field.element:
            yield here
        if field.struct:
            yield from lists_of(field.struct, here)


def lengths(value: object, path: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the length of every list in a message."""
    if isinstance(value, Struct):
        value = value.to_dict()
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from lengths(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield path, len(value)
        for inner in value:
            yield from lengths(inner, path)


def longest(frames: list[Frame]) -> dict[str, int]:
    """Return the longest of each list that went over the wire."""
    found: Counter[str] = Counter()
    for frame in frames:
        if frame.api not in SHARE_APIS:
            continue
        if frame.sent:
            name, body = f"{frame.api}Request", decode_request(frame.schemas, frame.payload)[3]
        else:
            name = f"{frame.api}Response"
            body = decode_response(frame.schemas, frame.api, frame.version, frame.payload)
        for path, length in lengths(body, name):
            found[path] = max(found[path], length)
    return found


def test_every_list_of_the_definitions_is_in_the_table(schemas: Schemas) -> None:
    """The table has every list of every share API, and no other."""
    messages = [find(api) for api in SHARE_APIS for find in (schemas.request, schemas.response)]
    every = [path for spec in messages for path in lists_of(spec.body, spec.name)]
    assert sorted(LISTS) == sorted(every)


def test_what_no_check_meets_has_a_reason() -> None:
    """A list is met by a check that exists, or the table says why it cannot be."""
    rest = [text for text in LISTS.values() if text not in checks()]
    assert [text for text in rest if not text.startswith(IMPOSSIBLE)] == []


@pytest.mark.parametrize("check", MET)
def test_check_meets_its_lists(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the bad element stands, the lists that a check claims are long enough."""
    claimed = [path for path, by in LISTS.items() if by == check]
    frames: list[Frame] = []
    monkeypatch.setattr(Transcript, "add", lambda _, frame: frames.append(frame))
    seen: dict[str, dict[str, int]] = {}
    for case in cases_of(check):
        frames.clear()
        assert play(HONEST, case, 1).held
        position = str(case.parameters["position"])
        met = longest(frames)
        seen[position] = {
            path: max(met.get(path, 0), seen.get(position, {}).get(path, 0)) for path in claimed
        }
    short = [(at, path) for at, met in seen.items() for path in claimed if met[path] < MANY]
    assert sorted(seen) == ["first", "last", "middle"]
    assert short == []
