"""Python source as a graph of definitions, and each definition as text that hashes can rest on.

The text of a definition does not change with its formatting, comments, docstrings, annotations or
place, nor with the names of its variables, parameters or of the definitions that it uses. Sentences
(strings with blanks in them) are left out: what a check says is not what it does. Names of
attributes and keywords do count, except in the text's *shape*, which has none.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Key = tuple[str, str]
"""A module's name, and that of a definition in it; a method is ``Class.method``."""

_LABELS = frozenset({"requirement", "fast", "timeout", "draft", "feature", "needs", "mutant"})
"""Decorators that do not change what a check or a mutant does."""


@dataclass(slots=True, kw_only=True)
class Module:
    """One file: its statements by the names they define, and what its imports mean.

    A statement that defines no name that could be used has a number in the place of a name.
    """

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Key] = field(default_factory=dict)


class Source:
    """All definitions of some packages, which lie below ``root``."""

    def __init__(self, root: Path, folders: Iterable[Path], but: Collection[Path] = ()) -> None:
        """Read every file of some folders but a few."""
        self.modules: dict[str, Module] = {}
        for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
            if file in but:
                continue
            name = ".".join(file.relative_to(root).with_suffix("").parts)
            tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
            self.modules[name.removesuffix(".__init__")] = _module(tree)

    def resolve(self, module: str, name: str) -> Key | None:
        """Return the definition that a name means in a module; None if it is not one of ours."""
        for _ in range(10):  # an import of an import ends somewhere
            known = self.modules.get(module)
            if known is None:
                return None
            if name in known.definitions:
                return module, name
            if name not in known.imports:
                return None
            module, name = known.imports[name]
        return None

    def methods(self, key: Key) -> dict[str, Key]:
        """Return the methods of a class by name."""
        module, prefix = key[0], f"{key[1]}."
        names = self.modules[module].definitions
        return {
            name.removeprefix(prefix): (module, name)
            for name in names
            if name[: len(prefix)] == prefix
        }

    @cache  # noqa: B019  # a source lives as long as the process
    def definition(self, key: Key) -> Definition:
        """Return one definition."""
        module, name = key
        method = name.rpartition(".")[2] if "." in name else ""
        nodes = self.modules[module].definitions[name]
        return Definition(source=self, module=module, nodes=nodes, method=method)

    def reached(self, *first: Key, whole: bool = False) -> set[Key]:
        """Return what definitions use, what that uses, and so on; themselves among it.

        A class is reached without its methods, unless ``whole`` asks for them; a method is reached
        if something uses its name.
        """
        found: set[Key] = set()
        waiting, classes, attributes = list(first), dict[Key, dict[str, Key]](), set[str]()
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            found.add(key)
            one = self.definition(key)
            new = one.attributes - attributes
            attributes |= new
            waiting += one.uses
            waiting += [ms[name] for ms in classes.values() for name in new if name in ms]
            if methods := self.methods(key):
                classes[key] = methods
                waiting += [
                    to
                    for name, to in methods.items()
                    if whole or name in attributes or _dunder(name)
                ]
        return found

    def digest(self, *first: Key, shape: bool = False, whole: bool = False) -> str:
        """Return a hash of definitions and of all that they reach."""
        rest = self.reached(*first, whole=whole) - set(first)
        texts = [self.definition(key).text(shape=shape) for key in first]
        texts += sorted(self.definition(key).text(shape=shape) for key in rest)
        return short("\n".join(texts))


