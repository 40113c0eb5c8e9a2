"""The JSON Schema of results.json, made of the types in ``reports.results``.

A field without a default is required. ``python -m reports.schema`` prints it.
"""

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from reports.results import SCHEMA, Results

Schema = dict[str, Any]
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_ENTRY = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def schema() -> Schema:
    definitions: dict[str, Schema] = {}
    _definition(Results, definitions)
    root = definitions.pop(Results.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Results of a shareproof run, schema {SCHEMA}",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def _definition(kind: type, definitions: dict[str, Schema]) -> None:
    hints = get_type_hints(kind, include_extras=True)
    docs = inspect.getdoc(kind) or ""
    described = {name: " ".join(text.split()) for name, text in _ENTRY.findall(docs)}
    known = fields(cast("Any", kind))
    definitions[kind.__name__] = {
        "description": docs.partition("\n")[0],
        "type": "object",
        "additionalProperties": False,
        "required": [each.name for each in known if each.default is MISSING],
        "properties": {
            each.name: {
                **_schema(_present(hints[each.name], each.default), definitions),
                **({"description": described[each.name]} if each.name in described else {}),
            }
            for each in known
        },
    }


def _present(hint: Any, default: object) -> Any:
    """Return the type of a field in the file, from which None is left out where it may be."""
    if default is not None or get_origin(hint) not in {Union, UnionType}:
        return hint
    return next(each for each in get_args(hint) if each is not NoneType)


def _schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return {**_schema(args[0], definitions), **args[1]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in {Union, UnionType}:
        return {"anyOf": [_schema(each, definitions) for each in args]}
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is Mapping:
        values, keys = _schema(args[1], definitions), list(get_args(args[0]))
        properties = {"required": keys, "properties": dict.fromkeys(keys, values)} if keys else {}
        return {"type": "object", "additionalProperties": False if keys else values, **properties}
    return _named(hint, definitions)


def _named(kind: Any, definitions: dict[str, Schema]) -> Schema:
    if is_dataclass(kind):
        name = cast("type", kind).__name__
        if name not in definitions:
            _definition(cast("type", kind), definitions)
        return {"$ref": f"#/$defs/{name}"}
    if issubclass(kind, Enum):
        return {"enum": [each.value for each in kind]}
    return {"type": _PLAIN[kind]}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1, ensure_ascii=False))
