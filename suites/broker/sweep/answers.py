"""What an answer to a request of the sweep has to have: no server error, and something for each.

Elements of requests and answers are known by their keys: a topic's name or id, a partition, a
group. What they are called is read off the request.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fixtures.wire.codec import Struct
from fixtures.wire.errors import error_name
from suites.broker.sweep.cases import Case, Path
from suites.broker.sweep.scenes import Body

_KEYS = ["group_id", "topic_name", "topic_id", "partition_index", "partition", "resource_name"]
_BARE = {"groups_names": "group_id", "group_ids": "group_id", "partitions": "partition"}
_BARE |= {"coordinator_keys": "key"}
_INNER = {"topics", "partitions", "groups", "resources", *_BARE}
_ANSWERED = _INNER | {"responses", "results", "coordinators"}

Keys = tuple[Any, ...]
Answer = tuple[Keys, int]


def elements(value: Any, path: Path = (), keys: Keys = ()) -> Iterator[tuple[Keys, Path, Any]]:
    """Yield the innermost elements that a request names: their keys, paths and values."""
    lists = {name: inner for name, inner in value.items() if name in _INNER and inner is not None}
    for name, inner in lists.items():
        for at, one in enumerate(inner):
            here = (*path, name, at)
            if not isinstance(one, dict):
                yield (*keys, one), here, one
            else:
                own = tuple(one[key] for key in _KEYS if key in one)
                yield from elements(one, here, (*keys, *own))
    if not lists and path:
        yield keys, path, value


def answered(value: Any, request: Body, keys: Keys = (), code: int = 0) -> Iterator[Answer]:
    """Yield the keys of an answer's innermost elements, and the error of each or above it."""
    lists = [inner for name, inner in value.items() if name in _ANSWERED and inner is not None]
    for one in (one for inner in lists for one in inner):
        own = tuple(one[key] for key in (*_KEYS, "key") if key in one and _asks(request, key))
        # A fetch that fails for a partition may have acknowledged there.
        worse = code or one.get("acknowledge_error_code", one.get("error_code", 0))
        yield from answered(one, request, (*keys, *own), worse)
    if keys and (not any(lists) or code):
        yield keys, code


def _asks(value: Any, key: str) -> bool:
    """Tell whether a request names elements by a key; partitions have two names."""
    if isinstance(value, list):
        return any(_asks(one, key) for one in value)
    if not isinstance(value, dict):
        return False
    names = {_BARE.get(name, name) for name in value}
    same = {"partition_index", "partition"}
    return (
        key in names
        or (key in same and bool(same & names))
        or any(_asks(inner, key) for inner in value.values())
    )


def codes(value: Any) -> Iterator[int]:
    """Yield every error code in an answer."""
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if name.endswith("error_code"):
            yield inner
        yield from codes(inner)
    for one in value if isinstance(value, list) else ():
        yield from codes(one)


def runs_backward(value: Any) -> bool:
    """Tell whether an answer has a range of offsets that ends before it begins."""
    if isinstance(value, list):
        return any(map(runs_backward, value))
    if not isinstance(value, Mapping):
        return False
    backward = value.get("last_offset", 0) < value.get("first_offset", 0)
    return backward or any(map(runs_backward, value.values()))


def neighbours(case: Case, good: Body, request: Body, response: Struct) -> str:
    """Return what is wrong with the elements of an answer, if anything is.

    What is not touched by the change is served, or everything is refused; and what is asked for is
    answered. Partitions without an acknowledgement may be left out.
    """
    found = response.to_dict()
    asked = list(elements(request))
    if case.api in {"ShareFetch", "ShareAcknowledge"}:
        asked = [one for one in asked if one[2].get("acknowledgement_batches")]
    told = list(answered(found, request))
    whole = "GroupState" in case.api and not told  # It has no error but those of partitions.
    if found.get("error_code") or not asked or whole or (told and all(code for _, code in told)):
        return ""
    wanted, before = _counted(asked), _counted(elements(good))
    for keys, _, value in asked:
        near = [code for answer, code in told if keys[: len(answer)] == answer[: len(keys)]]
        said = " ".join(map(str, keys))
        if not near:
            return f"no answer for {said}"
        alone = wanted[keys, repr(value)] == before[keys, repr(value)] == 1 and len(case.path) > 1
        if alone and all(near):
            return f"{error_name(near[0])} for {said}, which is beside what was changed"
    named = Counter(keys for keys, _, _ in asked)
    for keys, many in Counter(keys for keys, _ in told).items():
        if many > max(1, named[keys]) and case.api != "ShareFetch":
            return f"{many} answers for {' '.join(map(str, keys))}"
    return ""


def _counted(found: Iterable[tuple[Keys, Path, Any]]) -> Counter[tuple[Keys, str]]:
    return Counter((keys, repr(value)) for keys, _, value in found)
