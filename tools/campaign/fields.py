"""Fields: each leaf and each error of the responses of the share APIs, made wrong in turn.

What is broken is made of the message definitions, with no check in mind: a number is another one, a
name has a letter more, a flag is turned, a list of several has lost its last one, an error is
another one. First an observer notes which checks of the reference broker, in virtual time, are
answered with which leaves and errors. Then each is made wrong, in every response, and the checks
that are answered with it are played until one reports a rule broken. A new field of a new release
is in no evidence, and red (tests/test_evidence.py).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any
from uuid import UUID

from fixtures.interface.names import REFERENCE_VERSION
from fixtures.machine.maven import clients_jar
from fixtures.proxies.alter import Alteration
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.proxies.exchange import Body, Exchange
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.schema import SHARE_APIS, Schemas, StructSpec
from reports.evidence import FIELD, Entry
from tools.campaign import rejections
from tools.campaign.options import Options, Outcome, nothing
from tools.campaign.player import HONEST
from tools.campaign.player import play as play_case
from tools.campaign.reference import each, pool

UNASSERTED = {
    "error_message": "a text for people: no contract says what it is",
    "throttle_time_ms": "quotas: a response may be throttled a millisecond more",
    "ShareGroupDescribe groups.assignor_name": "no request tells which assignor brokers have",
    "ShareGroupDescribe groups.members.client_host": "how a broker sees the client: behind a proxy "
    "nobody else knows it",
    "node_endpoints.rack": "brokers of the checks' clusters are in no racks",
    "DescribeShareGroupOffsets groups.topics.partitions.leader_epoch": "that of now or that of the "
    "last write: the definition does not say",
}
"""Why no rule asserts a leaf: by how it ends."""

UNANSWERED = {
    "GROUP_AUTHORIZATION_FAILED": "SEC's rules, on clusters with an authorizer",
    "TOPIC_AUTHORIZATION_FAILED": "SEC's rules, on clusters with an authorizer",
    "COORDINATOR_LOAD_IN_PROGRESS": "ADM-49 and COO's rules, while coordinators of real Kafka move",
    "COORDINATOR_NOT_AVAILABLE": "ADM-49 and COO's rules, while coordinators of real Kafka move",
    "NOT_COORDINATOR": "ADM-49 and COO's rules, while coordinators of real Kafka move",
    "INVALID_REQUEST": "ADM-110, by the sweep of real Kafka",
    "UNKNOWN_SERVER_ERROR": "no rule wants it, and ADM-110 rules it out",
    "KAFKA_STORAGE_ERROR": "no check takes one log directory of several away",
    "CORRUPT_MESSAGE": "no check corrupts a batch at its leader",
    "GROUP_ID_NOT_FOUND": "share coordinators know no groups; of AlterShareGroupOffsets see ADM-17",
    "FENCED_STATE_EPOCH": "a deletion names no state epoch",
    "FENCED_LEADER_EPOCH": "a summary is read under no leader epoch",
}
"""Why no check of the reference broker asserts an error that a response's definition lists."""

_OTHER = UUID(int=7)


@cache
def _schemas() -> Schemas:
    return Schemas.from_jar(clients_jar(REFERENCE_VERSION))


@cache
def _paths_of(api: str) -> tuple[str, ...]:
    return tuple(_paths(_schemas().response(api).body))


def leaves() -> list[str]:
    return [f"{api} {path}" for api in SHARE_APIS for path in _paths_of(api)]


def listed() -> set[tuple[str, str]]:
    texts = _schemas().texts
    found = {a: re.findall(r"//\s*-\s*([A-Z_]+) ", texts[f"{a}Response"]) for a in SHARE_APIS}
    return {(api, error) for api, errors in found.items() for error in errors}


def _paths(struct: StructSpec, before: str = "") -> Iterator[str]:
    for field in struct.fields:
        path = f"{before}{field.name}"
        if field.struct is None or field.element:
            yield path
        if field.struct is not None:
            yield from _paths(field.struct, f"{path}.")


def wrong(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value - 1 if value > 0 else value + 1
        case str():
            return f"{value}x"
        case UUID():
            return _OTHER
    # Of a list of one nothing is taken: helpers of checks would break before any rule.
    least = 1 if isinstance(value, list) else 0
    return value[:-1] if value is not None and len(value) > least else value


def _structs(body: Any, path: Sequence[str]) -> Iterator[Body]:
    for one in body if isinstance(body, list) else [body] if body else []:
        if len(path) > 1:
            yield from _structs(one.get(path[0]), path[1:])
        elif path[0] in one:
            yield one


def _alter(path: Sequence[str], code: int | None, _exchange: Exchange, response: Body) -> None:
    field = path[-1]
    for one in _structs(response, path):
        if code is None:
            one[field] = wrong(one[field])
        elif one[field] == code:
            one[field] = int(ErrorCode.INVALID_RECORD)


def _note(seen: set[str], exchange: Exchange, response: Body) -> None:
    for path in _paths_of(exchange.api):
        for one in _structs(response, path.split(".")):
            value = one[path.rpartition(".")[2]]
            if path.endswith("error_code"):
                seen.add(f"{exchange.api} {path}={error_name(value)}")
            if wrong(value) != value:
                seen.add(f"{exchange.api} {path}")


def _altered(on_response: Callable[[Exchange, Body], None], *apis: str) -> str:
    name = "field"
    ALTERATIONS[name] = Alteration(
        name=name, sentence="", apis=frozenset(apis), on_response=on_response
    )
    return f"altered:{name}@{HONEST}"


def reached(check: str, seed: int) -> tuple[str, set[str]]:
    seen: set[str] = set()
    target = _altered(partial(_note, seen), *SHARE_APIS)
    for case in rejections.cases_of(check):
        play_case(target, case, seed)
    return check, seen


def hunt(point: str, checks: Sequence[str], seed: int) -> list[Entry]:
    api, _, rest = point.partition(" ")
    path, _, error = rest.partition("=")
    code = ErrorCode[error].value if error else None
    target = _altered(partial(_alter, path.split("."), code), api)
    plays = ((target, check, seed) for check in checks)
    return [replace(one, kind=FIELD, name=point) for one in rejections.first(plays)]


def play(options: Options) -> Outcome:
    reach: dict[str, list[str]] = defaultdict(list)
    checks = rejections.playable()
    with pool(options.workers) as workers:
        plays = [workers.submit(reached, check, options.seed) for check in checks]
        answered = dict(each(plays, "checks", options.progress))
        for check in sorted(checks, key=lambda one: len(answered[one])):
            for point in answered[check]:
                reach[point].append(check)
        for word in set(options.only) - reach.keys():
            raise nothing(word)
        drawn = [one for one in reach if not options.only or one in options.only]
        hunts = [workers.submit(hunt, one, reach[one], options.seed) for one in drawn]
        found = [one for some in each(hunts, "leaves and errors", options.progress) for one in some]
    options.store.add(found)
    survived = sorted(set(drawn) - {one.name for one in found})
    said = [f"{len(found)} of {len(drawn)} leaves and errors noticed"]
    said += [f"never answered: {one}" for one in leaves() if one not in reach]
    said += [f"survived: {one} ({len(reach[one])} checks reach it)" for one in survived]
    return Outcome(said=said)


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    with pool(options.workers) as workers:
        hunts = [workers.submit(hunt, one.name, [one.check], one.seed or 1) for one in entries]
        found = [one for some in each(hunts, "leaves and errors", options.progress) for one in some]
    options.store.add(found)
    kept = {one.name for one in found}
    return [one for one in entries if one.name not in kept]
