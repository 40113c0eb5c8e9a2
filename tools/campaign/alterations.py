"""Alterations in front of real Kafka: every check is seen failing for each of its rules.

A real cluster is started, each alteration of :mod:`fixtures.proxies.alterations` is put in front of
it in turn, and the checks run that have not been seen failing yet. Only ``fail`` counts: a check
that an alteration leaves undecided has not rejected anything.

The checks of a stage, which share a cluster that is dear to start, are played behind all
alterations on one such cluster; see :mod:`tools.campaign.runs`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from fixtures.proxies.alter import HONEST
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target, started
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import Check, read_checks
from shareproof.runner.scheduler import scope
from spec.verdict import Verdict
from tools.campaign import runs
from tools.campaign.options import Options, Outcome, chosen, entry_of

PATIENCE = 0.25
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

LEDGER = ("--ledger", "apache-kafka")
RELEASE = DEFAULT_TARGET.partition(":")[2]


def play(options: Options) -> Outcome:
    names, checks = chosen(options.only, ALTERATIONS, read_checks(drafts=True))
    shared, solo, staged = _sorts(checks)
    # A cluster that runs already cannot be altered by its own configuration.
    by_proxy = [name for name in names if not ALTERATIONS[name].properties]
    if shared and (options.full or pending(options, shared)):
        with cluster(options.target) as target:
            _sweep(options, shared, target, by_proxy)
    _sweep(options, solo, DEFAULT_TARGET, names)
    for stage in dict.fromkeys(scope(check.id) for check in staged):
        here = [check for check in staged if scope(check.id) == stage]
        wanted = here if options.full else pending(options, here)
        if wanted and by_proxy:
            sweep_stage(options, wanted, by_proxy)
        _sweep(options, here, DEFAULT_TARGET, [name for name in names if name not in by_proxy])
    unseen = pending(options, checks)
    return Outcome(
        said=[f"{len(checks) - len(unseen)} of {len(checks)} checks seen failing on real Kafka"],
        broken=[f"never seen failing: {one.id} ({', '.join(one.rules)})" for one in unseen],
    )


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    known = {check.id: check for check in read_checks(drafts=True)}
    entries = [one for one in entries if one.check in known and one.name in ALTERATIONS]
    before = len(options.store.new)
    with cluster(options.target) as target:
        for name in dict.fromkeys(one.name for one in entries):
            checks = [known[c] for c in dict.fromkeys(e.check for e in entries if e.name == name)]
            shared, solo, staged = _sorts(checks)
            if ALTERATIONS[name].properties:
                shared, solo = [], [*shared, *solo]
            for where, some in ((target, shared), (DEFAULT_TARGET, [*solo, *staged])):
                if some:
                    behind(options, name, where, some)
    seen = {one.key for one in options.store.new[before:]}
    return [one for one in entries if one.key not in seen]


def pending(options: Options, checks: Iterable[Check]) -> list[Check]:
    seen = {
        (one.check, one.rule)
        for one in options.store.known
        if one.kind == evidence.ALTERATION and one.release != evidence.REFERENCE
    }
    return [one for one in checks if any((one.id, rule) not in seen for rule in one.rules)]


def _sorts(checks: Iterable[Check]) -> tuple[list[Check], list[Check], list[Check]]:
    staged = [check for check in checks if scope(check.id) != check.id]
    solo = [check for check in checks if check.solo and check not in staged]
    return [check for check in checks if check not in solo and check not in staged], solo, staged


@contextmanager
def cluster(target: str) -> Iterator[str]:
    if target.startswith("external:"):
        yield target
        return
    with started(open_target(target, TargetOptions(brokers=3))) as running:
        yield f"external:{','.join(running.info.bootstrap)}"


def _sweep(options: Options, checks: Sequence[Check], target: str, names: Sequence[str]) -> None:
    for name in names:
        wanted = list(checks) if options.full else pending(options, checks)
        if not wanted:
            return
        new = behind(options, name, target, wanted)
        left = len(pending(options, checks))
        options.say(f"{name}: {len(wanted)} checks, {new} failures, {left} checks left")


def behind(options: Options, name: str, target: str, checks: Iterable[Check]) -> int:
    ids = [*LEDGER, *(check.id for check in checks)]
    found = runs.results(f"altered:{name}@{target}", ids, patience=PATIENCE)
    # An address tells its release by what it speaks; of our own clusters we know it.
    own = options.target.startswith("kafka:")
    release = options.target.partition(":")[2] if own else found.target.version
    failed = (one for one in runs.seen(found) if one.verdict is Verdict.FAIL)
    entries = [entry_of(evidence.ALTERATION, name, one, release) for one in failed]
    options.store.add(entries)
    return len(entries)


def sweep_stage(
    options: Options, checks: Sequence[Check], names: Sequence[str], more: Sequence[str] = ()
) -> None:
    words = ["--alterations", ",".join(names), *more, *(["--full"] if options.full else [])]
    target = f"altered:{HONEST.name}@{DEFAULT_TARGET}"
    for name, _, one in runs.sweep(target, checks, [*words, *LEDGER], patience=PATIENCE):
        options.say(f"{name}: {one.rule} {one.verdict} {one.reason}".rstrip())
        if one.verdict is Verdict.FAIL and name != HONEST.name:
            options.store.add([entry_of(evidence.ALTERATION, name, one, RELEASE)])
