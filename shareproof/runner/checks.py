"""One check's way through pytest: whether it runs, and what its report says."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import allure
import pytest

from fixtures.clients.access import refusal, throttling
from fixtures.interface.capability import Capability
from fixtures.interface.info import ClusterInfo
from fixtures.wire.frame import Transcript
from reports.verdicts import known_failure
from shareproof.runner import allured, outcome
from shareproof.runner.inventory import tiers
from shareproof.runner.outcome import (
    PROPERTY,
    besides,
    broken,
    left_open,
    observe,
    pack,
)
from shareproof.runner.scheduler import MOVING
from spec.ledger import Absent, defined_in
from spec.rule import Rule
from spec.tiers import ALL
from spec.verdict import Observation, Undecided, Verdict, Violation
from suites import canary
from suites.broker.observer import contradictions
from suites.canary import CANARY, is_canary
from suites.judge import MAKESHIFT, OBSERVED, REFUSED, Judge
from suites.options import UNSEEN, RunOptions, named_ledger

JUDGE = pytest.StashKey[Judge]()
TRANSCRIPTS = pytest.StashKey[list[Transcript]]()


def rules_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the rules that a test names; a test that names none carries no verdict."""
    if is_canary(item):
        return (CANARY,)
    named = [str(rule) for mark in item.iter_markers("rule") for rule in mark.args]
    return tuple(dict.fromkeys(named))


def features_of(item: pytest.Item) -> tuple[str, ...]:
    return tuple(str(name) for mark in item.iter_markers("feature") for name in mark.args)


def lacking(item: pytest.Item, absent: Mapping[str, Absent]) -> tuple[str, ...]:
    if is_canary(item):
        return ()
    named, rules = features_of(item), rules_of(item)
    return tuple(
        name for name, entry in absent.items() if name in named or any(map(entry.concerns, rules))
    )


def keep(item: pytest.Item, options: RunOptions, known: Mapping[str, Rule]) -> bool:
    """Tell whether a test belongs to the run; those without rules always do.

    A check whose rules are all younger than the release under test is left out, unless it names a
    feature: then it goes on, to see the release refuse it.
    """
    rules = rules_of(item)
    if not rules or is_canary(item):
        return True
    chosen = (
        options.asks(known[rule]) if rule in known else options.wants(rule) and options.owes(rule)
        for rule in rules
    )
    if not any(chosen):
        return False
    if options.tier < ALL and all(tiers().get(rule, ALL) > options.tier for rule in rules):
        return False
    if crossed := item.get_closest_marker("crossed"):
        # Other situations than the check's own take administration and topics of one's own.
        callspec = getattr(item, "callspec", None)
        setup = str(callspec.params.get("setup", "")) if callspec else ""
        if options.tier == 1 or options.topics or setup in options.as_written:
            return False
    slow = crossed or not item.get_closest_marker("fast")
    if (options.fast and slow) or (item.get_closest_marker("draft") and not options.drafts):
        return False
    owed = any(rule not in known or defined_in(known[rule], options.version) for rule in rules)
    return owed or bool(features_of(item))


def conclude(
    item: pytest.Item,
    call: pytest.CallInfo[None],
    report: pytest.TestReport,
    *,
    options: RunOptions,
    info: ClusterInfo | None,
) -> None:
    """Put what a check observed into the report of one of its phases.

    The call phase always says something. Setup and teardown say something only when they failed:
    a broken setup decides the check, a broken teardown casts doubt on it.
    """
    observations = _observed(item, call, options)
    if not observations:
        return
    # Where a check fails, that says what is wrong.
    observed = call.when == "call" and not report.failed and not is_canary(item)
    beside = _contradicted(item) if observed else []
    if beside:
        report.outcome, report.longrepr = "failed", "\n".join(one.reason for one in beside)
    observations += beside
    report.user_properties.append((PROPERTY, pack(observations)))
    if is_canary(item):
        if not canary.fault(observations):
            report.outcome, report.wasxfail = "skipped", canary.EXCUSE
        return
    allured.label(one.verdict for one in observations)
    troubled = [o for o in observations if o.verdict not in {Verdict.PASS, Verdict.UNSUPPORTED}]
    if not troubled:
        return
    frames: list[Transcript] = item.stash.get(TRANSCRIPTS, [])
    text = "\n\n".join(map(str, frames))
    if text and options.out:
        allure.attach(text, "decoded frames", allure.attachment_type.TEXT)
        file = Path(options.out) / transcript_name(item.nodeid)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    reason = _known(troubled, options, info) if report.failed else ""
    if report.failed and not reason and outcome.wants_second_try(item.config, troubled):
        report.user_properties.append((outcome.AGAIN, True))
        reason = outcome.NOTE
    if reason:
        report.outcome = "skipped"
        report.wasxfail = reason


