"""results.json and run.json: what a run found, for machines.

The document is versioned by ``"schema"`` and described by ``results.schema.json`` beside this file.
Everything else that a run writes (page, summary, certificate) is made from this document and what
lies beside it, so that an old run can be rendered again by a newer release.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from reports.verdicts import Judged, tally
from spec.profile import Expected
from spec.requirement import Level
from spec.verdict import Observation

SCHEMA = 1
SLOWEST = 10
SCHEMA_FILE = Path(__file__).with_name("results.schema.json")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where the time went, in seconds.

    Attributes:
        total: The whole run, from options read to reports written.
        cluster_start: Until the target was ready.
        before_checks: Until the first check began; holds most of ``cluster_start``.
        checks: From the first check's beginning to the last one's end.
        work: The checks' own time added up; more than ``checks`` when they overlap.
        by_check: Each check's own time.
    """

    total: float
    cluster_start: float
    before_checks: float
    checks: float
    work: float
    by_check: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run itself: how it was asked for, and how it ended.

    ``canary`` is what came of the check that must fail; None where a run has no such check.
    """

    started: str
    seed: int
    command: tuple[str, ...]
    exit_code: int
    partial: bool
    faults: tuple[str, ...]
    level: Level
    only: tuple[str, ...]
    fast: bool
    versions: Mapping[str, str]
    timing: Timing
    canary: Observation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The target that was tested."""

    name: str
    version: str
    profile: str
    brokers: int
    properties: Mapping[str, str] = field(default_factory=dict)


def suite_version() -> str:
    """Return the version of this suite, or ``checkout`` when it is not installed."""
    try:
        return metadata.version("shareproof")
    except metadata.PackageNotFoundError:
        return "checkout"


def build(
    run: Run,
    subject: Subject,
    judged: Sequence[Judged],
    *,
    problems: Sequence[str],
    later: Sequence[str],
    reproduce: Callable[[str], str],
    transcript: Callable[[str], str],
    client: Mapping[str, Any] | None = None,
    faced: Callable[[str], str] = lambda _check: "",
) -> Document:
    """Return the results document.

    Args:
        run: the run's own facts.
        subject: what was tested.
        judged: the settled rules.
        problems: ledger problems that belong to no single rule.
        later: rules that the tested release does not owe yet.
        reproduce: gives the command that runs one rule again.
        transcript: gives the path of a check's transcript inside the run's directory, or ``""``.
        client: who the client under test says it is, and which broker it faced, if one is tested.
        faced: in the certificate of a client, gives the broker that a check put in front of it.
    """
    requirements = [_requirement(entry, reproduce, transcript, faced) for entry in judged]
    return {
        "schema": SCHEMA,
        "run": _run(run),
        "target": {
            "name": subject.name,
            "version": subject.version,
            "profile": subject.profile,
            "brokers": subject.brokers,
            "properties": dict(subject.properties),
        },
        **({"client": {**client, "brokers": _by_broker(requirements)}} if client else {}),
        "requirements": requirements,
        "problems": list(problems),
        "later": list(later),
        "summary": {
            **tally(judged),
            "unexpected": sum(not entry.expected for entry in judged),
            "problems": len(problems) + sum(bool(entry.problem) for entry in judged),
        },
        "timing": _timing(run.timing),
    }


def write(out: Path, document: Document) -> None:
    """Write results.json and run.json into the run's directory."""
    out.mkdir(parents=True, exist_ok=True)
    _dump(out / "results.json", document)
    facts = {**document["run"], "target": document["target"], "timing": document["timing"]}
    _dump(out / "run.json", facts)


def text_of(document: Document) -> str:
    """Return a document as its file has it, to the byte."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> Document:
    """Read results.json, given the file or the directory that holds it.

    Raises:
        ValueError: it is not there, not JSON, or of a schema that this release does not know.
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
    return document


def _run(run: Run) -> Document:
    return {
        "started": run.started,
        "seconds": round(run.timing.total, 3),
        "seed": run.seed,
        "command": list(run.command),
        "exit_code": run.exit_code,
        "partial": run.partial,
        "faults": list(run.faults),
        "level": run.level.value,
        "only": list(run.only),
        "fast": run.fast,
        "versions": dict(run.versions),
        "canary": _canary(run.canary),
    }


def _canary(seen: Observation | None) -> Document | None:
    if seen is None:
        return None
    return {
        "check": seen.check,
        "verdict": seen.verdict.value,
        "reason": seen.reason,
        "witness": list(seen.witness),
    }


def _by_broker(requirements: Sequence[Document]) -> dict[str, dict[str, int]]:
    """Count verdicts by the broker faced; a rule that two are faced for counts for each."""
    found: dict[str, dict[str, int]] = {}
    for rule in requirements:
        for broker in rule.get("facing", ()):
            counts = found.setdefault(broker, {})
            counts[rule["verdict"]] = counts.get(rule["verdict"], 0) + 1
    return found


def _requirement(
    judged: Judged,
    reproduce: Callable[[str], str],
    transcript: Callable[[str], str],
    faced: Callable[[str], str],
) -> Document:
    rule = judged.rule
    brokers = sorted({faced(seen.check) for seen in judged.checks} - {""})
    return {
        "id": rule.id,
        "level": rule.level.value,
        "area": rule.area,
        "text": rule.text,
        "source": [str(source) for source in rule.source],
        "since": rule.since,
        "honesty": rule.honesty.value,
        "verdict": judged.word,
        "expected": judged.expected,
        "reason": judged.reason,
        "problem": judged.problem,
        "evidence": dict(sorted(judged.evidence.items())),
        "witness": list(judged.witness),
        **({"facing": brokers} if brokers else {}),
        "checks": [_check(seen, transcript) for seen in judged.checks],
        "ledger": [_entry(entry) for entry in judged.entries],
        "reproduce": reproduce(rule.id) if judged.verdict else "",
    }


def _check(seen: Observation, transcript: Callable[[str], str]) -> Document:
    return {
        "check": seen.check,
        "verdict": seen.verdict.value,
        "reason": seen.reason,
        "seconds": seen.seconds,
        "transcript": transcript(seen.check),
    }


def _entry(entry: Expected) -> Document:
    return {
        "verdict": entry.verdict.value,
        "versions": entry.versions,
        "match": entry.match,
        "reason": entry.reason,
        "bug": entry.bug,
        "finding": entry.finding,
        "expires": entry.expires.isoformat(),
    }


def _timing(timing: Timing) -> Document:
    slowest = sorted(timing.by_check.items(), key=lambda item: -item[1])[:SLOWEST]
    return {
        "total": round(timing.total, 3),
        "cluster_start": round(timing.cluster_start, 3),
        "before_checks": round(timing.before_checks, 3),
        "checks": round(timing.checks, 3),
        "work": round(timing.work, 3),
        "executions": len(timing.by_check),
        "slowest": [{"check": check, "seconds": round(spent, 3)} for check, spent in slowest],
    }


def _dump(file: Path, document: Document) -> None:
    # Written beside and renamed, so that a reader never meets half a file.
    draft = file.with_suffix(".draft")
    draft.write_text(text_of(document), encoding="utf-8")
    draft.replace(file)
