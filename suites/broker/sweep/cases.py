"""The cases of a broker's sweep, made of the message definitions and the list of configs.

A name such as ``AlterShareGroupOffsets.empty.Topics.Partitions.PartitionIndex=-1`` has the API,
what is special of the request, a field and a value; ``@last`` is in the last element of lists, and
not in the first. Versions but the newest one come behind the API: ``ShareFetch.v1.opening…``.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fixtures.wire.codec import NUMBERS, default_of
from fixtures.wire.schema import SHARE_APIS, Schemas, StructSpec
from spec.configs import Config
from suites.broker.sweep.scenes import PARTITIONS, RECORDS, REQUESTS, TABLES, Body, Scene

SERVED, BESIDE, NOTHING_LEFT, QUIET, IN_FORCE, WAITING = RULES = tuple(
    f"ADM-11{n}" for n in range(6)
)
"""The rules of the sweep."""

Edit = Callable[[Any], Any]
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    api: str
    version: int
    what: str = ""  # What is special of the request.
    path: Path = ()
    edit: Edit = lambda good: good
    config: Config | None = None  # The config whose value is spelled otherwise, and how.
    spelling: str = ""
    event: str = ""  # What happens while a fetch waits, and how that one is sent.
    options: Mapping[str, int] = field(default_factory=dict)


def changed(value: Any, path: Path, edit: Edit) -> Any:
    """Return a request with one place of it changed."""
    if not path:
        return edit(value)
    first, rest = path[0], path[1:]
    if isinstance(first, str):
        return {**value, first: changed(value[first], rest, edit)}
    at = first % len(value)
    return [*value[:at], changed(value[at], rest, edit), *value[at + 1 :]]


# --- Values ---------------------------------------------------------------------------------------

_ENDS = dict.fromkeys(("partition_index", "partition", "partitions"), PARTITIONS)
_ENDS |= dict.fromkeys(("first_offset", "last_offset", "start_offset"), RECORDS)
"""Numbers that count something: how many of it there are, which is the last one plus one."""


def _same(value: Any) -> Edit:
    return lambda _: value


def spelled(pattern: str, good: str | None) -> str:
    """Return a text that is written otherwise, by a pattern of the table."""
    good = good or ""
    digits = good if good.isdecimal() and good.isascii() else ""
    return pattern.format(
        *(good, good),
        upper=good.upper(),
        title=good.title(),
        long="x" * 300,
        huge="x" * 30_000,
        arabic="".join(chr(0x660 + int(one)) for one in digits),
        wide="".join(chr(0xFF10 + int(one)) for one in digits),
    )


def _numbers(kind: str, name: str) -> Iterator[tuple[str, Edit]]:
    most = 2 ** (int(kind.removeprefix("int")) - 1) - 1
    edges = {-most - 1, -2, -1, 0, most} | ({2**31, 2**62} if kind == "int64" else set())
    if end := _ENDS.get(name):
        edges |= {end - 1, end, end + 1}
    yield from ((str(value), _same(value)) for value in sorted(edges))
    yield "one-less", lambda old: max(-most - 1, old - 1)
    yield "one-more", lambda old: min(most, old + 1)


def _half(element: Body, which: int) -> Body:
    """Return an element with one half of the list that is in it."""
    inner = next((name for name, value in element.items() if isinstance(value, list)), "")
    values = element.get(inner, [])
    middle = -(-len(values) // 2)
    return {**element, inner: values[middle:] if which else values[:middle]} if inner else element


def _emptied(element: Body) -> Body:
    return {name: [] if isinstance(value, list) else value for name, value in element.items()}


_LISTS: Mapping[str, Edit] = {
    "empty": _same([]),
    "twice": lambda old: [old[0], *old],
    "twice-apart": lambda old: [*old, old[0]],
    "many-times": lambda old: [*old, *[old[0]] * 300],
    "reversed": lambda old: old[::-1],
}
_STRUCTS: Mapping[str, Edit] = {
    "halves": lambda old: [_half(old[0], 0), *old[1:], _half(old[0], 1)],
    "emptied-before": lambda old: [_emptied(old[0]), *old],
    "emptied-after": lambda old: [*old, _emptied(old[0])],
}
_AT_LAST = {"-1", "one-more", "unknown", "blank-after", "null", "empty", "halves", "emptied-after"}
"""The changes that are made to the last element, too."""


# --- Requests -------------------------------------------------------------------------------------


def complete(struct: StructSpec, version: int, body: Body) -> Body:
    """Return a body with every field of its version, as deep as it goes."""
    found: Body = {}
    for one in struct.fields:
        if version in one.versions:
            value = body.get(one.name, default_of(one, version))
            if one.struct and isinstance(value, list):
                value = [complete(one.struct, version, inner) for inner in value]
            found[one.name] = value
    return found


@dataclass(frozen=True, slots=True)
class _Spot:
    """A field of a request, or an element of a list in it."""

    path: Path
    name: str
    type: str
    nullable: bool = False
    deep: bool = False  # Whether its elements are structs.

    def edits(self) -> Iterator[tuple[str, Edit]]:
        if self.type.startswith("[]"):
            yield from _LISTS.items()
            yield from _STRUCTS.items() if self.deep else ()
        elif self.type == "bool":
            yield "not", lambda old: not old
        elif self.type in NUMBERS:
            yield from _numbers(self.type, [one for one in self.path if isinstance(one, str)][-1])
        elif self.type == "uuid":
            yield from ((name, _same(uuid.UUID(text))) for name, text in TABLES["uuids"].items())
        elif self.type == "string":
            for name, text in TABLES["strings"].items():
                yield name, partial(spelled, text)
        if self.nullable:
            yield "null", _same(None)


def _spots(struct: StructSpec, version: int, body: Body, at: int) -> Iterator[_Spot]:
    for one in struct.fields:
        if one.name not in body:
            continue
        value, name = body[one.name], "".join(map(str.title, one.name.split("_")))
        kind = one.type if value else one.type.replace("[]", "[")
        yield _Spot((one.name,), name, kind, version in one.nullable, one.struct is not None)
        if isinstance(value, list) and value:
            here = (one.name, at)
            if not one.struct:
                yield _Spot(here, f"{name}.each", one.type.removeprefix("[]"))
                continue
            for inner in _spots(one.struct, version, value[at], at):
                yield replace(inner, path=(*here, *inner.path), name=f"{name}.{inner.name}")


def _requests(schemas: Schemas, api: str) -> Iterator[Case]:
    spec = schemas.request(api)
    versions = range(spec.valid.low, spec.valid.high + 1) if api in SHARE_APIS else ()
    for version in sorted({*versions, spec.valid.high}):
        newest = version == spec.valid.high
        for what in REQUESTS[api]:
            body = complete(spec.body, version, Scene().request(api, what))
            start = f"{api}.{what}" if newest else f"{api}.v{version}.{what}"
            for at in (0, -1) if newest else (0,):
                for spot in _spots(spec.body, version, body, at):
                    if (at and at not in spot.path) or (not newest and spot.type == "string"):
                        continue
                    for label, edit in spot.edits():
                        if at and label not in _AT_LAST:
                            continue
                        name = f"{start}.{spot.name}{'@last' if at else ''}={label}"
                        yield Case(
                            name=name,
                            api=api,
                            version=version,
                            what=what,
                            path=spot.path,
                            edit=edit,
                        )


# --- Configs, and fetches that wait ---------------------------------------------------------------


def _configs(schemas: Schemas, config: Config) -> Iterator[Case]:
    tables, good = TABLES["spellings"], config.default or "dlq.sweep"
    ways = tables["every"] | tables.get(config.type, {}) | tables.get(config.name, {})
    for api in ("IncrementalAlterConfigs", "AlterConfigs"):
        for label, pattern in ways.items():
            yield Case(
                name=f"{api}.{config.name}={label}",
                api=api,
                version=schemas.request(api).valid.high,
                config=config,
                spelling=spelled(pattern, good),
            )


EVENTS = (
    *("nothing", "session-closed", "session-closed-by-fetch", "session-replaced"),
    *("connection-closed", "session-closed-and-connection", "session-replaced-and-connection"),
    *("member-leaves", "unsubscribed", "forgotten", "topic-deleted", "config-changed"),
    *("partitions-added", "leader-moved"),
)
_WAYS: Mapping[str, Mapping[str, int]] = {
    "plain": {},
    "record-limit": {"share_acquire_mode": 1, "max_records": 1, "batch_size": 1},
    "many-bytes": {"min_bytes": 1_000_000},
}


def _waits(schemas: Schemas) -> Iterator[Case]:
    high = schemas.request("ShareFetch").valid.high
    for event in EVENTS:
        for way, options in _WAYS.items():
            if high > 1 or way != "record-limit":
                name = f"ShareFetch.waiting.{event}={way}"
                yield Case(name=name, api="ShareFetch", version=high, event=event, options=options)


def all_cases(schemas: Schemas, configs: Mapping[str, Config]) -> list[Case]:
    found = [case for api in REQUESTS for case in _requests(schemas, api)]
    found += [case for config in configs.values() for case in _configs(schemas, config)]
    return [*found, *_waits(schemas)]
