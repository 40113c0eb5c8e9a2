"""The one reader of results.json, and its JSON Schema, printed by ``python -m reports.reader``.

Runs come from elsewhere, too: from another machine, another release, or somebody who means harm.
The schema is made of the types in ``reports.results``. A field without a default is required.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path, PurePosixPath
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from reports.results import SCHEMA, Results
from spec.plain import from_plain

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


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


def read(path: Path) -> Results:
    """Read results.json, given it or its directory; raises ValueError, which names the file."""
    file = path / "results.json" if path.is_dir() else path
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{file}: not JSON, or only a part of it") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise ValueError(
            f"{file}: results of schema {schema}, and this release knows {SCHEMA}: use a later one"
        )
    if not isinstance(document, dict) or schema != SCHEMA:
        raise ValueError(f"{file}: not results of schema {SCHEMA}")
    try:
        return parse(document)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def parse(document: dict[str, Any]) -> Results:
    """Return results that were read as JSON; raises ValueError, which says where they are wrong."""
    if error := next(_errors(document), ""):
        raise ValueError(error)
    return from_plain(Results, document)


def _errors(document: dict[str, Any]) -> Iterator[str]:
    for error in _validator().iter_errors(document):
        # A later release may add fields; those that it shares with this one can be shown.
        if error.validator != "additionalProperties":
            yield f"{error.json_path.removeprefix('$.')}: {error.message[:200]}"
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield "it has half of a character that takes two (a lone surrogate)"
    try:
        datetime.fromisoformat(document["run"]["started"])
    except ValueError:
        yield f"run.started: {document['run']['started']!r} is no time of ISO 8601"
    for rule in document["rules"]:
        for check in rule["checks"]:
            path = PurePosixPath(name := check["transcript"])
            if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
                yield f"{rule['id']}: its transcript {name!r} is not below the run"


@cache
def _validator() -> Draft202012Validator:
    # Imported late: most commands read no results.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator(schema())


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1, ensure_ascii=False))
