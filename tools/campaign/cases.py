"""Checks without pytest: each function with each set of its parameters."""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from shareproof.runner.inventory import Check
from shareproof.runner.limits import TIME_LIMIT

FIXTURES = frozenset({"share", "solo_share", "judge", "store", "rng"})
"""What a check may ask for and be played all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One check with one set of parameters.

    Attributes:
        check: what the inventory knows of it.
        function: the test function itself.
        parameters: what ``parametrize`` gives it.
        properties: broker properties of its ``solo`` marker.
        limit: seconds after which it is undecided.
    """

    check: Check
    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    properties: Mapping[str, str]
    limit: float

    @property
    def name(self) -> str:
        """The check's id, and which of its cases this is; the same in every process."""
        chosen = ",".join(
            str(getattr(value, "__qualname__", value)) for value in self.parameters.values()
        )
        return f"{self.check.id}[{chosen}]" if chosen else self.check.id

    @property
    def wanted(self) -> frozenset[str]:
        """The fixtures that it asks for."""
        return frozenset(inspect.signature(self.function).parameters) - self.parameters.keys()

    @property
    def playable(self) -> bool:
        """Whether it needs nothing that only pytest has."""
        return self.wanted <= FIXTURES


def cases(check: Check) -> Iterator[Case]:
    """Yield a check once for each combination of its parameters."""
    path, _, name = check.id.partition("::")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    function = getattr(module, name)
    outer = getattr(module, "pytestmark", [])
    found = [*getattr(function, "pytestmark", ()), *(outer if isinstance(outer, list) else [outer])]
    marks = [getattr(mark, "mark", mark) for mark in found]
    properties: dict[str, str] = {}
    choices: list[list[dict[str, Any]]] = []
    limit = TIME_LIMIT
    for mark in marks:
        if mark.name == "solo":
            for given in (*mark.args, mark.kwargs):
                properties |= {key: str(value) for key, value in given.items()}
        elif mark.name == "parametrize":
            choices.append(_choices(*mark.args[:2]))
        elif mark.name == "timeout" and mark.args:
            limit = float(mark.args[0])
    for chosen in itertools.product(*choices):
        merged = {key: value for one in chosen for key, value in one.items()}
        yield Case(
            check=check, function=function, parameters=merged, properties=properties, limit=limit
        )


def _choices(names: str | Sequence[str], values: Iterable[Any]) -> list[dict[str, Any]]:
    listed = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    found = []
    for value in values:
        given = value.values if isinstance(value, ParameterSet) else value
        row = given if len(listed) > 1 or isinstance(value, ParameterSet) else (given,)
        found.append(dict(zip(listed, row, strict=True)))
    return found


ParameterSet = type(pytest.param())
