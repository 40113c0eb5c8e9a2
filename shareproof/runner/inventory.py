"""What checks exist, read from the source without importing it.

The command line lists rules with it, a crashed worker's rules are looked up in it, and a test holds
both sides together with it: every rule reached by a check, every check naming live rules. Reading
instead of importing keeps that fast and independent of what the checks need in order to run.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import suites
from shareproof.runner.scheduler import scope
from spec.rule import Rule
from spec.tiers import ALL, rule_tiers

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SUITES = Path(suites.__file__).parent
BROKER = _SUITES / "broker"
CLIENT = _SUITES / "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    id: str  # Its pytest node id without parameters.
    rules: tuple[str, ...]
    features: tuple[str, ...]
    fast: bool
    solo: bool
    draft: bool
    fixtures: tuple[str, ...] = ()  # Its arguments, those that ``parametrize`` fills among them.


@cache
def read_checks(folder: Path = BROKER, *, drafts: bool = False) -> tuple[Check, ...]:
    """Return the checks of every test file below ``folder``, in file order.

    Drafts are checks that are not trusted yet; they are left out unless asked for.

    Ids are relative to the root, as pytest prints them: ``suites/broker/test_x.py::test_y``.
    """
    root = folder.parent.parent
    return tuple(
        check
        for file in sorted(folder.rglob("test_*.py"))
        for body in [ast.parse(file.read_text(encoding="utf-8"), filename=str(file)).body]
        for check in _of_body(body, file.relative_to(root).as_posix(), [])
        if drafts or not check.draft
    )


def by_rule(checks: Iterable[Check]) -> dict[str, list[Check]]:
    found: dict[str, list[Check]] = {}
    for check in checks:
        for rule in check.rules:
            found.setdefault(rule, []).append(check)
    return found


@cache
def tiers() -> Mapping[str, int]:
    return rule_tiers((check.id, check.solo, check.rules) for check in read_checks())


def in_tier(rules: Mapping[str, Rule], tier: int) -> dict[str, Rule]:
    """Return the rules of a tier and of those below; a rule without a check is in the last."""
    if tier == ALL:
        return dict(rules)
    return {id_: rule for id_, rule in rules.items() if tiers().get(id_, ALL) <= tier}


def _of_body(body: list[ast.stmt], where: str, outer: list[ast.expr]) -> Iterator[Check]:
    outer = [*_assigned(body), *outer]
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            marks = [*node.decorator_list, *outer]
            yield from _of_body(node.body, f"{where}::{node.name}", marks)
        elif isinstance(node, Function) and node.name.startswith("test_"):
            marks = [*node.decorator_list, *outer]
            if not any(name == "canary" for mark in marks for name, _ in _mark(mark)):
                yield _check(node, where, marks)


def _assigned(body: list[ast.stmt]) -> list[ast.expr]:
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            return list(node.value.elts) if isinstance(node.value, ast.List) else [node.value]
    return []


def _check(node: Function, where: str, marks: list[ast.expr]) -> Check:
    named: dict[str, list[str]] = {}
    for mark in marks:
        for name, arguments in _mark(mark):
            named.setdefault(name, []).extend(arguments)
    return Check(
        id=f"{where}::{node.name}",
        rules=tuple(dict.fromkeys(named.get("rule", []))),
        features=tuple(dict.fromkeys(named.get("feature", []))),
        fast="fast" in named,
        solo="solo" in named or scope(where) != where,
        draft="draft" in named,
        fixtures=tuple(argument.arg for argument in node.args.args),
    )


def _mark(mark: ast.expr) -> Iterator[tuple[str, list[str]]]:
    call = mark if isinstance(mark, ast.Call) else None
    target = call.func if call else mark
    if call and isinstance(target, ast.Name) and target.id == "check":
        yield "rule", _texts(call.args)
        for one in call.keywords:
            several = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value]
            yield str(one.arg), _texts(several)
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "pytest.mark":
        yield target.attr, _texts(call.args if call else [])


def _texts(nodes: Iterable[ast.expr]) -> list[str]:
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return [value for value in constants if isinstance(value, str)]
