"""The ledger: what one implementation is known to lack, and which rules it is known to break.

A ledger is data that an implementation's owners can argue with: every entry says why, for which
versions, under which public bug, and until when it is believed. The ledger cannot rot silently. An
entry that no longer matches what the run saw is a problem of its own and fails the run.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from spec.rule import Rule
from spec.tables import SpecError, parse, record
from spec.verdict import Verdict

EXPECTABLE = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.VACUOUS)
"""Verdicts a ledger may expect. An ``error`` is ours to repair and is never expected."""

SETUPS = ("beside", "behind", "reloaded", "among", "keys")
"""Set-ups that a ledger may leave out; what they are is in ``suites/broker/check.py``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A feature the implementation does not have. ``probe`` names what sees it being refused.

    ``rules`` are rules, or whole areas, whose checks all need the feature although no marker of
    theirs says so, because every Kafka release has it: ``*`` for all rules.
    """

    feature: str
    versions: str
    probe: str
    reason: str
    rules: tuple[str, ...] = ()

    def concerns(self, rule: str) -> bool:
        return bool({"*", rule, rule[:3]} & set(self.rules))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A rule that is known not to hold; ``match`` is searched in the reason and in the witness.

    ``intermittent`` marks what is seen in some runs only, such as a race that the implementation
    loses now and then; its entry is never called stale, and still expires.
    """

    rule: str
    verdict: Verdict
    versions: str
    match: str
    reason: str
    expires: date
    bug: str = ""
    finding: str = ""
    intermittent: bool = False

    def explains(self, verdict: Verdict, reason: str, witness: Sequence[str] = ()) -> bool:
        text = "\n".join((reason, *witness))
        return verdict is self.verdict and re.search(self.match, text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What is known of one implementation, over all of its versions.

    ``internals`` says that it has the inside of Apache Kafka, so that the rules about that are its
    own, too. ``as_written`` has the set-ups that checks are not played in, because a known failure
    would hide all else there.
    """

    name: str
    title: str = ""
    absent: tuple[Absent, ...] = ()
    expected: tuple[Expected, ...] = ()
    internals: bool = False
    as_written: tuple[str, ...] = ()

    def absences(self, version: str) -> dict[str, Absent]:
        return {entry.feature: entry for entry in self.absent if covers(entry.versions, version)}

    def expectations(self, version: str) -> dict[str, list[Expected]]:
        found: dict[str, list[Expected]] = {}
        for entry in self.expected:
            if covers(entry.versions, version):
                found.setdefault(entry.rule, []).append(entry)
        return found


def covers(versions: str, version: str) -> bool:
    """Tell whether a version range holds a version.

    The empty range holds everything. An unknown version (``""``) is held by the empty range only:
    an excuse must not spread to a broker that did not say what it is.
    """
    if not versions:
        return True
    if not version:
        return False
    try:
        return SpecifierSet(versions).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def defined_in(rule: Rule, version: str) -> bool:
    try:
        return not version or Version(version) >= Version(rule.since)
    except InvalidVersion:
        return True


def shipped() -> list[str]:
    folder = resources.files("spec") / "ledgers"
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


@cache
def load_ledger(name: str) -> Ledger:
    if name not in shipped():
        raise SpecError(f"there is no ledger {name!r}; shipped: {', '.join(shipped())}")
    folder = resources.files("spec") / "ledgers"
    return parse_ledger((folder / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")


def parse_ledger(text: str, where: str) -> Ledger:
    """Read a ledger from TOML; ``where`` names it in the message of a SpecError."""
    document = parse(text, where)
    if surplus := set(document) - {"ledger", "absent", "known"}:
        raise SpecError(f"{where}: unknown tables {sorted(surplus)}")
    head = document.get("ledger", {})
    if not isinstance(head, Mapping) or not head.get("name"):
        raise SpecError(f"{where}: [ledger] has no name")
    shared = {key: head[key] for key in ("versions", "expires") if key in head}
    absent = tuple(_absent(raw, shared, where) for raw in document.get("absent", []))
    expected = tuple(
        _expected(raw, where)
        for cause in document.get("known", [])
        for raw in _failures({**shared, **cause}, where)
    )
    _refuse_twins((f"{entry.feature} {entry.versions}" for entry in absent), where)
    _refuse_twins((f"{e.rule} {e.versions} {e.match}" for e in expected), where)
    keys = {"name", "title", "internals", "as_written"} & head.keys()
    label = f"{where}: [ledger]"
    found = record(
        Ledger, {key: head[key] for key in keys}, label, absent=absent, expected=expected
    )
    if strange := [name for name in found.as_written if name not in SETUPS]:
        raise SpecError(f"{label}: as_written: {strange[0]} is none of {', '.join(SETUPS)}")
    return found


def check_ledger(ledger: Ledger, rules: Mapping[str, Rule]) -> list[str]:
    return [
        f"{ledger.name}: the ledger expects something of {entry.rule}, not a live rule"
        for entry in ledger.expected
        if entry.rule not in rules
    ]


def _absent(raw: Mapping[str, object], shared: Mapping[str, object], where: str) -> Absent:
    label = f"{where}: absent {raw.get('feature', '?')}"
    given = {key: shared[key] for key in ("versions",) if key in shared}
    found = record(Absent, {**given, **raw}, label)
    _refuse_empty(found, ("feature", "probe", "reason"), label)
    _check_range(found.versions, label)
    return found


def _failures(cause: Mapping[str, object], where: str) -> Iterator[dict[str, object]]:
    label = f"{where}: known {cause.get('reason', '?')}"
    failures = cause.get("failures")
    if not (isinstance(failures, list) and failures and all(isinstance(f, dict) for f in failures)):
        raise SpecError(f"{label}: failures must be a list of tables such as {{ rule, match }}")
    common = {key: value for key, value in cause.items() if key != "failures"}
    for failure in failures:
        own = {key: value for key, value in failure.items() if key not in {"rule", "rules"}}
        rules = failure.get("rules", [failure.get("rule", "")])
        if len({"rule", "rules"} & failure.keys()) > 1 or not (isinstance(rules, list) and rules):
            raise SpecError(f"{label}: a failure has either rule or rules, a list")
        for rule in rules:
            yield {"verdict": "fail", **common, **own, "rule": rule}


def _expected(raw: Mapping[str, object], where: str) -> Expected:
    label = f"{where}: expected {raw.get('rule', '?')}"
    found = record(Expected, raw, label)
    _refuse_empty(found, ("rule", "match", "reason"), label)
    _check_range(found.versions, label)
    if found.verdict not in EXPECTABLE:
        words = ", ".join(EXPECTABLE)
        raise SpecError(f"{label}: verdict must be one of {words}, not {found.verdict.value!r}")
    try:
        re.compile(found.match)
    except re.error as error:
        raise SpecError(f"{label}: match is no regular expression: {error}") from None
    return found


def _refuse_empty(found: object, names: Sequence[str], label: str) -> None:
    for name in names:
        if not getattr(found, name):
            raise SpecError(f"{label}: {name} is missing")


def _check_range(versions: str, label: str) -> None:
    try:
        SpecifierSet(versions)
    except InvalidSpecifier:
        raise SpecError(f"{label}: {versions!r} is no version range such as <4.2") from None


def _refuse_twins(keys: Iterator[str], where: str) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise SpecError(f"{where}: two entries for {key}")
        seen.add(key)