def _observed(
    item: pytest.Item, call: pytest.CallInfo[None], options: RunOptions
) -> list[Observation]:
    rules = rules_of(item)
    error: BaseException | None = call.excinfo.value if call.excinfo else None
    if isinstance(error, KeyboardInterrupt | pytest.exit.Exception):
        return []
    if REFUSED in item.stash:
        sentence = item.stash[REFUSED]
        return broken(item.nodeid, rules, sentence, Verdict.UNSUPPORTED) if error else []
    judge = item.stash.get(JUDGE, None) or Judge(rules)
    frames: list[Transcript] = item.stash.get(TRANSCRIPTS, [])
    if item.nodeid.startswith("suites/broker/"):
        error = left_open(error, frames)
    if call.when == "call" or (call.when == "setup" and error):
        refused = slowed = ""
        if error is not None and Capability.OWN_CLUSTER not in options.offers:
            # Somebody else's cluster may not let a check do something, and so be why it ended.
            stay = not item.nodeid.startswith(MOVING)
            refused, slowed = refusal(frames), throttling(frames, all_stay=stay)
            if not refused and isinstance(error, Undecided):
                refused = item.stash.get(MAKESHIFT, str)()
        return observe(item.nodeid, judge, error, call.duration, refused, throttled=slowed)
    if call.when == "teardown" and (found := besides(item.nodeid, judge, error)):
        return found
    if call.when == "teardown" and error:
        return broken(item.nodeid, rules, f"harness: clean-up failed: {error}")
    return []


def _contradicted(item: pytest.Item) -> list[Observation]:
    """Return a failure of each rule that the check's traffic breaks, whatever the check is about.

    Where a check starts programs, somebody else may act on its groups.
    """
    if not item.stash.get(OBSERVED, False) or item.get_closest_marker("programs"):
        return []
    frames: list[Transcript] = item.stash.get(TRANSCRIPTS, [])
    found: dict[str, Violation] = {}
    for one in contradictions(frames):
        found.setdefault(one.rule, one)
    return [
        replace(seen, reason=f"observed beside: {seen.reason}")
        for one in found.values()
        for seen in observe(item.nodeid, Judge(()), one, 0.0)
    ]


def _known(troubled: Sequence[Observation], options: RunOptions, info: ClusterInfo | None) -> str:
    """Return the ledger's reasons if all of it is known, so that pytest shows no failure."""
    # A stage has a cluster of its own: this process may never have seen the common one.
    ledger = named_ledger(options.ledger_for(info.ledger if info else UNSEEN))
    entries = ledger.expectations(options.judged(info.version if info else options.version))
    reasons: list[str] = []
    for seen in troubled:
        if seen.excused or (seen.verdict is Verdict.OUT_OF_REACH and not options.strict_reach):
            reasons.append(f"{seen.verdict}: {seen.reason}")
            continue
        entry = known_failure(seen, entries.get(seen.rule, ()))
        if entry is None:
            return ""
        reasons.append(f"known {seen.verdict} of {seen.rule}: {entry.reason}")
    return "; ".join(reasons)


def transcript_name(nodeid: str, *, first: bool = False) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "-", nodeid.rsplit("/", 1)[-1]).strip("-")
    # Two parametrized checks may differ in punctuation only, hence the digest.
    digest = hashlib.sha256(nodeid.encode()).hexdigest()[:6]
    return f"transcripts/{plain[:100]}-{digest}{'-first' if first else ''}.txt"


def existing(out: Path | None, name: str) -> str:
    return name if out and (out / name).is_file() else ""