@dataclass(frozen=True, kw_only=True, eq=False)
class Definition:
    """A function, a class without its methods, or a variable of a module."""

    source: Source
    module: str
    nodes: list[ast.stmt]
    method: str = ""

    @cached_property
    def attributes(self) -> set[str]:
        """The names behind dots, which may be those of methods."""
        nodes = (n for node in self.nodes for n in _own(node))
        return {node.attr for node in nodes if isinstance(node, ast.Attribute)}

    @cached_property
    def arguments(self) -> set[str]:
        """The names of a function's parameters, which may be the names of fixtures."""
        return {
            one.arg for node in self.nodes if isinstance(node, Function) for one in node.args.args
        }

    @cached_property
    def uses(self) -> set[Key]:
        """The definitions that this one names."""
        found = set()
        for node in (n for statement in self.nodes for n in _own(statement)):
            local = isinstance(node, ast.Name) and node.id in self.locals
            if not local and (key := self.meant(node)):
                found.add(key)
        return found

    @cached_property
    def locals(self) -> dict[str, str]:
        """The variables of a function, each with the name that it has in texts."""
        functions = [node for node in self.nodes if isinstance(node, Function)]
        return {name: f"v{at}" for node in functions for at, name in enumerate(_locals(node))}

    def meant(self, node: ast.AST) -> Key | None:
        """Return the definition that an expression names, if it is one of ours."""
        if isinstance(node, ast.Name):
            return self.source.resolve(self.module, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            imported = self.source.modules[self.module].imports.get(node.value.id)
            if imported is not None:
                return self.source.resolve(".".join(part for part in imported if part), node.attr)
        return None

    def text(self, *, shape: bool = False) -> str:
        """Return what a hash rests on."""
        return self._shape if shape else self._text

    @cached_property
    def bare(self) -> str:
        """A hash of the text without what it uses, by which users of this one know it."""
        return short(self._written(deep=False, shape=False))

    @cached_property
    def _text(self) -> str:
        return self._written(deep=True, shape=False)

    @cached_property
    def _shape(self) -> str:
        return self._written(deep=True, shape=True)

    def _written(self, *, deep: bool, shape: bool) -> str:
        writer = _Writer(self, deep=deep, shape=shape)
        return "".join(part for node in self.nodes for part in writer.write(node))


class _Writer:
    """Writes the text of one definition."""

    def __init__(self, definition: Definition, *, deep: bool, shape: bool) -> None:
        self._definition, self._deep, self._shape = definition, deep, shape
        self._locals = definition.locals

    def write(self, node: ast.AST) -> Iterator[str]:
        """Yield the parts of a node's text."""
        name = self._name(node)
        yield f"({type(node).__name__} {name} " if name else f"({type(node).__name__} "
        yield from (part for child in self._children(node) for part in self.write(child))
        yield ")"

    def _name(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self._locals.get(node.id) or self._ours(node) or self._outer(node.id)
        if isinstance(node, ast.Attribute):
            return self._ours(node) or self._outer(node.attr)
        if isinstance(node, ast.arg):
            return self._locals.get(node.arg, "")
        if isinstance(node, ast.Constant):
            prose = isinstance(node.value, str) and " " in node.value
            return "prose" if prose else repr(node.value)
        if isinstance(node, ast.keyword):
            return self._outer(node.arg or "**")
        return self._outer(self._definition.method) if node in self._definition.nodes else ""

    def _ours(self, node: ast.AST) -> str:
        key = self._definition.meant(node)
        if key is None:
            return ""
        if self._shape or not self._deep:
            return "@"
        return f"@{self._definition.source.definition(key).bare}"

    def _outer(self, name: str) -> str:
        return "~" if self._shape else name

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.ClassDef):
            yield from (*node.bases, *node.keywords)
            yield from (mark for mark in node.decorator_list if not _is_label(mark))
            yield from (each for each in _body(node) if not isinstance(each, Function))
        elif isinstance(node, Function):
            yield from (part for mark in node.decorator_list for part in _parts(mark))
            yield from (node.args, *_body(node))
        elif isinstance(node, ast.AnnAssign):
            yield from (each for each in (node.target, node.value) if each is not None)
        elif isinstance(node, ast.Attribute):
            if self._definition.meant(node) is None:
                yield node.value
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.arg):
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.expr_context):
                    yield child


def _module(tree: ast.Module) -> Module:
    module = Module(imports=dict(_imported(tree)))
    for at, statement in enumerate(tree.body):
        for name in list(_defined(statement)) or [f"{at}"]:
            module.definitions.setdefault(name, []).append(statement)
        if isinstance(statement, ast.ClassDef):
            for method in (each for each in statement.body if isinstance(each, Function)):
                where = f"{statement.name}.{method.name}"
                module.definitions.setdefault(where, []).append(method)
    return module


def _imported(tree: ast.Module) -> Iterator[tuple[str, Key]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.asname or one.name, (one.name, "")) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((one.asname or one.name, (node.module, one.name)) for one in node.names)


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        if node.name != "_":
            yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            names = [n for n in ast.walk(target) if isinstance(n, ast.Name)]
            yield from (n.id for n in names if isinstance(n.ctx, ast.Store))


def _locals(function: Function) -> Iterable[str]:
    """Return the variables of a function in the order in which they appear, each once."""
    names = (_bound(node) for node in ast.walk(function) if node is not function)
    return dict.fromkeys(name for name in names if name)


def _bound(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, Function | ast.ClassDef | ast.ExceptHandler):
        return node.name or ""
    return ""


def _body(node: ast.ClassDef | Function) -> list[ast.stmt]:
    return [
        each
        for each in node.body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and what is in it, without labels, and without the methods of a class."""
    yield node
    labels = [mark for mark in getattr(node, "decorator_list", ()) if _is_label(mark)]
    methods = node.body if isinstance(node, ast.ClassDef) else ()
    for child in ast.iter_child_nodes(node):
        if child not in labels and not (child in methods and isinstance(child, Function)):
            yield from _own(child)


def _is_label(mark: ast.expr) -> bool:
    target = mark.func if isinstance(mark, ast.Call) else mark
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name in _LABELS


def _parts(mark: ast.expr) -> list[ast.expr]:
    """Return what of a decorator changes what is done: of ``breaks`` all but the rules."""
    if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "breaks":
        return mark.args[:2]
    return [] if _is_label(mark) else [mark]


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def short(text: str) -> str:
    """Return a hash that tells texts apart, and does not fill a line."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
