"""What an entry of evidence rests on, as hashes: the check, the rule, and what was broken.

A part that no longer fits makes the entry *stale*: it speaks of something that is not there any
more. :mod:`tools.campaign.source` says which changes count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import fixtures.adapters.model.mutants
import fixtures.proxies.alterations
import fixtures.reference.mutants
import suites
from fixtures.mutants.agency import source as agent
from reports.evidence import (
    ALTERATION,
    CLIENT_MUTANT,
    HONEST,
    KAFKA_MUTANT,
    REFERENCE_MUTANT,
    RELEASE,
    Entry,
    read,
)
from spec.requirement import load_requirements
from tools.campaign.source import Key, Source, short

ROOT = Path(__file__).parents[2]
_PACKAGES = {
    REFERENCE_MUTANT: fixtures.reference.mutants,
    ALTERATION: fixtures.proxies.alterations,
    CLIENT_MUTANT: fixtures.adapters.model.mutants,
}


_PLUMBING = ("clusters.py", "options.py")
"""Modules that say how a run is asked for and how its clusters start; they judge nothing."""


def hashes(entry: Entry) -> dict[str, str]:
    """Return the hashes of all that an entry rests on today; of what is gone there is none."""
    found = {"rule": _rule(entry.rule)}
    if "::" in entry.check:
        found |= {"check": check(entry.check), "shape": check(entry.check, shape=True)}
    if entry.kind != RELEASE and entry.name:
        found["broken"] = broken(entry.kind, entry.name)
    return {part: digest for part, digest in found.items() if digest}


def changed(entry: Entry) -> list[str]:
    """Return the parts of an entry that no longer fit: ``check``, ``rule``, ``broken``.

    A check of which only names of attributes and keywords differ is ``names``.
    """
    now, then = hashes(entry), entry.hash
    parts = [part for part in ("check", "rule", "broken") if now.get(part) != then.get(part)]
    if "check" in parts and now.get("shape") == then.get("shape"):
        parts[parts.index("check")] = "names"
    return parts


def gone(entry: Entry) -> bool:
    """Return whether an entry's check, rule, mutant or alteration is no more."""
    now = hashes(entry)
    owed = {"rule"} | ({"check"} if "::" in entry.check else set())
    owed |= {"broken"} if entry.kind in {*_PACKAGES, KAFKA_MUTANT} and entry.name else set()
    return not owed <= now.keys()


def stale(entries: Iterable[Entry] | None = None) -> list[tuple[Entry, list[str]]]:
    """Return the entries that no longer fit, each with the parts that changed."""
    found = ((one, changed(one)) for one in (read() if entries is None else entries))
    return [(one, parts) for one, parts in found if parts]


@cache
def _suites() -> Source:
    folder = Path(suites.__file__).parent
    return Source(ROOT, [folder], but=[folder / name for name in _PLUMBING])


@cache
def check(name: str, *, shape: bool = False) -> str:
    """Return the hash of a check, of its fixtures, and of all helpers that these reach."""
    source = _suites()
    path, _, function = name.partition("::")
    key = (path.removesuffix(".py").replace("/", "."), function.replace("::", "."))
    if key[0] not in source.modules or key[1] not in source.modules[key[0]].definitions:
        return ""
    return source.digest(key, *_fixtures(source, key), shape=shape)


def _fixtures(source: Source, key: Key) -> list[Key]:
    """Return the fixtures that a check asks for, from the nearest conftest.py that has them."""
    found: dict[str, Key] = {}
    waiting = sorted(source.definition(key).arguments)
    while waiting:
        name, package = waiting.pop(), key[0]
        while name not in found and package:
            package = package.rpartition(".")[0]
            module = source.modules.get(f"{package}.conftest")
            if module and name in module.definitions:
                found[name] = (f"{package}.conftest", name)
                waiting += sorted(source.definition(found[name]).arguments)
    return [found[name] for name in sorted(found)]


_rules = cache(load_requirements)


@cache
def _rule(name: str) -> str:
    rule = _rules().get(name)
    return short(f"{rule.level} {' '.join(rule.text.split())}") if rule else ""


@cache
def broken(kind: str, name: str) -> str:
    """Return the hash of a mutant or an alteration; nothing if there is none of that name."""
    if kind == KAFKA_MUTANT:
        return _advice(name)
    return _declarations(ALTERATION if kind == HONEST else kind).get(name, "")


@cache
def _declarations(kind: str) -> dict[str, str]:
    """Return the hash of each mutant or alteration by name: of the statement that declares it."""
    if kind not in _PACKAGES:
        return {}
    source = Source(ROOT, [Path(path) for path in _PACKAGES[kind].__path__])
    found: dict[str, str] = {}
    for where, module in source.modules.items():
        for key, nodes in module.definitions.items():
            for name in {name for node in nodes for name in _declared(node)}:
                parts = [(where, key), *source.methods((where, key)).values()]
                found[name] = source.digest(*parts, whole=True)
    return found


def _declared(node: ast.stmt) -> Iterator[str]:
    """Yield the names by which a statement registers something: a decorator's, a call's, a key."""
    calls: list[ast.AST] = list(getattr(node, "decorator_list", []))
    if any(getattr(getattr(call, "func", None), "id", "") == "breaks" for call in calls):
        yield str(getattr(node, "name", "")).replace("_", "-")
    calls += [node.value] if isinstance(node, ast.Expr) else []
    names: list[ast.AST] = [
        call.args[0] for call in calls if isinstance(call, ast.Call) and call.args
    ]
    if isinstance(node, ast.Assign):
        names += [one.slice for one in node.targets if isinstance(one, ast.Subscript)]
    if isinstance(node, ast.For):  # over a table
        names += list(ast.walk(node.iter))
    for name in names:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value


def _advice(name: str) -> str:
    """Return the hash of a mutant of Kafka: its line in the agent, and the advice it names."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", agent(), flags=re.DOTALL)
    line = re.search(rf'add\("{name}",([^;]*);', text)
    if line is None:
        return ""
    parts = [line[1]]
    for advice in re.findall(r"(\w+)\.class", line[1]):
        begin = text.index(f"class {advice} {{")
        ends = (text.find("public static final class", begin), text.find("\n}", begin) + 2)
        parts.append(text[begin : min(end for end in ends if end > begin)].partition("{")[2])
    return short("".join("".join(parts).split()))
