"""The one reader of results.json.

Runs come from elsewhere, too: from another machine, another release, or somebody who means harm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from reports.results import SCHEMA, Results
from reports.schema import schema
from spec.plain import from_plain

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def read(path: Path) -> Results:
    """Read results.json, given the file or the directory that holds it.

    Raises:
        ValueError: it is not there, not JSON, of a later schema, or malformed; says which file.
    """
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
    """Return results that were read as JSON.

    Raises:
        ValueError: they do not have the form that the schema demands; the message says where.
    """
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
