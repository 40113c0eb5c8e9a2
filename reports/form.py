"""Whether a results.json has the form that its schema demands, so that pages can be made of it.

Runs come from elsewhere, too: from another machine, another release, or somebody who means harm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from reports.results import SCHEMA_FILE, Document, text_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

ADDED = {"canary": None}
"""What results of this schema say of a run since later releases, and what they mean before."""


def completed(document: Document) -> Document:
    """Return results with what releases before ours did not say.

    Raises:
        ValueError: they have not the form that the schema demands; the message says where.
    """
    run = document.get("run")
    whole = {**document, "run": {**ADDED, **run}} if isinstance(run, dict) else document
    if fault := next(_faults(whole), ""):
        raise ValueError(fault)
    return whole


def _faults(document: Document) -> Iterator[str]:
    for error in _validator().iter_errors(document):
        # A later release may say more; what it says as before can be shown.
        if error.validator != "additionalProperties":
            yield f"{error.json_path.removeprefix('$.')}: {error.message[:200]}"
    try:
        text_of(document).encode()
    except UnicodeEncodeError:
        yield "it has half of a character that takes two (a lone surrogate)"
    try:
        datetime.fromisoformat(document["run"]["started"])
    except ValueError:
        yield f"run.started: {document['run']['started']!r} is no time of ISO 8601"
    for rule in document["requirements"]:
        for check in rule["checks"]:
            if _leads_out(check["transcript"]):
                yield f"{rule['id']}: its transcript {check['transcript']!r} is not below the run"


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name


@cache
def _validator() -> Draft202012Validator:
    # Loaded late: most commands read no results.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
