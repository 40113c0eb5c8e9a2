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
from suites.broker.many import LISTS, MANY, POSITIONS
from tools.campaign.hunting import cases_of, checks
from tools.campaign.player import HONEST, play

MET = sorted(set(LISTS.values()))

NO_BAD = {
    "WriteShareGroupStateRequest.topics.partitions.state_batches": (
        "no rule refuses one batch of a Write: a share coordinator keeps what its leader tells"
    ),
}
"""Lists of requests without a bad element, and why."""

ELSEWHERE = {
    "acknowledgement_batches": "suites/broker/test_ack_many.py::test_one_bad_batch",
    "forgotten_topics_data.partitions": (
        "suites/broker/test_ses_many.py::test_forgetting_what_is_not_there"
    ),
    "GroupOffsetsRequest.groups.topics.partitions": (
        "suites/broker/test_adm_many.py::test_offsets_beside_no_partition"
    ),
    "StateRequest.topics": "suites/broker/test_per_many.py::test_one_unknown_topic",
    "StateSummaryRequest.topics": "suites/broker/test_per_many.py::test_one_unknown_topic",
    "ShareFetchRequest.topics": "suites/broker/test_ses_many.py::test_one_unknown_among_many",
}
"""The check that has a bad element in a list, by the end of its path, where :data:`LISTS` names
another one."""


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


def placed_by(path: str) -> str:
    """Return the check that puts a bad element into a list of a request."""
    named = [check for end, check in ELSEWHERE.items() if path.endswith(end)]
    return named[0] if named else LISTS[path]


def known_of(frames: list[Frame]) -> set[object]:
    """Return the names and ids of what there is: topics that were created, groups with members."""
    found: set[object] = set()
    for frame in frames:
        if frame.api == "CreateTopics" and not frame.sent:
            body = decode_response(frame.schemas, frame.api, frame.version, frame.payload)
            found |= {each for topic in body.topics for each in (topic.name, topic.topic_id)}
        if frame.api in ("ShareGroupHeartbeat", "AlterShareGroupOffsets") and frame.sent:
            found.add(decode_request(frame.schemas, frame.payload)[3].group_id)
    return found


def bad(element: object, known: set[object]) -> bool:
    """Tell whether an element of a request is the bad one: unknown, or impossible."""
    if isinstance(element, str):
        return element not in known
    if not isinstance(element, dict):
        return element in (77, 1000)
    if "acknowledge_types" in element:
        return 77 in element["acknowledge_types"]
    for name in ("partition", "partition_index"):
        if name in element:
            return bool(element[name] == 1000)
    names = ("topic_id", "topic_name", "group_id")
    return next((element[name] not in known for name in names if name in element), False)


def every_list(value: object, path: str) -> Iterator[tuple[str, list[object]]]:
    """Yield the path of every list in a message, and the list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from every_list(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield path, value
        for inner in value:
            yield from every_list(inner, path)


def places(frames: list[Frame], path: str) -> set[str]:
    """Return where among three elements or more a bad one stood in some list of requests."""
    known, found = known_of(frames), set()
    for frame in frames:
        if not frame.sent or not path.startswith(f"{frame.api}Request."):
            continue
        body = decode_request(frame.schemas, frame.payload)[3].to_dict()
        for where, value in every_list(body, f"{frame.api}Request"):
            at = [index for index, element in enumerate(value) if bad(element, known)]
            if where == path and len(at) == 1 and len(value) >= MANY:
                last = at[0] == len(value) - 1
                found.add("first" if not at[0] else "last" if last else "middle")
    return found


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
    messages = [find(api) for api in SHARE_APIS for find in (schemas.request, schemas.response)]
    every = [path for spec in messages for path in lists_of(spec.body, spec.name)]
    assert sorted(LISTS) == sorted(every)


def test_checks_of_the_table_exist() -> None:
    requests = {path for path in LISTS if "Request." in path}
    assert set(MET) | {placed_by(path) for path in requests} <= checks().keys()
    assert NO_BAD.keys() <= requests


@pytest.mark.parametrize("path", sorted(p for p in LISTS if "Request." in p and p not in NO_BAD))
def test_bad_element_stands_everywhere(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[Frame] = []
    monkeypatch.setattr(Transcript, "add", lambda _, frame: frames.append(frame))
    seen: set[str] = set()
    for case in cases_of(placed_by(path)):
        frames.clear()
        assert play(HONEST, case, 1).held
        seen |= places(frames, path)
    assert seen == set(POSITIONS)


@pytest.mark.parametrize("check", MET)
def test_check_meets_its_lists(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = [path for path, by in LISTS.items() if by == check]
    frames: list[Frame] = []
    monkeypatch.setattr(Transcript, "add", lambda _, frame: frames.append(frame))
    seen: dict[str, dict[str, int]] = {}
    for case in cases_of(check):
        frames.clear()
        assert play(HONEST, case, 1).held
        met = longest(frames)
        where = case.parameters.get("position")
        for position in [where] if where else POSITIONS:
            best = seen.setdefault(position, {})
            best |= {path: max(met.get(path, 0), best.get(path, 0)) for path in claimed}
    short = [(at, path) for at, met in seen.items() for path in claimed if met[path] < MANY]
    assert set(seen) == set(POSITIONS)
    assert short == []
