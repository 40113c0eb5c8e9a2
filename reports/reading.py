"""The one reader of results.json: from a file, of this release or an earlier one, to ``Results``.

Runs come from elsewhere, too: from another machine, another release, or somebody who means harm.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from reports.plain import from_plain
from reports.results import SCHEMA, ChaosRun, Results

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

SCHEMA_FILE = Path(__file__).with_name("results.schema.json")


def on_stderr(sentence: str) -> None:
    """Print a sentence that no program reads."""
    print(sentence, file=sys.stderr)


def read(path: Path, notice: Callable[[str], object] = on_stderr) -> Results:
    """Read results.json, given the file or the directory that holds it.

    Args:
        path: the file, or its directory.
        notice: is given a sentence if the results are of an earlier schema.

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
    if not isinstance(document, dict) or schema not in {*range(1, SCHEMA + 1)}:
        raise ValueError(f"{file}: not results of schema {SCHEMA}")
    try:
        results = parse(document)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    if schema != SCHEMA:
        notice(f"{file}: results of schema {schema}, read as schema {SCHEMA}")
    return results


def parse(document: dict[str, Any]) -> Results:
    """Return results that were read as JSON.

    Raises:
        ValueError: they do not have the form that the schema demands; the message says where.
    """
    whole = _from_1(document) if document.get("schema") == 1 else document
    whole = _from_2(whole) if whole.get("schema") == 2 else whole
    if error := next(_errors(whole), ""):
        raise ValueError(error)
    return from_plain(Results, whole)


def chaos_run(plain: dict[str, Any]) -> ChaosRun:
    """Return one run of a chaos campaign, as its chaos.json has it, of this release or before."""
    return from_plain(ChaosRun, _renamed_run(plain))


def _from_2(document: dict[str, Any]) -> dict[str, Any]:
    """Return results of schema 2 as schema 3 has them: one more verdict to count."""
    whole = document | {"schema": 3}
    if isinstance(whole.get("summary"), dict):
        whole["summary"] = {"out of reach": 0, **whole["summary"]}
    return whole


def _from_1(document: dict[str, Any]) -> dict[str, Any]:
    """Return results of schema 1 as schema 2 has them; what is malformed stays as it is."""
    whole = _renamed(document, {"later": "newer_than_target"}) | {"schema": 2}
    run, client = whole.get("run"), whole.get("client")
    if isinstance(run, dict):
        whole["run"] = {"canary": None, "notices": [], **_renamed(run, {"faults": "errors"})}
    if isinstance(client, dict):
        whole["client"] = {"brokers": {}, **client}
    for name, each in (("requirements", _renamed_rule), ("chaos", _renamed_run)):
        if isinstance(whole.get(name), list):
            whole[name] = [each(one) if isinstance(one, dict) else one for one in whole[name]]
    return whole


def _renamed_rule(rule: dict[str, Any]) -> dict[str, Any]:
    return _renamed(rule, {"ledger": "known_failures"})


def _renamed_run(run: dict[str, Any]) -> dict[str, Any]:
    new = _renamed(run, {"dry": "drained"})
    if isinstance(new.get("faults"), list):
        new["faults"] = [
            {"blocked_by": "", **_renamed(one, {"in_the_way": "blocked_by"})}
            for one in new["faults"]
            if isinstance(one, dict)
        ]
    return new


def _renamed(plain: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in plain.items()}


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
    for rule in document["requirements"]:
        for check in rule["checks"]:
            if _leads_out(check["transcript"]):
                yield f"{rule['id']}: its transcript {check['transcript']!r} is not below the run"


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name


@cache
def _validator() -> Draft202012Validator:
    # Imported late: most commands read no results.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
