"""One kill a rule: each rule that is judged has something broken that breaks it and dies by it.

What is broken declares the rules that it breaks. This hunts, for each rule that nothing declared
has died by yet, with what declares it: on the reference broker in virtual time, or in front of real
Kafka.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import product

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS
from fixtures.targets import DEFAULT_TARGET
from reports.evidence import Entry
from shareproof.detected import own_kills
from shareproof.runner.inventory import Check, by_rule, read_checks
from shareproof.runner.scheduler import scope
from tools.campaign import alterations, rejections
from tools.campaign.options import Options, Outcome, means_rule, nothing
from tools.campaign.player import HONEST
from tools.campaign.reference import each, pool

# Stand for the checks that share any cluster, and those that start one of their own.
SHARED, ALONE = "", "alone"
TRIES = 3  # Seeds with which a mutant is tried against a check.


def judged() -> list[str]:
    return list(by_rule(read_checks()))


def without(entries: Iterable[Entry], rules: Iterable[str]) -> list[str]:
    killed = own_kills(entries)
    return [rule for rule in rules if rule not in killed]


def play(options: Options) -> Outcome:
    rules = [rule for rule in judged() if _is_chosen(options, rule)]
    if not rules:
        raise nothing(", ".join(options.only))
    wanted = rules if options.full else without(options.store.known, rules)
    with pool(options.workers) as workers:
        hunts = [workers.submit(hunt, rule, options.seed, options.only) for rule in wanted]
        for found in each(hunts, "rules without a kill of their own", options.progress):
            options.store.add(found)
    left = without(options.store.known, rules)
    kills = own_kills(options.store.known)
    areas: dict[str, list[str]] = defaultdict(list)
    for rule in rules:
        areas[rule[:3]].append(rule)
    return Outcome(
        said=[
            *(f"{area} {len(kills.keys() & mine)} of {len(mine)}" for area, mine in areas.items()),
            f"{len(rules) - len(left)} of {len(rules)} rules have killed what breaks them",
        ],
        broken=[_bare(rule) for rule in left],
        more={"rules": {rule: [one.name for one in kills.get(rule, ())] for rule in rules}},
    )


def _is_chosen(options: Options, rule: str) -> bool:
    breakers = {*_mutants(rule), *_alterations(rule)}
    return not options.only or any(
        means_rule(word, [rule]) or word in breakers for word in options.only
    )


def _bare(rule: str) -> str:
    names = [*_mutants(rule), *_alterations(rule)]
    return f"no kill of its own: {rule}" + (f" (alive: {', '.join(names)})" if names else "")


def _mutants(rule: str) -> list[str]:
    return [name for name, one in MUTANTS.items() if rule in one.rules]


def _alterations(rule: str) -> list[str]:
    return [name for name, one in ALTERATIONS.items() if rule in one.rules]


def hunt(rule: str, seed: int, only: Sequence[str] = ()) -> list[Entry]:
    checks = [check.id for check in by_rule(rejections.checks().values()).get(rule, ())]
    targets = {f"{HONEST}:{name}": name for name in _mutants(rule)}
    targets |= {f"altered:{name}@{HONEST}": name for name in _alterations(rule)}
    named = [target for target, name in targets.items() if name in only]
    plays = product(range(seed, seed + TRIES), checks, named or targets)
    return rejections.first(((target, check, try_) for try_, check, target in plays), rule)


def by_alteration(rules: Iterable[str]) -> dict[str, list[str]]:
    reach, found = by_rule(read_checks()), defaultdict[str, list[str]](list)
    for rule in rules:
        for name in _alterations(rule):
            found[name] += [check.id for check in reach[rule] if check.id not in found[name]]
    return found


def play_on_kafka(options: Options) -> Outcome:
    rules = [rule for rule in judged() if _is_chosen(options, rule)]
    wanted = rules if options.full else without(options.store.known, rules)
    known = {check.id: check for check in read_checks(drafts=True)}
    stages: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for name, ids in by_alteration(wanted).items():
        mine = set(wanted) & set(ALTERATIONS[name].rules)
        named = name in options.only or any(means_rule(word, mine) for word in options.only)
        for check in ids if named or not options.only else ():
            stages[_stage(known[check], name)].setdefault(name, []).append(check)
    for stage, names in stages.items():
        if stage not in {SHARED, ALONE}:
            checks = [known[one] for one in dict.fromkeys(id_ for i in names.values() for id_ in i)]
            alterations.sweep_stage(options, checks, list(names), ["--declared", "--full"])
            continue
        shared = alterations.cluster(options.target) if stage == SHARED else None
        with shared or nullcontext(DEFAULT_TARGET) as target:
            for name, ids in names.items():
                found = alterations.behind(options, name, target, [known[one] for one in ids])
                options.say(f"{name}: {found} failures in {len(ids)} checks")
    left = without(options.store.known, wanted)
    return Outcome(
        said=[f"{len(wanted) - len(left)} of {len(wanted)} rules killed on real Kafka"],
        broken=[_bare(rule) for rule in left if _alterations(rule)],
    )


def _stage(check: Check, alteration: str) -> str:
    staged = scope(check.id) != check.id
    if ALTERATIONS[alteration].properties or (check.solo and not staged):
        return ALONE
    return scope(check.id) if staged else SHARED
